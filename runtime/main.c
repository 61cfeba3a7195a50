/* SPDX-License-Identifier: Apache-2.0 */
/* The program people run: the table of commands, and help made from it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/command/cli.h"
#include "runtime/command/commands.h"
#include "runtime/command/conformance.h"
#include "runtime/command/envelope.h"
#include "runtime/command/key.h"
#include "runtime/command/sim.h"

#ifndef FB_VERSION
#define FB_VERSION "unknown"
#endif

#define RUN_OPTIONS "listen= advertise= api= store= log-format= record= record-key= record-max="

static const fb_command commands[] = {
    {"init", "[--home DIR]", "make a node: keys and directory; safe to repeat", "",
     "Prints the node id, its fingerprint in words, and once the recovery key.", 0, 0, fb_cmd_init,
     NULL},
    {"run", "[--listen HOST:PORT] [--api HOST:PORT]", "run the node in the foreground", RUN_OPTIONS,
     "  --listen HOST:PORT     for peers; default :7700; none for no listener\n"
     "  --advertise HOST:PORT  what invites name; default the listener's address\n"
     "  --api HOST:PORT        the API on a loopback port as well, with tokens\n"
     "  --store local          everything in the node's directory\n"
     "  --store mongodb://HOST/DATABASE\n"
     "                         records of collections in MongoDB, the rest in the directory\n"
     "  --log-format FORMAT    text (key=value) or json\n"
     "  --record PATH          what the node lives through, to be replayed by `faberio sim "
     "record`:\n"
     "                         PATH.000001 and on, sealed to the key record.pub of the directory\n"
     "  --record-key HEX       ... or to this one\n"
     "  --record-max SIZE      of all of them together; default 1g\n"
     "Prints five lines when the node answers, then one line per event.\n"
     "SIGTERM or SIGINT: open requests end, then the node; a second one ends it at once.",
     0, 0, fb_cmd_run, NULL},
    {"status", "", "what the running node is and does", "",
     "Exit code 6 when the node runs but is not ready.", 0, 0, fb_cmd_status, NULL},
    {"doctor", "[SPACE[/COLLECTION[/ID]]]", "what is wrong, and why something is not there", "",
     "Without an item: the node's store, disk, descriptors, listener, spaces and clocks, with a\n"
     "remedy for what is wrong. With one: what this node has of it, and for each member whether\n"
     "it can come from there or go to it. Exit code 6 when a check failed.",
     0, 1, fb_cmd_doctor, NULL},
    {"scrub", "", "look at every value of the store", "",
     "Reads all of it while the node goes on, and compares each value with its checksum.\n"
     "Exit code 1 when some do not match.",
     0, 0, fb_cmd_scrub, NULL},
    {"store migrate", "--from STORE --to STORE", "move the records of a node that does not run",
     "from= to=",
     "STORE: one of them `local`, the other one mongodb://HOST/DATABASE.\n"
     "What was moved is read back and compared before it is given up where it was. One that was\n"
     "interrupted goes on when it is called again. Exit code 75 when the server does not answer "
     "or\n"
     "the node runs, 5 when other programs changed documents that the node has not read yet.",
     0, 0, fb_cmd_store_migrate, NULL},
    {"peers", "", "links and addresses of peers", "", NULL, 0, 0, fb_cmd_peers, NULL},
    {"peers add", "HOST:PORT [--space SPACE]", "dial this address from now on", "space=", NULL, 1,
     1, fb_cmd_peers_add, NULL},
    {"peers forget", "HOST:PORT [--space SPACE]", "do not dial it any more", "space=", NULL, 1, 1,
     fb_cmd_peers_forget, NULL},
    {"config show", "[--origin]", "the settings in force, and where each comes from",
     "listen= advertise= api= store= log-format= record= record-key= record-max= origin",
     "Those of the node that runs in this home. When none runs, or with a flag about a setting or "
     "a\n"
     "file, those that a start would have. Order: flag, FABERIO_... in the environment, the file\n"
     "(--config FILE), the default.",
     0, 0, fb_cmd_config_show, NULL},

    {"envelope", "VERB ...", "sign, verify, canonical, convert, inspect", "", NULL, 0, -1, NULL,
     fb_cmd_envelope},
    {"key", "VERB ...", "new, show: key files; backup, restore: a node's keys", "", NULL, 0, -1,
     NULL, fb_cmd_key},
    {"conformance", "adapter", "answer the conformance suite on standard input and output", "",
     NULL, 0, -1, NULL, fb_cmd_conformance},
    {"sim", "VERB ...", "the simulator: run, checks, faults, mutants, bench", "", NULL, 0, -1, NULL,
     fb_cmd_sim},

    {"space create", "NAME", "a new space with this node as its admin", "", NULL, 1, 1,
     fb_cmd_space_create, NULL},
    {"space list", "", "the spaces this node takes part in", "", NULL, 0, 0, fb_cmd_space_list,
     NULL},
    {"space invite", "SPACE [--uses N] [--for TIME] [--address HOST:PORT]",
     "an invite to pass on to one person", "uses= for= address=",
     "  --uses N             how many nodes may use it; default 1\n"
     "  --for TIME           90s, 15m, 2h, 7d; default a day\n"
     "  --address HOST:PORT  where this node can be dialled",
     1, 1, fb_cmd_space_invite, NULL},
    {"space join", "INVITE|- [--timeout TIME]",
     "ask to join; returns once a member has taken the request", "timeout=",
     "  -               reads the invite from standard input\n"
     "  --timeout TIME  100s unless told; then the request is given up (exit code 75)\n"
     "Interrupted or given up, nothing of the space stays here.",
     1, 1, fb_cmd_space_join, NULL},
    {"space leave", "SPACE", "be a member no more, or give a request to join up", "",
     "A member states that it leaves; what it has of the space stays here. Exit code 5 for the "
     "last\n"
     "admin, and for a request that a member has taken.",
     1, 1, fb_cmd_space_leave, NULL},
    {"space delete", "SPACE --yes", "forget all that this node has of a space", "yes",
     "On a node that does not run, of a space that it left, was put out of, asked to join, or is\n"
     "the only member of. Records, history, members and rights of applications go from its store; "
     "other\n"
     "members keep what they have. Exit code 5 for a member beside others (space leave), 75 when\n"
     "the node runs. What was interrupted goes on when it is called again.",
     1, 1, fb_cmd_space_delete, NULL},
    {"space members", "SPACE", "who takes part, with role and status", "", NULL, 1, 1,
     fb_cmd_space_members, NULL},
    {"space approve", "SPACE NODE [--role admin|writer|reader]", "let a node in that asked to join",
     "role=", "Default role: writer. Exit code 5 when the node has not asked.", 2, 2,
     fb_cmd_space_approve, NULL},
    {"space role", "SPACE NODE admin|writer|reader", "what a member may do", "",
     "Admins alone may say so. A reader's writes are refused, at its node and everywhere.", 3, 3,
     fb_cmd_space_role, NULL},
    {"space revoke", "SPACE NODE", "put a member out, with a cut at what is held of it here", "",
     "What it signed and this node does not have is refused everywhere from now on: lost_batches "
     "says\n"
     "how much of that is known. `space approve` lets it in again. Exit code 5 for the last admin.",
     2, 2, fb_cmd_space_revoke, NULL},
    {"space replace", "SPACE OLD NEW [--role admin|writer|reader]",
     "a new node in the place of one that is lost", "role=",
     "NEW, which has asked with an invite, gets the role of OLD; then OLD is put out, with a cut "
     "at\n"
     "what is held of it here. What it signed before stays; folding waits for it no longer. Can "
     "be\n"
     "called again when it was interrupted.\n"
     "  --role  another one than that of OLD; needed when OLD is out already, or NEW a member\n"
     "          with another role",
     3, 3, fb_cmd_space_replace, NULL},
    {"space recover", "SPACE NODE --recovery-file FILE|-",
     "a member is an admin, by the recovery key of the space", "recovery-file=",
     "For when the last admin is lost, or an admin's key is in other hands. The recovery key is "
     "the\n"
     "one that `init` showed at the node which made the space; --recovery-file FILE has it, or - "
     "for\n"
     "standard input. It is used here and not given to the node. NODE is senior to every other\n"
     "admin afterwards, the one that made the space included, and can put them out. Where members\n"
     "were put out and hear of nobody, say it at each of them.",
     2, 2, fb_cmd_space_recover, NULL},
    {"space rename", "SPACE NAME", "call a space otherwise, at every member; its id stays", "",
     NULL, 2, 2, fb_cmd_space_rename, NULL},

    {"app create", "NAME", "a new application and its token", "", "The token is shown only now.", 1,
     1, fb_cmd_app_create, NULL},
    {"app allow", "NAME SPACE", "let an application use a space", "", NULL, 2, 2, fb_cmd_app_allow,
     NULL},
    {"app revoke", "NAME", "end an application's token", "", NULL, 1, 1, fb_cmd_app_revoke, NULL},

    {"record put", "SPACE COLLECTION ID|new FIELD=JSON...", "write fields of a record",
     "if-match= if-absent replace",
     "  FIELD+=N         add to a counter, or to the integer that is there\n"
     "  FIELD:+=JSON     insert into a set; FIELD:-=JSON removes\n"
     "  --replace        remove the fields that are not named\n"
     "  --if-match ETAG  only if the record is still that one (exit code 5)\n"
     "  --if-absent      only if there is none (exit code 5)\n"
     "A text needs its quotes: 'title=\"A title\"'. Prints the record, durable when it does.",
     4, -1, fb_cmd_record_put, NULL},
    {"record get", "SPACE COLLECTION ID", "one record; exit code 1 when absent or deleted", "",
     NULL, 3, 3, fb_cmd_record_get, NULL},
    {"record delete", "SPACE COLLECTION ID [--if-match ETAG]", "delete a record", "if-match=", NULL,
     3, 3, fb_cmd_record_delete, NULL},
    {"record list", "SPACE COLLECTION [--limit N] [--after ID]",
     "records in the order of their ids", "limit= after=", NULL, 2, 2, fb_cmd_record_list, NULL},
    {"record import", "SPACE COLLECTION FILE|- [--from LINE]",
     "write the records of a file, a JSON object a line", "from=",
     "A line: {\"id\":ID,\"fields\":{NAME:VALUE}}, without an id a new record, or\n"
     "{\"id\":ID,\"delete\":true}; what `record list --json` prints can be read again.\n"
     "  --from LINE  begin there: an import that stopped says where to go on\n"
     "The whole file is checked before anything is written. Up to 64 lines make one write set,\n"
     "which is stored whole or not at all.",
     3, 3, fb_cmd_record_import, NULL},
    {"record watch", "SPACE [COLLECTION] [--since CURSOR]",
     "a line for each change, as it is applied here",
     "since=", "Without --since only what is new. Says `watching` on standard error first.", 1, 2,
     fb_cmd_record_watch, NULL},

    {"export", "SPACE OUT", "the records of a space as a file, all of one moment", "",
     "Reads the store itself, whether the node runs or not. A file that is there is not written\n"
     "over. Every line has a checksum over itself and all before it.",
     2, 2, fb_cmd_export, NULL},
    {"import", "FILE|- [--space SPACE] [--displayed]", "write the records of an export",
     "space= displayed",
     "Into a new space with the name of the old one; the node writes them as its own.\n"
     "  --space SPACE  into this one; records that are there stay as they are\n"
     "  --displayed    of a field with several values take the displayed one\n"
     "The whole file is checked before anything is written.",
     1, 1, fb_cmd_import, NULL},

    {"verify", "SPACE [--peers]", "is what this node holds of a space whole?", "peers",
     "Reads every record at one moment, whether the node runs or not, and works out all\n"
     "fingerprints anew. What is wrong is named on standard error; exit code 6.\n"
     "  --peers  ask each member which collections it has and whether it holds the same, and say\n"
     "           where not; the node has to run. Exit code 6: members with the same changes hold\n"
     "           other records; 75: changes are on their way, ask again; 3: some member is not\n"
     "           linked, so it was not asked, and all others hold the same",
     1, 1, fb_cmd_verify, NULL},

    {"conflicts list", "SPACE", "fields that have more than one value", "",
     "Writers who had not seen each other: the displayed value first, then the others.", 1, 1,
     fb_cmd_conflicts_list, NULL},
    {"conflicts resolve", "SPACE ITEM --keep mine|theirs|both|VALUE", "settle one of them", "keep=",
     "ITEM is what `conflicts list` shows: COLLECTION/ID/FIELD.\n"
     "  mine    the value that this node wrote last\n"
     "  theirs  the first of the others\n"
     "  both    an array of all of them\n"
     "  VALUE   any JSON: '\"a text needs its quotes\"'\n"
     "Exit code 5 when the record changed meanwhile: look again.",
     2, 2, fb_cmd_conflicts_resolve, NULL},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

/* What the command contract names and this version does not have: said, so that nobody takes it for
 * a mistyped name. */
