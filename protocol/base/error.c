/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/error.h"

const char *fb_error_name(fb_error error)
{
    switch (error) {
#define FB_ERROR_ROW(code, name, label, text, class)                                               \
    case FB_ERR_##name:                                                                            \
        return label;
        FB_ERROR_TABLE(FB_ERROR_ROW)
#undef FB_ERROR_ROW
    }
    return "unknown";
}

const char *fb_error_text(fb_error error)
{
    switch (error) {
#define FB_ERROR_ROW(code, name, label, text, class)                                               \
    case FB_ERR_##name:                                                                            \
        return text;
        FB_ERROR_TABLE(FB_ERROR_ROW)
#undef FB_ERROR_ROW
    }
    return "no such error";
}

fb_error_class fb_error_class_of(fb_error error)
{
    switch (error) {
#define FB_ERROR_ROW(code, name, label, text, class)                                               \
    case FB_ERR_##name:                                                                            \
        return FB_CLASS_##class;
        FB_ERROR_TABLE(FB_ERROR_ROW)
#undef FB_ERROR_ROW
    }
    return FB_CLASS_FATAL;
}
