/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/documents/documents.h"
#include "sim/main_sim.h"
#include "sim/program.h"
#include "sim/world/world.h"

#define MS UINT64_C(1000000)

fb_sim_config fb_sim_config_default(void)
{
    fb_sim_config config = {
        .seed = {1, 0},
        .seed_text = "1",
        .nodes = 5,
        .second = FB_SIM_SECOND_DRAWN,
        .documents = FB_SIM_DOCUMENTS_DRAWN,
        .events = 200000,
        .duration_ns = FB_NEVER,
        .stop_at_step = UINT64_MAX,
        .faults = true,
        .checks = true,
        .reference = true,
        .carriers_of_16 = 4,
        .sizes = fb_options_small().sizes,
        .timing = fb_options_small().timing,
        .store_items = 1u << 17,
        .blob_bytes = UINT64_C(512) << 20,
        .connections = 256,
        .window_bytes = 65536,
        .delay_min_ns = 200000,
        .delay_mean_ns = 300000,
        .read_mean_ns = 30000,
        .write_mean_ns = 300000,
    };
    /* Often enough that a round sees it; a real node says it every few minutes. */
    config.timing.report_ns = UINT64_C(3000000000);
    fb_sim_config_adapt(&config);
    return config;
}

bool fb_sim_parse_number(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (p == text) return false;
    uint64_t unit = *p == 'k' ? 1000 : *p == 'm' ? 1000000 : *p == 'g' ? 1000000000 : 1;
    if (unit != 1) p++;
    if (*p != 0 || value > UINT64_MAX / unit) return false;
    *out = value * unit;
    return true;
}

bool fb_sim_parse_time(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},        {"us", 1000},      {"ms", MS},
                 {"s", 1000 * MS}, {"m", 60000 * MS}, {"h", UINT64_C(3600000) * MS},
                 {"", 1000 * MS}};
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (value > UINT64_MAX / 20) return false;
        value = value * 10 + (uint64_t)(*p - '0');
    }
    if (p == text) return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(p, units[i].name) != 0) continue;
        if (value > UINT64_MAX / units[i].ns) return false;
        *out_ns = value * units[i].ns;
        return true;
    }
    return false;
}

bool fb_sim_parse_node(const char *name, uint64_t *bits)
{
    for (uint32_t i = 0; i < 64; i++) {
        if (strcmp(fb_sim_name(i), name) != 0) continue;
        *bits |= UINT64_C(1) << i;
        return true;
    }
    return false;
}

bool fb_sim_parse_seed(const char *text, fb_sim_config *config)
{
    size_t len = strlen(text);
    if (len >= sizeof config->seed_text) return false;
    uint64_t value;
    if (len == 40) {
        uint8_t bytes[20];
        for (size_t i = 0; i < 40; i++) {
            char c = text[i];
            int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
            if (digit < 0) return false;
            bytes[i / 2] = (uint8_t)((i & 1) == 0 ? digit << 4 : bytes[i / 2] | digit);
        }
        fb_hash128 h = fb_xxh128(bytes, sizeof bytes, 0);
        config->seed = (fb_seed){h.lo, h.hi};
    } else if (fb_sim_parse_number(text, &value)) {
        config->seed = (fb_seed){value, 0};
    } else {
        return false;
    }
    memcpy(config->seed_text, text, len + 1);
    return true;
}
