/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the conformance adapter's protocol: each is answered, whatever it says, by one line that
 * is a JSON object. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/envelope_same.h"
#include "runtime/command/conformance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *in = size == 0 ? fopen("/dev/null", "r") : fmemopen((void *)(uintptr_t)data, size, "r");
    char *answers = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&answers, &len);
    fb_fuzz_require(in != NULL && out != NULL);
    FILE *old_in = stdin, *old_out = stdout;
    stdin = in;
    stdout = out;
    char *argv[] = {(char *)(uintptr_t) "conformance", (char *)(uintptr_t) "adapter", NULL};
    (void)fb_cmd_conformance(2, argv);
    stdin = old_in;
    stdout = old_out;
    fclose(in);
    fclose(out);
    for (char *line = answers; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        fb_fuzz_require(end != NULL);
        json_t *object = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        fb_fuzz_require(json_is_object(object));
        json_decref(object);
        line = end + 1;
    }
    free(answers);
    return 0;
}
