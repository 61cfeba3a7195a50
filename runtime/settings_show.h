/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as JSON, for the command and the API: nothing secret is in it. */
#ifndef FB_RUNTIME_SETTINGS_SHOW_H
#define FB_RUNTIME_SETTINGS_SHOW_H

#include "runtime/settings.h"
#include "runtime/text.h"

/* {NAME:{"value":...,"origin":...},...} in the order of fb_setting. Names and passwords within an
 * address are hidden. */
void fb_settings_json(fb_text *out, const fb_settings *settings);

#endif
