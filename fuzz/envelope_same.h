/* SPDX-License-Identifier: Apache-2.0 */
/* What the two envelope targets share. */
#ifndef FB_FUZZ_ENVELOPE_SAME_H
#define FB_FUZZ_ENVELOPE_SAME_H

#include "protocol/envelope/envelope.h"

/* Ends the process unless the condition holds. */
void fb_fuzz_require(bool condition);

/* An accepted envelope survives both encodings and keeps its signed bytes; a checked copy of it is
 * as good. */
void fb_fuzz_accepted(const fb_envelope *e);

#endif
