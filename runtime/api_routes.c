/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/handlers.h"

#define SPACE      "/v1/spaces/*"
#define COLLECTION SPACE "/collections/*"
#define RECORD     COLLECTION "/records/*"

/* What the contract names and this version does not have: refused, not guessed. */
static void not_built(fb_exchange *x)
{
    fb_exchange_fail(x, FB_ERR_UNSUPPORTED, NULL);
}

const fb_route fb_routes[] = {
    {"GET", "/livez", fb_get_livez, false, true},
    {"GET", "/readyz", fb_get_readyz, false, false},
    {"GET", "/metrics", fb_get_metrics, false, false},
    {"GET", "/v1/status", fb_get_status, false, false},
    {"GET", "/v1/peers", fb_get_peers, false, false},
    {"POST", "/v1/peers", fb_post_peers, false, false},
    {"POST", "/v1/peers/forget", fb_post_peers_forget, false, false},

    {"GET", "/v1/spaces", fb_get_spaces, false, false},
    {"POST", "/v1/spaces", fb_post_spaces, false, false},
    {"POST", "/v1/spaces/join", fb_post_join, false, false},
    {"POST", SPACE "/invites", fb_post_invites, false, false},
    {"GET", SPACE "/members", fb_get_members, false, false},
    {"POST", SPACE "/approvals", fb_post_approvals, false, false},

    {"POST", "/v1/apps", fb_post_apps, false, false},
    {"POST", "/v1/apps/*/spaces", fb_post_app_spaces, false, false},
    {"DELETE", "/v1/apps/*", fb_delete_app, false, false},

    {"PUT", RECORD, fb_put_record, true, false},
    {"PATCH", RECORD, fb_patch_record, true, false},
    {"GET", RECORD, fb_get_record, true, false},
    {"DELETE", RECORD, fb_delete_record, true, false},
    {"GET", COLLECTION "/records", fb_get_records, true, false},
    {"POST", COLLECTION "/records:batch", fb_post_batch, true, false},
    {"GET", SPACE "/changes", fb_get_changes, true, false},

    {"GET", SPACE "/policies", not_built, false, false},
    {"POST", SPACE "/policies", not_built, false, false},
    {"GET", SPACE "/conflicts", not_built, true, false},
    {"POST", SPACE "/conflicts/*", not_built, true, false},
    {"GET", "/v1/doctor", not_built, false, false},
    {0},
};
