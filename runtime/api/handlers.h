/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the routes in routes.c. */
#ifndef FB_RUNTIME_API_HANDLERS_H
#define FB_RUNTIME_API_HANDLERS_H

#include "runtime/api/exchange.h"

void fb_get_livez(fb_exchange *x);
void fb_get_readyz(fb_exchange *x);
void fb_get_metrics(fb_exchange *x);
void fb_post_scrub(fb_exchange *x);
void fb_get_doctor(fb_exchange *x);
void fb_get_config(fb_exchange *x);
void fb_get_status(fb_exchange *x);
void fb_get_peers(fb_exchange *x);
void fb_post_peers(fb_exchange *x);
void fb_post_peers_forget(fb_exchange *x);

void fb_get_spaces(fb_exchange *x);
void fb_post_spaces(fb_exchange *x);
void fb_post_join(fb_exchange *x);
void fb_post_leave(fb_exchange *x);
void fb_post_invites(fb_exchange *x);
void fb_get_members(fb_exchange *x);
void fb_get_verify(fb_exchange *x);
void fb_post_approvals(fb_exchange *x);
void fb_put_member(fb_exchange *x);
void fb_delete_member(fb_exchange *x);
void fb_post_rename(fb_exchange *x);
void fb_get_recovery(fb_exchange *x);
void fb_post_recovery(fb_exchange *x);

void fb_post_apps(fb_exchange *x);
void fb_post_app_spaces(fb_exchange *x);
void fb_delete_app(fb_exchange *x);

void fb_put_record(fb_exchange *x);
void fb_patch_record(fb_exchange *x);
void fb_get_record(fb_exchange *x);
void fb_delete_record(fb_exchange *x);
void fb_get_records(fb_exchange *x);
void fb_post_batch(fb_exchange *x);
void fb_get_changes(fb_exchange *x);
void fb_get_conflicts(fb_exchange *x);
void fb_post_conflict(fb_exchange *x);

/* Memory of this process that is in use; 0 when the system does not say. */
uint64_t fb_process_resident_bytes(void);

/* Answers with the record x->record of the collection args[1]. */
void fb_record_show(fb_exchange *x);

#endif
