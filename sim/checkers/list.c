/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* The driver's own rules come first: they have no code here, the driver looks at each effect. */
static const fb_sim_check step_accepts_events = {
    .id = "step-accepts-events",
    .musts = "DESIGN 2",
    .cost = "O(1) a step",
    .text = "no event that the contract allows is an error of step",
};
static const fb_sim_check effects_in_order = {
    .id = "effects-in-order",
    .musts = "DESIGN 2",
    .cost = "O(1) an effect",
    .text = "effects follow their formats and name only links and incarnations that live",
};
static const fb_sim_check credit_respected = {
    .id = "credit-respected",
    .musts = "DESIGN 2",
    .cost = "O(1) a send",
    .text = "no byte is sent without credit",
};
static const fb_sim_check bounded_memory = {
    .id = "bounded-memory",
    .musts = "DESIGN 6, MP-6-5",
    .cost = "O(1) a write set",
    .text = "write sets in flight, effects of a step and the instance stay within their bounds",
};
static const fb_sim_check no_spinning = {
    .id = "no-spinning",
    .musts = "DESIGN 2",
    .cost = "O(1) a tick",
    .text = "a tick at the deadline does something, or moves the deadline",
};
static const fb_sim_check converges = {
    .id = "converges",
    .musts = "DESIGN 3.1, FM-4.1-9, FM-8.2-1, FM-8.2-3, FM-8.3-3, MP-6-9, FI-2-8",
    .cost = "round",
    .text = "a healed core agrees on fingerprints and vectors within the bound of its timers",
};
static const fb_sim_check sets_up = {
    .id = "setup",
    .musts = "MP-7-15, FI-2-4",
    .cost = "once",
    .text = "in good weather a space is created and every node joins it",
};

const fb_sim_check *const fb_sim_check_list[] = {
    &step_accepts_events,
    &effects_in_order,
    &credit_respected,
    &bounded_memory,
    &no_spinning,
    &converges,
    &sets_up,
    &fb_sim_check_delivered_was_sent,
    &fb_sim_check_delivered_once,
    &fb_sim_check_delivered_in_order,
    &fb_sim_check_durable_before_acked,
    &fb_sim_check_durable_before_reply,
    &fb_sim_check_durable_before_told,
    &fb_sim_check_redelivered_once,
    &fb_sim_check_replies_once,
    &fb_sim_check_write_sets_in_order,
    &fb_sim_check_ids_ascend,
    &fb_sim_check_dots_unique,
    &fb_sim_check_applied_was_written,
    &fb_sim_check_floor_rises,
    &fb_sim_check_floor_covers,
    &fb_sim_check_spaces_apart,
    &fb_sim_check_senders_are_members,
    &fb_sim_check_within_window,
    &fb_sim_check_strangers_refused,
    &fb_sim_check_sent_is_settled,
    &fb_sim_check_resent_in_order,
    &fb_sim_check_stamps_ascend,
    &fb_sim_check_quiet,
    &fb_sim_check_session_guarantees, /* these two before the one that forgets at a round's end */
    &fb_sim_check_kinds_add_up,
    &fb_sim_check_acknowledged_survives,
    &fb_sim_check_one_link,
    &fb_sim_check_tree_recomputed,
    &fb_sim_check_honest_fits,
    &fb_sim_check_honest_well_formed,
    &fb_sim_check_tables_empty,
    &fb_sim_check_work_bounded,
    &fb_sim_check_clone_noticed,
    &fb_sim_check_causal_stamps, /* behind the one that has the model */
    &fb_sim_check_etag_once,
    &fb_sim_check_change_feed,
    &fb_sim_check_retries_paused,
    &fb_sim_check_membership,
    &fb_sim_check_authorship,
    &fb_sim_check_revocation_cut,
    &fb_sim_check_lists_go_on,
    &fb_sim_check_no_resurrection,
    &fb_sim_check_digest_means_equal,
    &fb_sim_check_documents_newest,
    &fb_sim_check_documents_stay_removed,
    &fb_sim_check_documents_acknowledged,
    &fb_sim_check_documents_one_writer,
    &fb_sim_check_documents_read,
    &fb_sim_check_documents_are_records,
    &fb_sim_check_documents_recover,
    &fb_sim_check_documents_redo_bounded,
    &fb_sim_check_folded_below_cut,
    &fb_sim_check_dead_are_folded,
    &fb_sim_check_verified_same,
    &fb_sim_check_reported_is_held,
    &fb_sim_check_listed_is_held,
    &fb_sim_check_compare_in_proportion,
    &fb_sim_check_put_out_is_shut,
    &fb_sim_check_listed_is_durable,
    &fb_sim_check_reader_takes_nothing,
    NULL,
};
