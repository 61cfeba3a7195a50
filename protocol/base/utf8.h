/* SPDX-License-Identifier: Apache-2.0 */
/* Names that travel are UTF-8 (RFC 3629): shortest forms only, no surrogates, nothing above
 * U+10FFFF; without a zero byte, since people's tools end texts there. */
#ifndef FB_BASE_UTF8_H
#define FB_BASE_UTF8_H

#include "protocol/base/types.h"

bool fb_utf8_is_name(fb_span text);

#endif
