/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio conformance adapter` in front of the core with the planted bugs in it: the first
 * argument names the one that is switched on, or none. */
#include <stdio.h>
#include <string.h>

#include "runtime/command/conformance.h"
#include "sim/mutants.h"

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    fb_planted_bug = fb_sim_mutant_of(argv[1]);
    if (fb_planted_bug == 0 && strcmp(argv[1], "none") != 0) {
        fprintf(stderr, "no planted bug %s\n", argv[1]);
        return 2;
    }
    char *words[] = {(char[]){"conformance"}, (char[]){"adapter"}, NULL};
    return fb_cmd_conformance(2, words);
}
