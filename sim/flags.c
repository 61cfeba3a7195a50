/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/flags.h"

#include <stdio.h>

#include "sim/documents/documents.h"
#include "sim/main_sim.h"

int fb_sim_refuse(const char *what, const char *which)
{
    fprintf(stderr, "faberio sim: %s%s", what, which == NULL ? "" : ": ");
    /* A word of the command line may hold anything: a terminal must not obey it. */
    for (; which != NULL && *which != 0; which++) {
        unsigned char byte = (unsigned char)*which;
        fprintf(stderr, byte < 0x20 || byte == 0x7f ? "\\x%02x" : "%c", byte);
    }
    fputc('\n', stderr);
    return FB_SIM_EXIT_USAGE;
}

static bool profile_of(const char *name, fb_sim_config *config)
{
    if (strcmp(name, "default") == 0) return true;
    if (strcmp(name, "calm") == 0) {
        config->faults = false;
        return true;
    }
    if (strcmp(name, "dense") == 0) {
        config->carriers_of_16 = 8;
        return true;
    }
    if (strcmp(name, "plain") == 0) {
        config->plain = true;
        return true;
    }
    return false;
}

void fb_sim_config_nodes(fb_sim_config *config, uint32_t nodes)
{
    if (nodes == config->nodes) return;
    config->nodes = nodes;
    if (nodes + 8 > config->sizes.links) config->sizes.links = nodes + 8;
    if (nodes + 8 > config->sizes.addresses) config->sizes.addresses = nodes + 8;
    config->connections = 64 + nodes * nodes * 4;
    if (config->connections > 32768) config->connections = 32768;
}

static bool fault_add(const char *name, fb_sim_fault_set *faults)
{
    uint32_t fault = fb_sim_fault_of(name);
    if (fault == FB_SIM_FAULTS) return false;
    fb_sim_faults_add(faults, fault);
    return true;
}

static fb_sim_flag wrong(const char *what, const char *which)
{
    fb_sim_refuse(what, which);
    return FB_SIM_FLAG_REFUSED;
}

fb_sim_flag fb_sim_flag_read(int argc, char **argv, int *at, fb_sim_config *config,
                             const char **mutant)
{
    static const char *const with_value[] = {"--seed",     "--nodes",     "--events",
                                             "--duration", "--profile",   "--only",
                                             "--mutant",   "--documents", "--poison"};
    const char *flag = argv[*at];
    if (strcmp(flag, "--fast") == 0) {
        config->fast = true;
        config->checks = false;
        return FB_SIM_FLAG_TAKEN;
    }
    size_t which = 0;
    size_t count = sizeof with_value / sizeof with_value[0];
    while (which < count && strcmp(flag, with_value[which]) != 0) which++;
    if (which == count) return FB_SIM_FLAG_UNKNOWN;
    if (*at + 1 == argc) return wrong("a flag without its value", flag);
    const char *value = argv[++*at];
    uint64_t number;
    switch (which) {
    case 0:
        if (!fb_sim_parse_seed(value, config)) return wrong("not a seed", value);
        break;
    case 1:
        if (!fb_sim_parse_number(value, &number) || number < 2 || number > 64) {
            return wrong("--nodes is 2 to 64", value);
        }
        fb_sim_config_nodes(config, (uint32_t)number);
        break;
    case 2:
        if (!fb_sim_parse_number(value, &config->events) || config->events == 0) {
            return wrong("--events is a number from 1", value);
        }
        break;
    case 3:
        if (!fb_sim_parse_time(value, &config->duration_ns) || config->duration_ns == 0) {
            return wrong("--duration is a time above 0", value);
        }
        config->events = UINT64_MAX;
        break;
    case 4:
        if (!profile_of(value, config)) return wrong("no profile of this name", value);
        break;
    case 5:
        if (!fault_add(value, &config->only)) return wrong("no fault of this name", value);
        break;
    case 6:
        *mutant = value;
        break;
    case 7:
        if (config->documents == FB_SIM_DOCUMENTS_DRAWN) config->documents = 0;
        if (strcmp(value, "none") != 0 && !fb_sim_parse_node(value, &config->documents)) {
            return wrong("--documents is a node, or none", value);
        }
        break;
    default:
        if (!fb_sim_parse_number(value, &number) || number == 0 || number > 255) {
            return wrong("--poison is a byte, 1 to 255", value);
        }
        config->poison = (uint8_t)number;
    }
    return FB_SIM_FLAG_TAKEN;
}
