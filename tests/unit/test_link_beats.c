/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats: every link at its interval, many links at several instants (profile 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/link/link.h"
#include "tests/unit/net_space.h"

#define NODES 8u
#define MS    UINT64_C(1000000)

static void many_links(fb_options *options)
{
    options->sizes.links = 128;
    options->sizes.envelopes = 256;
}

/* When each peer hears node 0, over three periods: at its interval exactly, not all at once. */
static void links_beat_at_several_instants(void **state)
{
    (void)state;
    test_net *net = test_net_new(NODES, many_links);
    fb_id space = test_net_create_space(net, 0);
    for (uint32_t i = 1; i < NODES; i++) test_net_join(net, i, 0, space, FB_ROLE_WRITER);
    test_net_run(net, 30000 * MS);
    uint64_t heard[NODES], first[NODES] = {0};
    uint32_t beats[NODES] = {0}, instants = 0;
    for (uint32_t i = 1; i < NODES; i++) {
        heard[i] = fb_link_at(test_net_node(net, i), test_net_link(net, i, 0))->heard_ns;
    }
    for (uint32_t t = 0; t < 6000; t += 10) {
        test_net_run(net, 10 * MS);
        for (uint32_t i = 1; i < NODES; i++) {
            uint64_t at = fb_link_at(test_net_node(net, i), test_net_link(net, i, 0))->heard_ns;
            if (at == heard[i]) continue;
            assert_int_equal(at - heard[i], 2000 * MS);
            heard[i] = at;
            if (beats[i]++ == 0) first[i] = at;
        }
    }
    for (uint32_t i = 1; i < NODES; i++) {
        assert_int_equal(beats[i], 3);
        bool again = false;
        for (uint32_t j = 1; j < i; j++) again = again || first[j] == first[i];
        if (!again) instants++;
    }
    assert_in_range(instants, 3, 8);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_beat_at_several_instants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