static const char *const not_built[] = {
    "file",   "file put",    "file get",   "file list",      "file delete",
    "policy", "policy show", "policy set", "policy explain", "key rotate",
};

static void usage(FILE *out)
{
    fputs("usage: faberio COMMAND [ARGUMENTS] [--home DIR] [--config FILE] [--json]\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\nfaberio help COMMAND says more.\n\n"
          "Exit codes: 0 ok, 1 failed or refused, 2 usage, 3 not running or unreachable,\n"
          "4 not authorised, 5 conflict or precondition, 6 degraded, 75 try again.\n",
          out);
}

/* The command that argv begins with, and how many words its name has. */
static const fb_command *find(int argc, char **argv, int *words)
{
    const fb_command *found = NULL;
    *words = 0;
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *space = strchr(commands[i].name, ' ');
        size_t first =
            space != NULL ? (size_t)(space - commands[i].name) : strlen(commands[i].name);
        if (argc < 1 || strlen(argv[0]) != first || memcmp(argv[0], commands[i].name, first) != 0) {
            continue;
        }
        int count = space == NULL ? 1 : argc > 1 && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
        if (count > *words) {
            *words = count;
            found = &commands[i];
        }
    }
    return found;
}

/* The one of those that argv begins with, or NULL. */
static const char *find_not_built(int argc, char **argv)
{
    const char *found = NULL;
    for (size_t i = 0; i < sizeof not_built / sizeof not_built[0]; i++) {
        const char *name = not_built[i];
        size_t first = strcspn(name, " ");
        if (strlen(argv[0]) != first || memcmp(argv[0], name, first) != 0) continue;
        bool two = name[first] == ' ';
        if (two ? argc > 1 && strcmp(argv[1], name + first + 1) == 0 : found == NULL) found = name;
    }
    return found;
}

