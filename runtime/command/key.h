/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio key new` and `key show` (command contract, section 2). */
#ifndef FB_RUNTIME_COMMAND_KEY_H
#define FB_RUNTIME_COMMAND_KEY_H

/* argv[0] is "key", argv[1] the verb. Returns the exit code. */
int fb_cmd_key(int argc, char **argv);

#endif
