/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/config: the settings that this process runs with. */
#include "runtime/api/handlers.h"
#include "runtime/settings_show.h"

void fb_get_config(fb_exchange *x)
{
    fb_settings_json(&x->out, fb_api_options_of(x->api)->settings);
    fb_exchange_answer(x, 200);
}
