/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the table in main.c, one function each. */
#ifndef FB_RUNTIME_COMMAND_COMMANDS_H
#define FB_RUNTIME_COMMAND_COMMANDS_H

#include "runtime/command/cli.h"

fb_exit fb_cmd_init(fb_cli *cli);
fb_exit fb_cmd_run(fb_cli *cli);
fb_exit fb_cmd_config_show(fb_cli *cli);
fb_exit fb_cmd_status(fb_cli *cli);
fb_exit fb_cmd_doctor(fb_cli *cli);
fb_exit fb_cmd_scrub(fb_cli *cli);
fb_exit fb_cmd_peers(fb_cli *cli);
fb_exit fb_cmd_peers_add(fb_cli *cli);
fb_exit fb_cmd_peers_forget(fb_cli *cli);
fb_exit fb_cmd_app_create(fb_cli *cli);
fb_exit fb_cmd_app_allow(fb_cli *cli);
fb_exit fb_cmd_app_revoke(fb_cli *cli);
fb_exit fb_cmd_space_create(fb_cli *cli);
fb_exit fb_cmd_space_list(fb_cli *cli);
fb_exit fb_cmd_space_invite(fb_cli *cli);
fb_exit fb_cmd_space_join(fb_cli *cli);
fb_exit fb_cmd_space_leave(fb_cli *cli);
fb_exit fb_cmd_space_delete(fb_cli *cli);
fb_exit fb_cmd_space_members(fb_cli *cli);
fb_exit fb_cmd_space_approve(fb_cli *cli);
fb_exit fb_cmd_space_role(fb_cli *cli);
fb_exit fb_cmd_space_revoke(fb_cli *cli);
fb_exit fb_cmd_space_rename(fb_cli *cli);
fb_exit fb_cmd_space_replace(fb_cli *cli);
fb_exit fb_cmd_space_recover(fb_cli *cli);
fb_exit fb_cmd_record_put(fb_cli *cli);
fb_exit fb_cmd_record_get(fb_cli *cli);
fb_exit fb_cmd_record_delete(fb_cli *cli);
fb_exit fb_cmd_record_list(fb_cli *cli);
fb_exit fb_cmd_record_import(fb_cli *cli);
fb_exit fb_cmd_record_watch(fb_cli *cli);
fb_exit fb_cmd_export(fb_cli *cli);
fb_exit fb_cmd_import(fb_cli *cli);
fb_exit fb_cmd_verify(fb_cli *cli);
fb_exit fb_cmd_store_migrate(fb_cli *cli);
fb_exit fb_cmd_conflicts_list(fb_cli *cli);
fb_exit fb_cmd_conflicts_resolve(fb_cli *cli);

#endif
