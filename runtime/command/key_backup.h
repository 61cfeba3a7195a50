/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio key backup` and `faberio key restore`. argv[1] is the verb. */
#ifndef FB_RUNTIME_COMMAND_KEY_BACKUP_H
#define FB_RUNTIME_COMMAND_KEY_BACKUP_H

int fb_cmd_key_backup(int argc, char **argv);
int fb_cmd_key_restore(int argc, char **argv);

#endif
