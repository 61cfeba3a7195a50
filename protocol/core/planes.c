/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/plane.h"

/* Each plane's table is declared where it is listed and defined in its folder's plane.c. The order
 * is that of loading and of flushing: space, database, messaging, rpc, link. */
const fb_plane *const fb_planes[] = {
    NULL,
};
