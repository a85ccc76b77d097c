/* settings.h - the settings of an operator, each with its origin. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sent instead of settings that could not be read, followed by the cause. */
#define SETTINGS_REFUSED "!"

enum { SETTING_SIZE = 256, SETTING_ORIGIN_SIZE = 160, SETTINGS_TEXT_MAX = 4096 };

enum setting_id {
#define SETTING(key, ...) SETTING_##key,
#include "policy/settings.def"
    SETTINGS
};

enum setting_type {
    SETTING_TEXT,
    SETTING_FILE,
    SETTING_FLAG,
    SETTING_COUNT,
    SETTING_LEVEL,
    SETTING_FORMAT,
    SETTING_SYNC,
};

/* The programs that get a value, as bits. */
enum { SETTING_TO_DAEMON = 1, SETTING_TO_EGRESS = 2, SETTING_TO_NOTIFY = 4 };

struct setting_row {
    const char *key, *flag;
    enum setting_type type;
    const char *start;
    uint64_t min, max;
    bool reloads; /* a running daemon applies a change */
    unsigned programs;
    const char *text;
};

extern const struct setting_row setting_rows[SETTINGS];

struct settings {
    struct setting_value {
        char text[SETTING_SIZE];
        uint64_t number; /* of a COUNT or FLAG; of a word its index among the words of its type */
        char origin[SETTING_ORIGIN_SIZE]; /* "default", "glovebox.yaml:3:8", "GLOVEBOX_SLOTS",
                                             "--slots" */
    } list[SETTINGS];
};

void settings_init(struct settings *settings); /* nothing is set */

/* Sets one. Fails  ERR_BAD_REQUEST  "slots must be 1 to 4096, not '0'". */
int settings_set(struct settings *settings, enum setting_id id, const char *value,
                 const char *origin, error *err);

/* Checks settings that depend on each other, and URLs. */
int settings_check(const struct settings *settings, error *err);

/* The text of a setting; NULL if it is empty, or if `settings` is NULL. */
const char *settings_text(const struct settings *settings, enum setting_id id);

/* True if it is a URL, and not a file or a word. */
bool setting_is_url(const char *value);

/* Finds a setting by its key; SETTINGS if there is none. */
enum setting_id setting_find(const char *key);

/* Writes what differs: "queue 256 -> 512, slots 64 -> 8". `reloads`: only those that a running
 * daemon applies; false: only the others. Returns how many. */
unsigned settings_differ(const struct settings *before, const struct settings *after, bool reloads,
                         char *text, size_t size);
