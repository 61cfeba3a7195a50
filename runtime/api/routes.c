/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/handlers.h"

#define SPACE      "/v1/spaces/*"
#define COLLECTION SPACE "/collections/*"
#define RECORD     COLLECTION "/records/*"

/* What the contract names and this version does not have: refused, not guessed. */
static void not_built(fb_exchange *x)
{
    fb_exchange_fail(x, FB_ERR_UNSUPPORTED, NULL);
}

const fb_route fb_routes[] = {
    {"GET", "/livez", NULL, fb_get_livez, false, true},
    {"GET", "/readyz", NULL, fb_get_readyz, false, false},
    {"GET", "/metrics", NULL, fb_get_metrics, false, false},
    {"GET", "/v1/status", NULL, fb_get_status, false, false},
    {"GET", "/v1/config", NULL, fb_get_config, false, false},
    {"GET", "/v1/doctor", "item", fb_get_doctor, false, false},
    {"POST", "/v1/scrub", NULL, fb_post_scrub, false, false},
    {"GET", "/v1/peers", NULL, fb_get_peers, false, false},
    {"POST", "/v1/peers", NULL, fb_post_peers, false, false},
    {"POST", "/v1/peers/forget", NULL, fb_post_peers_forget, false, false},

    {"GET", "/v1/spaces", NULL, fb_get_spaces, false, false},
    {"POST", "/v1/spaces", NULL, fb_post_spaces, false, false},
    {"POST", "/v1/spaces/join", NULL, fb_post_join, false, false},
    {"POST", SPACE "/leave", NULL, fb_post_leave, false, false},
    {"POST", SPACE "/invites", NULL, fb_post_invites, false, false},
    {"GET", SPACE "/members", NULL, fb_get_members, false, false},
    {"GET", SPACE "/verify", NULL, fb_get_verify, false, false},
    {"PUT", SPACE "/members/*", NULL, fb_put_member, false, false},
    {"DELETE", SPACE "/members/*", NULL, fb_delete_member, false, false},
    {"POST", SPACE "/rename", NULL, fb_post_rename, false, false},
    {"GET", SPACE "/recovery/*", NULL, fb_get_recovery, false, false},
    {"POST", SPACE "/recovery/*", NULL, fb_post_recovery, false, false},
    {"POST", SPACE "/approvals", NULL, fb_post_approvals, false, false},

    {"POST", "/v1/apps", NULL, fb_post_apps, false, false},
    {"POST", "/v1/apps/*/spaces", NULL, fb_post_app_spaces, false, false},
    {"DELETE", "/v1/apps/*", NULL, fb_delete_app, false, false},

    {"PUT", RECORD, NULL, fb_put_record, true, false},
    {"PATCH", RECORD, NULL, fb_patch_record, true, false},
    {"GET", RECORD, NULL, fb_get_record, true, false},
    {"DELETE", RECORD, NULL, fb_delete_record, true, false},
    {"GET", COLLECTION "/records", "limit after", fb_get_records, true, false},
    {"POST", COLLECTION "/records:batch", NULL, fb_post_batch, true, false},
    {"GET", SPACE "/changes", "since collection", fb_get_changes, true, false},
    {"GET", SPACE "/conflicts", "collection after", fb_get_conflicts, true, false},
    {"POST", SPACE "/conflicts/*", NULL, fb_post_conflict, true, false},

    {"GET", SPACE "/policies", NULL, not_built, false, false},
    {"POST", SPACE "/policies", NULL, not_built, false, false},
    {0},
};
