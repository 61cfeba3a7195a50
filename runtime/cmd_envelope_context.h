/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio envelope verify`: the state of an imagined receiver, from a context file,
 * and how it evolves within one call (command contract, section 2; profile 5). */
#ifndef FB_RUNTIME_CMD_ENVELOPE_CONTEXT_H
#define FB_RUNTIME_CMD_ENVELOPE_CONTEXT_H

#include "protocol/envelope/envelope.h"

typedef struct fb_context fb_context;

/* Reads and checks the file. NULL after it said which member is wrong: a usage error. */
fb_context *fb_context_read(const char *path, const fb_provider *provider);
void fb_context_free(fb_context *context);

/* Steps 2 to 9 of profile 5 for a decoded envelope. An accepted one counts as seen and moves its
 * sender's floor. On refusal *fault says why. */
fb_status fb_context_judge(fb_context *context, const fb_envelope *e, fb_envelope_fault *fault);

#endif
