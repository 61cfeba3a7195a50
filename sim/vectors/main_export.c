/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/main_sim.h"
#include "sim/usage.h"
#include "sim/vectors/vectors.h"
#include "sim/view/out.h"
#include "sim/view/source.h"

#define RECORD_STEPS 4096u /* nobody looks back */

bool fb_sim_export_write(const fb_sim_export *x, const char *path, uint32_t *vectors,
                         uint64_t *deliveries)
{
    *vectors = 0;
    *deliveries = 0;
    fb_sim_out *out = fb_sim_out_open(path);
    if (out == NULL) return false;
    for (uint32_t i = 0; i < x->vector_count; i++) {
        const fb_sim_vector *v = &x->vectors[i];
        if (v->delivered == 0 && v->sent == 0) continue;
        fb_sim_out_bytes(out, v->text.bytes, v->text.len);
        *vectors += 1;
        *deliveries += v->delivered;
    }
    return fb_sim_out_close(out);
}

/* The words of the run, as the source of its vectors. */
static char *words_of(const fb_sim_source *source, int argc, char **argv)
{
    size_t bytes = 1;
    for (int i = 2; i < argc; i++) bytes += strlen(argv[i]) + 1;
    char *words = calloc(1, bytes);
    if (words == NULL) fb_sim_fail_resource("memory of this machine");
    (void)source;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--vectors") == 0 || strcmp(argv[i], "--node") == 0) {
            i++;
            continue;
        }
        if (words[0] != 0) strcat(words, " ");
        strcat(words, argv[i]);
    }
    return words;
}

int fb_sim_export_main(int argc, char **argv)
{
    fb_sim_source source;
    const char *path = NULL;
    uint64_t nodes = 0;
    fb_sim_source_init(&source);
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        bool vectors = strcmp(flag, "--vectors") == 0;
        if (vectors || strcmp(flag, "--node") == 0) {
            if (i + 1 == argc) return fb_sim_misused("export", "a flag without its value", flag);
            i++;
            if (vectors) {
                path = argv[i];
            } else if (!fb_sim_parse_node(argv[i], &nodes)) {
                return fb_sim_misused("export", "no node of this name", argv[i]);
            }
            continue;
        }
        fb_sim_flag read = fb_sim_source_read(&source, argc, argv, &i);
        if (read == FB_SIM_FLAG_UNKNOWN)
            return fb_sim_misused("export", "no flag of this name", flag);
        if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
    }
    if (path == NULL) return fb_sim_misused("export", "--vectors OUT is missing", NULL);
    if (nodes == 0) nodes = UINT64_MAX;
    if (source.mutant != NULL) {
        int code = fb_sim_mutant_switch(argc, argv, source.mutant);
        if (code >= 0) return code;
    }
    char *words = words_of(&source, argc, argv);
    fb_sim_world *world = fb_sim_source_open(&source, RECORD_STEPS);
    fb_sim_export *export = fb_sim_export_create(world, words, nodes);
    while (fb_sim_world_next(world)) {
    }
    fb_sim_export_end(export);
    uint32_t vectors;
    uint64_t deliveries;
    bool whole = fb_sim_export_write(export, path, &vectors, &deliveries);
    if (!whole) fprintf(stderr, "faberio sim: cannot write %s\n", path);
    if (whole && strcmp(path, "-") != 0) {
        printf("%u vectors, %llu deliveries\n", (unsigned)vectors, (unsigned long long)deliveries);
        fb_sim_source_verdict(world, &source);
    }
    fb_sim_export_destroy(export);
    fb_sim_source_close(world);
    fb_sim_source_free(&source);
    free(words);
    return whole ? 0 : 1;
}
