/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio envelope`: the objects it prints. */
#ifndef FB_RUNTIME_COMMAND_ENVELOPE_PRINT_H
#define FB_RUNTIME_COMMAND_ENVELOPE_PRINT_H

#include "protocol/envelope/envelope.h"
#include "runtime/command/envelope_input.h"

/* One line on standard output: accept, or refuse with reason, field and detail; the id when it
 * could be read. A refusal also goes to standard error with file and line. */
void fb_print_verdict(const fb_envelope_input *in, const fb_envelope *e,
                      const fb_envelope_fault *fault);

/* The line on standard error alone. */
void fb_print_refusal(const fb_envelope_input *in, const fb_envelope_fault *fault);

/* {"preimage":"<hex>"} */
void fb_print_preimage(const fb_envelope *e);

/* Everything readable, also of a refused envelope. now_ms is for its age. */
void fb_print_inspection(const fb_envelope_input *in, bool protobuf, const fb_envelope *e,
                         const fb_envelope_fault *fault, int64_t now_ms);

#endif
