/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/plane.h"

#include "protocol/database/database.h"
#include "protocol/link/plane.h"
#include "protocol/messaging/messaging.h"
#include "protocol/rpc/rpc.h"
#include "protocol/space/space.h"

/* Each plane's table is declared where it is listed and defined in its folder's plane.c. The order
 * is that of loading and of flushing: space, database, messaging, rpc, link. */
const fb_plane *const fb_planes[] = {
    &fb_space_plane, &fb_database_plane, &fb_messaging_plane, &fb_rpc_plane, &fb_link_plane, NULL,
};