/* The name with its arguments. */
static void call(FILE *out, const char *before, const fb_command *command)
{
    fprintf(out, "%sfaberio %s%s%s\n", before, command->name, command->arguments[0] != 0 ? " " : "",
            command->arguments);
}

/* The commands that begin with this word and have a second one; false when there are none. */
static bool group(FILE *out, const char *word)
{
    bool some = false;
    size_t len = strlen(word);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i].name, word, len) != 0 || commands[i].name[len] != ' ') continue;
        call(out, "", &commands[i]);
        fprintf(out, "    %s\n", commands[i].summary);
        some = true;
    }
    return some;
}

static int help(int argc, char **argv)
{
    int words;
    const fb_command *command = find(argc, argv, &words);
    if (argc == 0) {
        usage(stdout);
        return FB_EXIT_OK;
    }
    if (find_not_built(argc, argv) != NULL) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s is not built in this version",
                           find_not_built(argc, argv));
    }
    if (command == NULL) {
        if (group(stdout, argv[0])) return FB_EXIT_OK;
        return fb_cli_fail(FB_EXIT_USAGE, "no command %s; faberio help lists them", argv[0]);
    }
    if (command->raw != NULL) {
        char *arguments[] = {argv[0], (char[]){"--help"}, NULL, NULL};
        if (argc > 1) {
            arguments[2] = arguments[1];
            arguments[1] = argv[1];
        }
        return command->raw(argc > 1 ? 3 : 2, arguments);
    }
    call(stdout, "usage: ", command);
    bool asks = command->summary[strlen(command->summary) - 1] == '?';
    printf("\n%s%s\n", command->summary, asks ? "" : ".");
    if (command->help != NULL) printf("%s\n", command->help);
    group(stdout, command->name);
    return FB_EXIT_OK;
}

