/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: flag, then FABERIO_... in the environment, then the file, then the default. */
#ifndef FB_RUNTIME_SETTINGS_H
#define FB_RUNTIME_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum fb_setting {
    FB_SET_HOME,            /* the node's directory */
    FB_SET_LISTEN,          /* HOST:PORT for peers, "none" for no listener */
    FB_SET_ADVERTISE,       /* HOST:PORT that invites name; empty: the listener's */
    FB_SET_API,             /* HOST:PORT of the loopback API, empty: only the socket */
    FB_SET_STORE,           /* local, or mongodb://HOST/DATABASE */
    FB_SET_LOG_FORMAT,      /* text or json */
    FB_SET_RECORD,          /* PATH of a recording's files; empty: none is made */
    FB_SET_RECORD_KEY,      /* public key that opens them, in hex; empty: that of the home */
    FB_SET_RECORD_MAX,      /* bytes of all of them together */
    FB_SET_COMMAND_TIMEOUT, /* how long a command waits for a node that says nothing */
    FB_SETTINGS,
} fb_setting;

typedef struct fb_setting_value {
    char text[512];
    char origin[600]; /* "flag --listen", "FABERIO_LISTEN", "FILE:LINE", "default" */
} fb_setting_value;

/* Room for a sentence about one. */
#define FB_SETTINGS_WHY 1280

typedef struct fb_settings {
    char file[512]; /* the file that was read, or would be; may be absent */
    fb_setting_value values[FB_SETTINGS];
} fb_settings;

/* flag(user, name) gives the value of a flag or NULL; the flags are "home", "config" and the names
 * of fb_setting_name. False with a sentence in why: an unknown name or a malformed line of the file
 * (with file and line), or a file that was asked for and is not there. */
bool fb_settings_load(fb_settings *settings,
                      const char *(*flag)(const void *user, const char *name), const void *user,
                      char *why, size_t why_len);

/* Can this value be meant? False with a sentence in why that names the setting and its origin. */
bool fb_settings_check(const fb_settings *settings, fb_setting which, char *why, size_t why_len);
bool fb_settings_check_all(const fb_settings *settings, char *why, size_t why_len);

/* As in the file and, after two hyphens, on the command line. */
const char *fb_setting_name(fb_setting setting);

static inline const char *fb_settings_get(const fb_settings *settings, fb_setting setting)
{
    return settings->values[setting].text;
}

#endif
