/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void fb_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
