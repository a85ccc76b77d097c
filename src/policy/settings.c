/* settings.c - the table of settings, and checks of their values. */
#include "policy/settings.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESTART = 0, RELOAD = 1 };
enum {
    SERVE = 0,
    DAEMON = SETTING_TO_DAEMON,
    EGRESS = SETTING_TO_EGRESS,
    NOTIFY = SETTING_TO_NOTIFY
};

const struct setting_row setting_rows[SETTINGS] = {
#define SETTING(key, flag, type, start, min, max, when, programs, text) \
    [SETTING_##key] = { #key, flag, SETTING_##type, start, min, max, when, programs, text },
#include "policy/settings.def"
};

/* The words of each type; a word's index is its number. */
static const char *const words[][6] = {
    [SETTING_FLAG] = { "false", "true", NULL },
    [SETTING_LEVEL] = { "error", "warning", "notice", "info", "debug", NULL },
    [SETTING_FORMAT] = { "logfmt", "json", NULL },
    [SETTING_SYNC] = { "group", "each", NULL },
};

void settings_init(struct settings *settings)
{
    error unused;
    for (enum setting_id id = 0; id < SETTINGS; id++)
        (void) settings_set(settings, id, setting_rows[id].start, "default", &unused);
}

const char *settings_text(const struct settings *settings, enum setting_id id)
{
    return settings && settings->list[id].text[0] ? settings->list[id].text : NULL;
}

bool setting_is_url(const char *value)
{
    return strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0;
}

enum setting_id setting_find(const char *key)
{
    enum setting_id id = 0;
    while (id < SETTINGS && strcmp(setting_rows[id].key, key) != 0)
        id++;
    return id;
}

static int read_word(const struct setting_row *row, const char *value, uint64_t *ret_number,
                     error *err)
{
    char all[64] = "";
    for (size_t i = 0; words[row->type][i]; i++) {
        if (strcmp(words[row->type][i], value) == 0) {
            *ret_number = i;
            return 0;
        }
        (void) text_list(all, sizeof all, words[row->type][i]);
    }
    return fail(err, ERR_BAD_REQUEST, "%s must be one of %s, not '%.40s'", row->key, all, value);
}

static int read_count(const struct setting_row *row, const char *value, uint64_t *ret_number,
                      error *err)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno != 0 || number < row->min ||
        number > row->max)
        return fail(err, ERR_BAD_REQUEST, "%s must be %" PRIu64 " to %" PRIu64 ", not '%.40s'",
                    row->key, row->min, row->max, value);
    *ret_number = number;
    return 0;
}

/* Checks a list of host names, or of origins as browsers send them (RFC 6454, 6.2). Others would
 * match nothing, without an error. */
static int check_list(const char *key, const char *list, bool has_scheme, error *err)
{
    while (*(list += strspn(list, ", "))) {
        const char *end = list + strcspn(list, ", "), *scheme = strstr(list, "://");
        const char *name = !has_scheme ? list : scheme ? scheme + 3 : end;
        if (name >= end || name + strcspn(name, has_scheme ? "/*?#@" : "/*?#@:") < end)
            return fail(err, ERR_BAD_REQUEST, "%s: '%.*s' must be as %ssandbox.example.com", key,
                        (int) (end - list), list, has_scheme ? "https://" : "");
        list = end;
    }
    return 0;
}

/* Is it a URL of this machine, or encrypted? */
static bool is_safe_url(const char *text, const char *without)
{
    bool is_local =
        strncmp(text, "http://127.0.0.1", 16) == 0 || strncmp(text, "http://localhost", 16) == 0;
    return (is_local ? strchr(":/", text[16]) != NULL : strncmp(text, "https://", 8) == 0) &&
           !strpbrk(text, without);
}

int settings_check(const struct settings *settings, error *err)
{
    const char *url = settings->list[SETTING_approval_url].text;
    const char *issuer = settings->list[SETTING_oauth_issuer].text;
    const char *audience = settings->list[SETTING_oauth_audience].text;
    if (*url && (!is_safe_url(url, " \"\\<>") || !strstr(url, "{id}")))
        return fail(err, ERR_BAD_REQUEST,
                    "approval_url is an https:// URL with {id} where the id of an approval goes");
    if (!*issuer && !*audience && !*settings->list[SETTING_oauth_keys].text)
        return 0;
    if (!is_safe_url(issuer, " \"\\<>?#") || !is_safe_url(audience, " \"\\<>?#"))
        return fail(err, ERR_BAD_REQUEST,
                    "oauth_issuer and oauth_audience are URLs, https:// or of this machine, "
                    "without a query; both are needed, and oauth_keys");
    if (settings->list[SETTING_oauth_keys].text[0] != '/')
        return fail(err, ERR_BAD_REQUEST,
                    "oauth_keys is the path of a file with the keys of the issuer, from /");
    return 0;
}

int settings_set(struct settings *settings, enum setting_id id, const char *value,
                 const char *origin, error *err)
{
    const struct setting_row *row = &setting_rows[id];
    struct setting_value read = { 0 };
    if (id == SETTING_listen && strcmp(value, "none") == 0)
        value = "";
    if (strlen(value) >= sizeof read.text)
        return fail(err, ERR_BAD_REQUEST, "%s is longer than %zu bytes", row->key,
                    sizeof read.text - 1);
    if (strpbrk(value, "\n\t") || text_find_unclean(value, strlen(value)) != strlen(value))
        return fail(err, ERR_BAD_REQUEST, "%s has a control character, or is not UTF-8", row->key);
    if ((row->type == SETTING_COUNT && read_count(row, value, &read.number, err) < 0) ||
        ((id == SETTING_public_hosts || id == SETTING_allowed_origins) &&
         check_list(row->key, value, id == SETTING_allowed_origins, err) < 0))
        return -1;
    if (row->type != SETTING_COUNT && row->type != SETTING_TEXT && row->type != SETTING_FILE &&
        read_word(row, value, &read.number, err) < 0)
        return -1;
    (void) snprintf(read.text, sizeof read.text, "%s", value);
    (void) snprintf(read.origin, sizeof read.origin, "%s", origin);
    settings->list[id] = read;
    return 0;
}

unsigned settings_differ(const struct settings *before, const struct settings *after, bool reloads,
                         char *text, size_t size)
{
    unsigned count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        const char *was = before->list[id].text;
        const char *is = after->list[id].text;
        if (setting_rows[id].reloads != reloads || strcmp(was, is) == 0)
            continue;
        if (used < size)
            used +=
                (size_t) snprintf(text + used, size - used, "%s%s %s -> %s", count > 0 ? ", " : "",
                                  setting_rows[id].key, *was ? was : "unset", *is ? is : "unset");
        count++;
    }
    return count;
}
