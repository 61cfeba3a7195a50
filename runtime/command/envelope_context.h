/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio envelope verify`: an imagined receiver out of a context file. */
#ifndef FB_RUNTIME_COMMAND_ENVELOPE_CONTEXT_H
#define FB_RUNTIME_COMMAND_ENVELOPE_CONTEXT_H

#include "runtime/conformance/receiver.h"

/* Reads and checks the file. NULL after it said which member is wrong: a usage error. */
fb_receiver *fb_context_read(const char *path, const fb_provider *provider);

#endif
