/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio envelope`: sign, verify, canonical, convert, inspect (command contract, section 2). */
#ifndef FB_RUNTIME_COMMAND_ENVELOPE_H
#define FB_RUNTIME_COMMAND_ENVELOPE_H

/* argv[0] is "envelope", argv[1] the verb. Returns the exit code. */
int fb_cmd_envelope(int argc, char **argv);

#endif
