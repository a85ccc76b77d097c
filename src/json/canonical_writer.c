/* canonical_writer.c - notes where each member begins, and sorts the members when their object is
 * closed. */
#include "json/canonical_writer.h"

#include "base/utf8.h"
#include "json/writer.h"

#include <string.h>

enum { NOT_UTF8 = 0xFFFD };

static const int64_t integer_max = (INT64_C(1) << 53) - 1;

static void mistake(struct jcs *json, const char *what)
{
    if (!json->mistake)
        json->mistake = what;
}

/* Gives the code point at `text` and its size in bytes; U+FFFD for a byte that begins no
 * character. */
static uint32_t decode(const unsigned char *text, size_t size, size_t *ret_size)
{
    int length = utf8_character(text, size);
    *ret_size = length > 0 ? (size_t) length : 1;
    return length > 0 ? utf8_code_point(text, length) : NOT_UTF8;
}

/* Characters beyond the first plane begin with a surrogate (0xD800…), which sorts before 0xE000;
 * all others sort by code unit as by code point. */
int jcs_compare(const char *left, const char *right)
{
    const unsigned char *a = (const unsigned char *) left;
    const unsigned char *b = (const unsigned char *) right;
    size_t same = 0;
    while (a[same] == b[same] && a[same] != '\0')
        same++;
    if (a[same] < 0x80 && b[same] < 0x80) /* they differ in ASCII, or one ends: nearly always */
        return a[same] == b[same] ? 0 : a[same] < b[same] ? -1 : 1;
    size_t a_left = strlen(left), b_left = strlen(right);
    while (a_left > 0 && b_left > 0) {
        size_t a_size, b_size;
        uint64_t one = decode(a, a_left, &a_size), other = decode(b, b_left, &b_size);
        if (one != other) {
            bool one_is_far = one >= 0x10000, other_is_far = other >= 0x10000;
            if (one_is_far == other_is_far)
                return one < other ? -1 : 1;
            uint64_t near = one_is_far ? other : one;
            bool far_is_first = near >= 0xE000;
            return far_is_first == one_is_far ? -1 : 1;
        }
        a += a_size;
        a_left -= a_size;
        b += b_size;
        b_left -= b_size;
    }
    return a_left == b_left ? 0 : a_left == 0 ? -1 : 1;
}

static void begin_value(struct jcs *json)
{
    if (json->depth == 0 || json->levels[json->depth - 1].bracket != '{')
        return;
    if (!json->key_is_written)
        mistake(json, "a member without a key");
    json->key_is_written = false;
}

void jcs_open(struct jcs *json, char bracket)
{
    begin_value(json);
    if (json->depth == JCS_DEPTH_MAX) {
        mistake(json, "more levels than it may have");
        return;
    }
    json->levels[json->depth++] =
        (struct jcs_level){ .bracket = bracket, .first_member = json->member_count };
    json_open(&json->out, bracket);
}

void jcs_key(struct jcs *json, const char *key)
{
    if (json->depth == 0 || json->levels[json->depth - 1].bracket != '{' ||
        json->member_count == JCS_MEMBERS_MAX) {
        mistake(json, "a key out of place, or too many of them");
        return;
    }
    json_comma(&json->out);
    json->members[json->member_count++] =
        (struct jcs_member){ .key = key, .start = json->out.size };
    json_canonical_text(&json->out, key, strlen(key));
    bytes_add(&json->out, ":", 1);
    json->key_is_written = true;
}

/* Most objects are written in sorted order. */
static bool are_sorted(const struct jcs *json, unsigned first)
{
    for (unsigned i = first; i + 1 < json->member_count; i++)
        if (jcs_compare(json->members[i].key, json->members[i + 1].key) >= 0)
            return false;
    return true;
}

/* Moves the members of the innermost object into sorted order. */
static void sort_members(struct jcs *json, unsigned first)
{
    struct jcs_member *members = json->members;
    unsigned end = json->member_count, order[JCS_MEMBERS_MAX];
    for (unsigned i = first; i < end; i++) {
        unsigned place = i;
        while (place > first && jcs_compare(members[order[place - 1]].key, members[i].key) > 0) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = i;
        if (place > first && strcmp(members[order[place - 1]].key, members[i].key) == 0)
            mistake(json, "two members of one name");
    }
    if (json->out.failed)
        return;
    size_t start = members[first].start;
    struct bytes sorted = { 0 };
    for (unsigned i = first; i < end; i++) {
        const struct jcs_member *member = &members[order[i]];
        size_t stop = order[i] + 1 < end ? members[order[i] + 1].start - 1 : json->out.size;
        bytes_add(&sorted, json->out.data + member->start, stop - member->start);
        if (i + 1 < end)
            bytes_add(&sorted, ",", 1);
    }
    if (!sorted.data || sorted.failed || sorted.size != json->out.size - start)
        mistake(json, "no memory to sort it");
    else
        memcpy(json->out.data + start, sorted.data, sorted.size);
    bytes_done(&sorted);
}

void jcs_close(struct jcs *json, char bracket)
{
    char opened = bracket == '}' ? '{' : '[';
    if (json->depth == 0 || json->levels[json->depth - 1].bracket != opened) {
        mistake(json, "a bracket that closes what is not open");
        return;
    }
    const struct jcs_level *level = &json->levels[--json->depth];
    if (opened == '{' && !are_sorted(json, level->first_member))
        sort_members(json, level->first_member);
    json->member_count = level->first_member;
    json_close(&json->out, bracket);
}

void jcs_text(struct jcs *json, const char *text, size_t size)
{
    begin_value(json);
    json_canonical_text(&json->out, text, size);
}

void jcs_integer(struct jcs *json, int64_t value)
{
    begin_value(json);
    if (value > integer_max || value < -integer_max)
        mistake(json, "an integer beyond 2^53 - 1");
    json_number(&json->out, value);
}

void jcs_flag(struct jcs *json, bool value)
{
    begin_value(json);
    json_flag(&json->out, value);
}

void jcs_null(struct jcs *json)
{
    begin_value(json);
    json_null(&json->out);
}

void jcs_raw(struct jcs *json, const char *canonical, size_t size)
{
    begin_value(json);
    json_raw(&json->out, canonical, size);
}

void jcs_open_field(struct jcs *json, const char *key, char bracket)
{
    jcs_key(json, key);
    jcs_open(json, bracket);
}

void jcs_text_field(struct jcs *json, const char *key, const char *text)
{
    jcs_key(json, key);
    if (text)
        jcs_text(json, text, strlen(text));
    else
        jcs_null(json);
}

void jcs_count_field(struct jcs *json, const char *key, uint64_t value)
{
    jcs_key(json, key);
    jcs_integer(json, value > (uint64_t) integer_max ? integer_max : (int64_t) value);
}

void jcs_integer_field(struct jcs *json, const char *key, int64_t value)
{
    jcs_key(json, key);
    jcs_integer(json, value);
}

void jcs_flag_field(struct jcs *json, const char *key, bool value)
{
    jcs_key(json, key);
    jcs_flag(json, value);
}

void jcs_null_field(struct jcs *json, const char *key)
{
    jcs_key(json, key);
    jcs_null(json);
}

int jcs_end(struct jcs *json, error *err)
{
    if (json->depth > 0)
        mistake(json, "a bracket that is not closed");
    if (json->out.failed)
        return fail(err, ERR_SYSTEM, "no memory for a receipt");
    if (json->mistake)
        return fail(err, ERR_INTERNAL, "no canonical form: %s", json->mistake);
    return 0;
}

void jcs_done(struct jcs *json)
{
    bytes_done(&json->out);
}
