/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FB_RUNTIME_COMMAND_CONFORMANCE_H
#define FB_RUNTIME_COMMAND_CONFORMANCE_H

/* `faberio conformance adapter`: answers requests of the adapter protocol (docs/ADAPTER.md) until
 * standard input ends. Returns an exit code. */
int fb_cmd_conformance(int argc, char **argv);

#endif
