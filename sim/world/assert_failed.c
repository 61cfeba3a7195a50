/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/assert.h"
#include "sim/world/fail.h"

_Noreturn void fb_assert_failed(const char *file, int line, const char *condition)
{
    fb_sim_fail_crash(file, line, condition);
}
