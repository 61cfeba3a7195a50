/* SPDX-License-Identifier: Apache-2.0 */
/* page.html, put into the program by the build. */
#ifndef FB_SIM_VIEW_PAGE_H
#define FB_SIM_VIEW_PAGE_H

#include <stddef.h>

extern const unsigned char fb_sim_page[];
extern const size_t fb_sim_page_len;

#endif
