/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exit.h"

unsigned fb_http_of_error(fb_error error)
{
    switch (error) {
    case FB_ERR_OK:
        return 200;
    case FB_ERR_NOT_FOUND:
    case FB_ERR_AREA_UNKNOWN:
        return 404;
    case FB_ERR_CONFLICT:
        return 412;
    case FB_ERR_EXISTS:
    case FB_ERR_NOT_ASKED:
        return 409;
    case FB_ERR_NOT_AUTHORISED:
    case FB_ERR_NOT_MEMBER:
        return 403;
    case FB_ERR_LIMIT:
    case FB_ERR_TOO_LARGE:
        return 413;
    case FB_ERR_CALL_FOLDED:
    case FB_ERR_CURSOR_OLD:
    case FB_ERR_CURSOR_UNKNOWN:
        return 410;
    case FB_ERR_UNSUPPORTED:
        return 501;
    case FB_ERR_BAD_UUID: /* of an argument: envelopes are judged elsewhere */
    case FB_ERR_VALUE_MALFORMED:
        return 400;
    default:
        break;
    }
    switch (fb_error_class_of(error)) {
    case FB_CLASS_AGAIN:
        return 503;
    case FB_CLASS_ARGUMENT:
        return 400;
    case FB_CLASS_REFUSED:
        return 422;
    case FB_CLASS_STATE:
        return 409;
    default:
        return 500;
    }
}

fb_exit fb_exit_of_http(unsigned status)
{
    if (status >= 200 && status < 300) return FB_EXIT_OK;
    switch (status) {
    case 400:
        return FB_EXIT_USAGE;
    case 401:
    case 403:
        return FB_EXIT_NOT_AUTHORISED;
    case 409:
    case 412:
        return FB_EXIT_CONFLICT;
    case 429:
    case 503:
        return FB_EXIT_AGAIN;
    default:
        return FB_EXIT_FAILED;
    }
}
