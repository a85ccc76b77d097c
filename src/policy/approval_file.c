/* approval_file.c - reads `approval: {when: [network], by: out_of_band, scopes: [once], expires:
 * 15m}`, and has the names of its values. */
#include "policy/approval_file.h"

#include "base/table.h"
#include "base/text.h"

#include <string.h>

enum { EXPIRES_MIN_MS = 1000, EXPIRES_MAX_MS = 7 * 24 * 3600 * 1000, EXPIRES_MS = 15 * 60 * 1000 };

struct word {
    const char *name;
    uint32_t bit;
};

static const struct word asks[] = {
    { "always", ASKS_ALWAYS },
    { "network", ASKS_NETWORK },
    { "over_limits", ASKS_OVER_LIMITS },
    { "precheck_warning", ASKS_WARNING },
};

static const struct word scopes[] = {
    { "once", REACH_ONCE },
    { "code", REACH_CODE },
    { "session", REACH_SESSION },
    { "time", REACH_TIME },
};

uint64_t approval_expires_ms(const struct policy_approval *approval)
{
    return approval->expires_ms ? approval->expires_ms : EXPIRES_MS;
}

uint32_t approval_scopes(const struct policy_approval *approval)
{
    return approval->scopes ? approval->scopes : REACH_ONCE | REACH_CODE | REACH_SESSION;
}

static const char *name_of(const struct word *words, size_t count, uint32_t bit)
{
    for (size_t i = 0; i < count; i++)
        if (words[i].bit == bit)
            return words[i].name;
    return NULL;
}

const char *approval_asks_name(uint32_t bit)
{
    return bit == ASKS_CHECK ? "precheck" : name_of(asks, COUNT_OF(asks), bit);
}

const char *approval_scope_name(uint32_t bit)
{
    return name_of(scopes, COUNT_OF(scopes), bit);
}

static void list_words(const struct word words[4], uint32_t bits, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < 4; i++)
        if (bits & words[i].bit)
            (void) text_list(text, size, words[i].name);
}

void approval_print_asks(uint32_t bits, char *text, size_t size)
{
    list_words(asks, bits, text, size);
}

void approval_print_scopes(uint32_t bits, char *text, size_t size)
{
    list_words(scopes, bits, text, size);
}

/* Reads a list of words, each of which is a bit. */
static int read_words(const struct yaml *yaml, const struct yaml_node *value,
                      const struct word words[4], uint32_t *ret_bits, error *err)
{
    if (value->kind != YAML_SEQUENCE)
        return yaml_fail(yaml, value, err, "no list; write [%s, %s]", words[0].name, words[1].name);
    for (const struct yaml_node *item = yaml_first(yaml, value); item;
         item = yaml_next(yaml, item)) {
        uint32_t bit = 0;
        for (size_t i = 0; item->kind == YAML_TEXT && i < 4; i++)
            if (strcmp(words[i].name, item->text) == 0)
                bit = words[i].bit;
        if (bit == 0)
            return yaml_fail(yaml, item, err, "'%.*s' is none of %s, %s, %s, %s",
                             text_head(item->text ? item->text : "", 24),
                             item->text ? item->text : "", words[0].name, words[1].name,
                             words[2].name, words[3].name);
        *ret_bits |= bit;
    }
    return 0;
}

static int read_expires(const struct yaml *yaml, const struct yaml_node *value, uint64_t *ret_ms,
                        error *err)
{
    error unused;
    if (value->kind != YAML_TEXT || limit_parse(LIMIT_wall, value->text, ret_ms, &unused) < 0 ||
        *ret_ms < EXPIRES_MIN_MS || *ret_ms > EXPIRES_MAX_MS)
        return yaml_fail(yaml, value, err, "expires is a time from 1s to 168h; write expires: 15m");
    return 0;
}

static int read_by(const struct yaml *yaml, const struct yaml_node *value,
                   struct policy_approval *approval, error *err)
{
    bool is_text = value->kind == YAML_TEXT;
    approval->is_out_of_band = is_text && strcmp(value->text, "out_of_band") == 0;
    if (!approval->is_out_of_band && (!is_text || strcmp(value->text, "terminal") != 0))
        return yaml_fail(yaml, value, err, "by is terminal or out_of_band; write one of them");
    return 0;
}

static void note_lines(const struct policy_approval *approval, enum approval_part part, int line,
                       struct approval_lines *lines)
{
    for (unsigned bit = 0; part == APPROVAL_WHEN && bit < APPROVAL_BY; bit++)
        lines->parts[APPROVAL_WHEN + bit] = approval->when & (1U << bit) ? line : 0;
    if (part != APPROVAL_WHEN)
        lines->parts[part] = line;
}

static int read_key(const struct yaml *yaml, const struct yaml_node *key,
                    struct policy_approval *approval, enum approval_part *ret_part, error *err)
{
    const struct yaml_node *value = yaml_next(yaml, key);
    const char *name = key->kind == YAML_TEXT ? key->text : "";
    *ret_part = APPROVAL_WHEN;
    if (strcmp(name, "when") == 0)
        return read_words(yaml, value, asks, &approval->when, err);
    *ret_part = APPROVAL_SCOPES;
    if (strcmp(name, "scopes") == 0)
        return read_words(yaml, value, scopes, &approval->scopes, err);
    *ret_part = APPROVAL_BY;
    if (strcmp(name, "by") == 0)
        return read_by(yaml, value, approval, err);
    *ret_part = APPROVAL_EXPIRES;
    if (strcmp(name, "expires") == 0)
        return read_expires(yaml, value, &approval->expires_ms, err);
    return yaml_fail(yaml, key, err, "approval has when, by, scopes, expires; remove the others");
}

int approval_file_read(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_approval *ret_approval, struct approval_lines *ret_lines,
                       error *err)
{
    if (value->empty)
        return 0;
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err,
                         "approval is a mapping; write {when: [always], expires: 15m}");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        enum approval_part part;
        if (read_key(yaml, key, ret_approval, &part, err) < 0)
            return -1;
        note_lines(ret_approval, part, key->line, ret_lines);
        key = yaml_next(yaml, yaml_next(yaml, key));
    }
    if (value->children > 0 && ret_approval->when == 0)
        return yaml_fail(yaml, value, err, "approval does not say when; write when: [always]");
    return 0;
}
