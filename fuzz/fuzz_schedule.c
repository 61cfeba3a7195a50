/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a schedule: any bytes are refused with a place, or read; what was read is printed as
 * a text that reads as the same. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "sim/schedule/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *printed(const fb_sim_plan *plan, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    FB_ASSERT(out != NULL);
    fb_sim_plan_print(plan, out);
    FB_ASSERT(fclose(out) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_sim_plan plan, again;
    fb_sim_plan_error error;
    if (!fb_sim_plan_parse((const char *)data, size, &plan, &error)) {
        FB_ASSERT(error.text[0] != 0 && error.line != 0 && error.column != 0);
        return 0;
    }
    size_t first_len, second_len;
    char *first = printed(&plan, &first_len);
    FB_ASSERT(fb_sim_plan_parse(first, first_len, &again, &error));
    FB_ASSERT(again.line_count == plan.line_count && again.round_count == plan.round_count);
    for (uint32_t i = 0; i < plan.line_count; i++) {
        FB_ASSERT(fb_sim_line_equal(&plan.lines[i], &again.lines[i]));
    }
    char *second = printed(&again, &second_len);
    FB_ASSERT(first_len == second_len && memcmp(first, second, first_len) == 0);
    free(first);
    free(second);
    fb_sim_plan_free(&plan);
    fb_sim_plan_free(&again);
    return 0;
}
