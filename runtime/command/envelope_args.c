/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/envelope_args.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "runtime/command/cli.h"

static const char *const verbs[] = {"sign", "verify", "canonical", "convert", "inspect"};

void fb_envelope_help(void)
{
    fputs(
        "usage: faberio envelope VERB [OPTIONS] FILE|-...\n"
        "\n"
        "  sign --key FILE       fill in source_node_id and signature\n"
        "  verify                accept or refuse, with the reason\n"
        "    --context FILE      the whole order of checks, against a receiver's state (JSON)\n"
        "    --public-key HEX    form and signature only, with this key\n"
        "  canonical             the signed bytes, as hex\n"
        "  convert --to json|protobuf\n"
        "    --hex               protobuf as a line of hex each\n"
        "  inspect               all that can be read, also of a refused envelope\n"
        "\n"
        "  --from json|protobuf  the encoding of the input; default json\n"
        "  --lines               one JSON envelope a line\n"
        "  --frames              protobuf length-prefixed (u32 big-endian), in and out\n"
        "\n"
        "One result per input on standard output, in order; a refusal also names file and line on\n"
        "standard error. Exit codes: 0 all accepted, 1 one refused or unreadable, 2 usage.\n",
        stdout);
}

static bool usage(const char *verb, const char *what, const char *name)
{
    fputs(verb[0] != '\0' ? "faberio envelope " : "faberio envelope", stderr);
    fb_cli_put_visible(verb);
    fprintf(stderr, ": %s%s", what, name[0] != '\0' ? " " : "");
    fb_cli_put_visible(name);
    fputs("\nfaberio envelope --help says more.\n", stderr);
    return false;
}

static bool encoding(const char *text, bool *protobuf)
{
    *protobuf = strcmp(text, "protobuf") == 0;
    return *protobuf || strcmp(text, "json") == 0;
}

/* Takes the value of option `name` from "--name=value" or the next argument. 0: another option;
 * -1: the value is missing. */
static int take(int argc, char **argv, int *at, const char *name, const char **value)
{
    size_t len = strlen(name);
    if (strncmp(argv[*at], name, len) != 0) return 0;
    if (argv[*at][len] == '=') {
        *value = argv[*at] + len + 1;
        return 1;
    }
    if (argv[*at][len] != '\0') return 0;
    if (*at + 1 >= argc) return -1;
    *value = argv[++*at];
    return 1;
}

/* One option. False after it said what is wrong. */
static bool option(fb_envelope_args *a, int argc, char **argv, int *at)
{
    const char *name = argv[*at], *value = NULL;
    if (strcmp(name, "--lines") == 0) return a->lines = true;
    if (strcmp(name, "--frames") == 0) return a->frames = true;
    if (strcmp(name, "--hex") == 0) return a->hex = true;
    if (strcmp(name, "--help") == 0) return a->help = true;
    if (strcmp(name, "--json") == 0) return true; /* the results are JSON already */
    static const char *const valued[] = {"--key", "--context", "--public-key", "--from", "--to"};
    int which = -1, found = 0;
    for (int i = 0; i < 5 && found == 0; i++) {
        found = take(argc, argv, at, valued[i], &value);
        which = i;
    }
    if (found == 0) return usage(a->verb_name, "no option", name);
    if (found < 0) return usage(a->verb_name, name, "needs a value");
    switch (which) {
    case 0:
        a->key = value;
        return true;
    case 1:
        a->context = value;
        return true;
    case 2:
        a->has_public_key =
            fb_hex_parse(fb_span_text(value), a->public_key.b, sizeof a->public_key.b);
        if (a->has_public_key) return true;
        return usage(a->verb_name, "--public-key is 64 lowercase hex digits, not", value);
    case 3:
        if (encoding(value, &a->from_protobuf)) return true;
        return usage(a->verb_name, "--from is json or protobuf, not", value);
    default:
        a->to_set = true;
        if (encoding(value, &a->to_protobuf)) return true;
        return usage(a->verb_name, "--to is json or protobuf, not", value);
    }
}

/* What goes together. */
static bool check(const fb_envelope_args *a)
{
    const char *verb = a->verb_name;
    bool out_protobuf = a->verb == FB_VERB_CONVERT && a->to_protobuf;
    if (a->verb == FB_VERB_SIGN && a->key == NULL) return usage(verb, "--key FILE is missing", "");
    if (a->verb != FB_VERB_SIGN && a->key != NULL) return usage(verb, "--key is for sign", "");
    if (a->verb != FB_VERB_VERIFY && (a->context != NULL || a->has_public_key)) {
        return usage(verb, "--context and --public-key are for verify", "");
    }
    if (a->context != NULL && a->has_public_key) {
        return usage(verb, "either --context or --public-key", "");
    }
    if (a->verb == FB_VERB_CONVERT && !a->to_set) {
        return usage(verb, "--to json or --to protobuf is missing", "");
    }
    if (a->verb != FB_VERB_CONVERT && a->to_set) return usage(verb, "--to is for convert", "");
    if (a->hex && !out_protobuf) return usage(verb, "--hex is for convert --to protobuf", "");
    if (a->lines && a->from_protobuf) {
        return usage(verb, "--lines is for JSON; protobuf comes with --frames", "");
    }
    if (a->frames && !a->from_protobuf && !out_protobuf) {
        return usage(verb, "--frames is for protobuf; JSON comes with --lines", "");
    }
    if (a->frames && a->hex && !a->from_protobuf) {
        return usage(verb, "either --hex or --frames for the output", "");
    }
    if (a->file_count == 0)
        return usage(verb, "no input: name a FILE, or - for standard input", "");
    if (a->file_count > 1 && out_protobuf && !a->hex && !a->frames) {
        return usage(verb, "more than one input needs --frames or --hex", "");
    }
    int standard = 0;
    for (int i = 0; i < a->file_count; i++) standard += strcmp(a->files[i], "-") == 0;
    if (standard > 1) return usage(verb, "standard input is given twice", "");
    return true;
}

bool fb_envelope_args_parse(int argc, char **argv, fb_envelope_args *out)
{
    *out = (fb_envelope_args){.verb_name = ""};
    if (argc < 2) return usage("", "no verb: sign, verify, canonical, convert or inspect", "");
    if (strcmp(argv[1], "--help") == 0) {
        out->help = true;
        return true;
    }
    size_t verb = 0;
    while (verb < sizeof verbs / sizeof verbs[0] && strcmp(argv[1], verbs[verb]) != 0) verb++;
    if (verb == sizeof verbs / sizeof verbs[0]) return usage("", "no verb", argv[1]);
    out->verb = (fb_envelope_verb)verb;
    out->verb_name = verbs[verb];
    out->files = argv + 2;
    bool only_files = false;
    for (int i = 2; i < argc; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0) {
            only_files = true;
        } else if (only_files || argv[i][0] != '-' || argv[i][1] == '\0') {
            /* Never ahead of i: the slot was read. */
            out->files[out->file_count++] = argv[i];
        } else if (!option(out, argc, argv, &i)) {
            return false;
        }
    }
    return out->help || check(out);
}
