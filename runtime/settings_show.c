/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/settings_show.h"

#include "runtime/daemon/document_store.h"

void fb_settings_json(fb_text *out, const fb_settings *settings)
{
    fb_json_open(out, NULL, '{');
    for (int i = 0; i < FB_SETTINGS; i++) {
        const fb_setting_value *v = &settings->values[i];
        char value[sizeof v->text];
        fb_document_store_hide(v->text, value, sizeof value);
        fb_json_open(out, fb_setting_name((fb_setting)i), '{');
        fb_json_member(out, "value", value);
        fb_json_member(out, "origin", v->origin);
        fb_json_close(out, '}');
    }
    fb_json_close(out, '}');
}
