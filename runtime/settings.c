/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    const char *variable;
    const char *fallback;
} rows[FB_SETTINGS] = {
    [FB_SET_HOME] = {"home", "FABERIO_HOME", ""},
    [FB_SET_LISTEN] = {"listen", "FABERIO_LISTEN", ":7700"},
    [FB_SET_ADVERTISE] = {"advertise", "FABERIO_ADVERTISE", ""},
    [FB_SET_API] = {"api", "FABERIO_API", ""},
    [FB_SET_STORE] = {"store", "FABERIO_STORE", "local"},
    [FB_SET_LOG_FORMAT] = {"log-format", "FABERIO_LOG_FORMAT", "text"},
    [FB_SET_RECORD] = {"record", "FABERIO_RECORD", ""},
    [FB_SET_RECORD_KEY] = {"record-key", "FABERIO_RECORD_KEY", ""},
    [FB_SET_RECORD_MAX] = {"record-max", "FABERIO_RECORD_MAX", "1g"},
    [FB_SET_COMMAND_TIMEOUT] = {"command-timeout", "FABERIO_COMMAND_TIMEOUT", "30s"},
};

#define FILE_BYTES_MAX 65536u

const char *fb_setting_name(fb_setting setting)
{
    return rows[setting].name;
}

/* NULL, or what is wrong with the value. */
static const char *set(fb_settings *s, fb_setting which, const char *value, const char *origin)
{
    fb_setting_value *v = &s->values[which];
    if (strlen(value) >= sizeof v->text) return "is too long";
    for (const char *p = value; *p != 0; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) return "has a control character in it";
    }
    snprintf(v->text, sizeof v->text, "%s", value);
    snprintf(v->origin, sizeof v->origin, "%s", origin);
    return NULL;
}

/* Where XDG says, else under HOME, else the system's. */
static void default_path(char *out, size_t len, const char *xdg, const char *under_home,
                         const char *leaf, const char *system)
{
    const char *base = getenv(xdg), *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        snprintf(out, len, "%s/%s", base, leaf);
    } else if (home != NULL && home[0] == '/') {
        snprintf(out, len, "%s/%s/%s", home, under_home, leaf);
    } else {
        snprintf(out, len, "%s", system);
    }
}

typedef struct reading {
    fb_settings *settings;
    const char *rest; /* of the file's text */
    int line;         /* the one that was handed to the parser last */
    char wrong[160];
} reading;

/* The parser takes its lines from here, so that each setting's line is known. */
static char *next_line(char *out, int cap, void *user)
{
    reading *r = user;
    if (*r->rest == 0) return NULL;
    size_t len = strcspn(r->rest, "\n");
    len += r->rest[len] == '\n';
    if (len > (size_t)cap - 1) len = (size_t)cap - 1;
    memcpy(out, r->rest, len);
    out[len] = 0;
    r->rest += len;
    r->line++;
    return out;
}

static int file_line(void *user, const char *section, const char *name, const char *value)
{
    reading *r = user;
    if (section[0] != 0 && strcmp(section, "node") != 0) {
        snprintf(r->wrong, sizeof r->wrong, "no section [%.60s]; settings stand at the top",
                 section);
        return 0;
    }
    for (int i = 0; i < FB_SETTINGS; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        char origin[sizeof r->settings->values[0].origin];
        snprintf(origin, sizeof origin, "%s:%d", r->settings->file, r->line);
        const char *wrong = set(r->settings, (fb_setting)i, value, origin);
        if (wrong != NULL) snprintf(r->wrong, sizeof r->wrong, "the value of %s %s", name, wrong);
        return wrong == NULL;
    }
    snprintf(r->wrong, sizeof r->wrong, "no setting is called %.60s", name);
    return 0;
}

/* At most one byte more than FILE_BYTES_MAX of it: a device may have no end. */
static int read_all(const char *path, char *text, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return errno;
    ssize_t n = 1;
    while (*len <= FILE_BYTES_MAX && n != 0) {
        n = read(fd, text + *len, FILE_BYTES_MAX + 1 - *len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        *len += (size_t)n;
    }
    int error = n < 0 ? errno : 0;
    close(fd);
    return error;
}

static bool read_file(fb_settings *s, bool asked_for, char *why, size_t why_len)
{
    reading r = {.settings = s};
    static char text[FILE_BYTES_MAX + 1];
    size_t len = 0;
    int error = read_all(s->file, text, &len);
    if (error != 0) {
        if (error == ENOENT && !asked_for) return true;
        snprintf(why, why_len, "%s: %s", s->file, strerror(error));
        return false;
    }
    if (len > FILE_BYTES_MAX || memchr(text, 0, len) != NULL) {
        snprintf(why, why_len, "%s: %s", s->file,
                 len > FILE_BYTES_MAX ? "longer than settings are" : "a zero byte in it");
        return false;
    }
    text[len] = 0;
    r.rest = text;
    int line = ini_parse_stream(next_line, &r, file_line, &r);
    if (line != 0) {
        snprintf(why, why_len, "%s:%d: %s", s->file, line,
                 r.wrong[0] != 0 ? r.wrong : "not a line of the form NAME = VALUE");
        return false;
    }
    return true;
}

bool fb_settings_load(fb_settings *s, const char *(*flag)(const void *user, const char *name),
                      const void *user, char *why, size_t why_len)
{
    memset(s, 0, sizeof *s);
    char home[512];
    default_path(home, sizeof home, "XDG_STATE_HOME", ".local/state", "faberio",
                 "/var/lib/faberio");
    for (int i = 0; i < FB_SETTINGS; i++) set(s, (fb_setting)i, rows[i].fallback, "default");
    set(s, FB_SET_HOME, home, "default");

    const char *config = flag(user, "config");
    if (config == NULL) config = getenv("FABERIO_CONFIG");
    if (config != NULL) {
        snprintf(s->file, sizeof s->file, "%s", config);
    } else {
        default_path(s->file, sizeof s->file, "XDG_CONFIG_HOME", ".config", "faberio/faberio.conf",
                     "/etc/faberio/faberio.conf");
    }
    if (!read_file(s, config != NULL, why, why_len)) return false;
    for (int i = 0; i < FB_SETTINGS; i++) {
        char origin[64];
        const char *given = getenv(rows[i].variable);
        const char *wrong = given != NULL ? set(s, (fb_setting)i, given, rows[i].variable) : NULL;
        if (wrong != NULL) {
            snprintf(why, why_len, "%s %s: %.100s", rows[i].variable, wrong, given);
            return false;
        }
        given = flag(user, rows[i].name);
        snprintf(origin, sizeof origin, "flag --%s", rows[i].name);
        wrong = given != NULL ? set(s, (fb_setting)i, given, origin) : NULL;
        if (wrong != NULL) {
            snprintf(why, why_len, "--%s %s: %.100s", rows[i].name, wrong, given);
            return false;
        }
    }
    return true;
}