/* A file that is opened later must not become standard output or error: what is printed would be
 * written into it. Reading only, so that a result that nobody can get is an error. */
static bool fill_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) return false;
    }
    return true;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return FB_EXIT_USAGE;
    }
    argc--;
    argv++;
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0) {
        puts("faberio " FB_VERSION);
        return FB_EXIT_OK;
    }
    if (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0) {
        return help(argc - 1, argv + 1);
    }
    const char *missing = find_not_built(argc, argv);
    if (missing != NULL) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s is not built in this version", missing);
    }
    int words;
    const fb_command *command = find(argc, argv, &words);
    if (command == NULL) {
        /* The first word of two: say which second ones there are. */
        if (argc > 1 && strcmp(argv[1], "--help") == 0) return help(1, argv);
        if (group(stderr, argv[0])) {
            return fb_cli_fail(FB_EXIT_USAGE, "no command %s%s%s, but those above", argv[0],
                               argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
        }
        return fb_cli_fail(FB_EXIT_USAGE, "no command %s; faberio help lists them", argv[0]);
    }
    if (command->raw != NULL) return command->raw(argc, argv);
    for (int i = words; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) return help(argc, argv);
    }
    static fb_cli cli;
    char why[FB_SETTINGS_WHY];
    if (!fb_cli_parse(&cli, command, argc - words, argv + words)) return FB_EXIT_USAGE;
    if (!fb_cli_settings(&cli, &cli.settings, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    }
    if (!fb_settings_check(&cli.settings, FB_SET_COMMAND_TIMEOUT, why, sizeof why)) {
        return fb_cli_usage(&cli, "%s", why);
    }
    fb_cli_duration(fb_settings_get(&cli.settings, FB_SET_COMMAND_TIMEOUT), &cli.wait_s);
    return command->run(&cli);
}

int main(int argc, char **argv)
{
    if (!fill_standard()) return FB_EXIT_FAILED;
    int code = run(argc, argv);
    /* A result that could not be written, or only a part of it, is no success. What a node prints
     * is its log, and does not decide. */
    bool node = argc > 1 && strcmp(argv[1], "run") == 0;
    if (!node && (fflush(stdout) != 0 || ferror(stdout) != 0) && code == FB_EXIT_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "standard output cannot be written");
    }
    return code;
}
