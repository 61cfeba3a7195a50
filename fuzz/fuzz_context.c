/* SPDX-License-Identifier: Apache-2.0 */
/* A context: who receives, when, who is a member, what was seen. Either it is read, or the member
 * that is wrong is named in text that can be shown. */
#include "fuzz/envelope_same.h"
#include "io/keys/provider_sodium.h"
#include "runtime/conformance/receiver_json.h"
#include "runtime/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fb_sodium *sodium;
    if (sodium == NULL) fb_fuzz_require(fb_sodium_create(4, &sodium) == FB_OK);
    json_t *context = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (context == NULL) return 0;
    for (unsigned session = 0; session < 2; session++) {
        fb_receiver *receiver = fb_receiver_new(fb_sodium_provider(sodium));
        fb_receiver_fault fault = {"", NULL};
        if (!fb_receiver_read(receiver, context, session == 1, &fault)) {
            fb_fuzz_require(fault.what != NULL);
            fb_fuzz_require(memchr(fault.where, 0, sizeof fault.where) != NULL);
        }
        fb_receiver_free(receiver);
    }
    json_decref(context);
    return 0;
}
