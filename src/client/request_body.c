/* request_body.c - see request_body.h. */
#include "client/request_body.h"

#include "base/text.h"
#include "model/limits.h"
#include "json/member.h"
#include "json/quote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EXPECTATION_MAX = 256 << 10, EXPECTATION_DEPTH = 64 };

void body_string(struct sink *sink, const char *text, size_t size)
{
    auto_bytes quoted = { 0 };
    json_text_quote(&quoted, text, size, JSON_DELETE_AS_IT_IS);
    if (quoted.failed)
        sink->failed = ENOMEM;
    else
        sink_bytes(sink, quoted.data, quoted.size);
}

void body_key(struct body *body, const char *name)
{
    if (body->has_member)
        sink_text(body->sink, ",");
    body->has_member = true;
    body_string(body->sink, name, strlen(name));
    sink_text(body->sink, ":");
}

void body_text(struct body *body, const char *name, const char *text)
{
    if (!text)
        return;
    body_key(body, name);
    body_string(body->sink, text, strlen(text));
}

void body_list(struct body *body, const char *name, const char *const *list)
{
    if (!list)
        return;
    body_key(body, name);
    sink_text(body->sink, "[");
    for (size_t index = 0; list[index]; index++) {
        sink_text(body->sink, index > 0 ? "," : "");
        body_string(body->sink, list[index], strlen(list[index]));
    }
    sink_text(body->sink, "]");
}

void body_seconds(struct body *body, const char *name, uint64_t ms)
{
    char text[32];
    if (ms == 0)
        return;
    (void) snprintf(text, sizeof text, "%llu.%03llu", (unsigned long long) (ms / 1000),
                    (unsigned long long) (ms % 1000));
    body_key(body, name);
    sink_text(body->sink, text);
}

void body_limits(struct body *body, const glb_limit *limits, size_t count)
{
    if (count == 0)
        return;
    body_key(body, "limits");
    sink_text(body->sink, "{");
    struct body inner = { .sink = body->sink };
    for (size_t index = 0; index < count; index++) {
        const struct limit_row *row = &limit_rows[limit_find(limits[index].name)];
        unsigned long long value = limits[index].value;
        char text[48];
        body_key(&inner, row->json_name);
        if (row->unit == UNIT_MILLI)
            (void) snprintf(text, sizeof text, "%llu.%03llu", value / 1000, value % 1000);
        else
            (void) snprintf(text, sizeof text, "%llu", value);
        sink_text(body->sink, text);
    }
    sink_text(body->sink, "}");
}

void body_expectation(struct body *body, const char *json)
{
    if (!json)
        return;
    body_key(body, "expect");
    sink_text(body->sink, json); /* it is JSON: check_expectation() */
}

void body_pairs(struct body *body, const char *name, const char *const *pairs)
{
    if (!pairs || !pairs[0])
        return;
    body_key(body, name);
    sink_text(body->sink, "{");
    for (size_t index = 0; pairs[index]; index++) {
        const char *equals = strchr(pairs[index], '=');
        sink_text(body->sink, index > 0 ? "," : "");
        body_string(body->sink, pairs[index], (size_t) (equals - pairs[index]));
        sink_text(body->sink, ":");
        body_string(body->sink, equals + 1, strlen(equals + 1));
    }
    sink_text(body->sink, "}");
}

void body_number(struct body *body, const char *name, uint64_t number)
{
    char text[24];
    if (number == 0)
        return;
    (void) snprintf(text, sizeof text, "%llu", (unsigned long long) number);
    body_key(body, name);
    sink_text(body->sink, text);
}

int check_text(const char *what, const char *text, size_t size, error *err)
{
    size_t bad = text_find_undecodable(text, size);
    if (bad == size)
        return 0;
    size_t line = 1;
    for (size_t at = 0; at < bad; at++)
        line += text[at] == '\n';
    if (text[bad] == '\0')
        return fail(
            err, ERR_BAD_REQUEST,
            "%s has a NUL byte at offset %zu (line %zu); is it a text file? remove the byte", what,
            bad, line);
    return fail(err, ERR_BAD_REQUEST,
                "%s is not UTF-8 at offset %zu (line %zu, byte 0x%02x); convert it: iconv -t UTF-8",
                what, bad, line, (unsigned char) text[bad]);
}

int check_texts(const char *what, const char *const *list, error *err)
{
    for (size_t index = 0; list && list[index]; index++)
        if (check_text(what, list[index], strlen(list[index]), err) < 0)
            return -1;
    return 0;
}

int check_pairs(const char *what, const char *const *list, error *err)
{
    for (size_t index = 0; list && list[index]; index++)
        if (!strchr(list[index], '='))
            return fail(err, ERR_BAD_REQUEST, "%s '%s' has no value; write NAME=VALUE", what,
                        list[index]);
    return check_texts(what, list, err);
}

int check_limits(const glb_limit *limits, size_t count, error *err)
{
    for (size_t index = 0; index < count; index++)
        if (limit_find(limits[index].name) == LIMITS)
            return fail(err, ERR_LIMIT, "no limit is named '%s'; see glovebox run --help",
                        limits[index].name);
    return 0;
}

/* The text is copied into the request, so it must be one complete JSON value. */
int check_expectation(const char *text, error *err)
{
    if (!text)
        return 0;
    size_t size = strlen(text);
    struct json_tokener *tokener = json_tokener_new_ex(EXPECTATION_DEPTH);
    if (!tokener)
        return fail(err, ERR_INTERNAL, "out of memory");
    if (size > EXPECTATION_MAX || check_text("the expectation", text, size, err) < 0) {
        json_tokener_free(tokener);
        return size > EXPECTATION_MAX
                   ? fail(err, ERR_TOO_LARGE, "the expectation has %zu bytes; %d are allowed", size,
                          EXPECTATION_MAX)
                   : -1;
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    auto_json value = json_tokener_parse_ex(tokener, text, (int) size + 1);
    enum json_tokener_error why = json_tokener_get_error(tokener);
    size_t used = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    bool is_object = json_object_is_type(value, json_type_object);
    used += strspn(text + (used < size ? used : size), " \t\r\n");
    if (why == json_tokener_success && is_object && used >= size)
        return 0;
    if (why == json_tokener_success && !is_object)
        return fail(err, ERR_BAD_REQUEST,
                    "the expectation is no JSON object: write {\"stdout\": {…}} or the like");
    return fail(err, ERR_BAD_REQUEST, "the expectation is no JSON object: %s at byte %zu",
                why == json_tokener_success ? "there is more behind it"
                                            : json_tokener_error_desc(why),
                used);
}
