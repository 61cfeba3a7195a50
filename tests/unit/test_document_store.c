/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of the address of a document store: nothing that may be secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "runtime/daemon/document_store.h"

static void shown(const char *setting, const char *expected)
{
    char out[256];
    fb_document_store_hide(setting, out, sizeof out);
    assert_string_equal(out, expected);
}

static void what_is_secret_is_not_shown(void **state)
{
    (void)state;
    shown("local", "local");
    shown("somebody@host", "somebody@host");
    shown("mongodb://h/d", "mongodb://h/d");
    shown("mongodb://h1:1,[::1]:2/d?replicaSet=rs0&w=1",
          "mongodb://h1:1,[::1]:2/d?replicaSet=rs0&w=1");
    shown("mongodb://u:secret@h/d", "mongodb://...@h/d");
    shown("mongodb+srv://u:secret@h/d?tls=true", "mongodb+srv://...@h/d?tls=true");
    shown("mongodb://h/d?tlsCertificateKeyFilePassword=secret&tls=true",
          "mongodb://h/d?tlsCertificateKeyFilePassword=...&tls=true");
    shown("mongodb://u:secret@h/d?REPLICASET=rs0&authMechanismProperties=AWS_SESSION_TOKEN:secret",
          "mongodb://...@h/d?REPLICASET=rs0&authMechanismProperties=...");
    shown("mongodb://h/d?what=secret;w=1", "mongodb://h/d?what=...;w=1");
    shown("mongodb://h/d?secret", "mongodb://h/d?secret");
    /* Where it is not clear what is what, nothing is. */
    shown("mongodb://u:se@cret@h/d", "mongodb://...@h/d");
    shown("mongodb://u:se/cret@h/d", "mongodb://...@h/d");
    shown("mongodb://u:se?cret@h/d", "mongodb://...");
    shown("mongodb://h/d?tlsCertificateKeyFilePassword=a@secret", "mongodb://...");
    shown("mongodb://u:secret/d", "mongodb://...");
}

static void what_is_too_long_is_cut(void **state)
{
    (void)state;
    const char *setting =
        "mongodb://u:secret@host/database?tlsCertificateKeyFilePassword=secret&w=1";
    char whole[128], out[128];
    fb_document_store_hide(setting, whole, sizeof whole);
    for (size_t len = 1; len < sizeof out; len++) {
        memset(out, 'x', sizeof out);
        fb_document_store_hide(setting, out, len);
        size_t expected = strlen(whole) < len - 1 ? strlen(whole) : len - 1;
        assert_int_equal(strlen(out), expected);
        assert_memory_equal(out, whole, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_secret_is_not_shown),
        cmocka_unit_test(what_is_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
