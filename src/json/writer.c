/* writer.c - the last byte written decides whether a comma is needed. */
#include "json/writer.h"

#include "base/base64.h"
#include "base/timestamp.h"
#include "json/quote.h"

#include <string.h>

void json_comma(struct bytes *out)
{
    if (out->size == 0)
        return;
    char last = out->data[out->size - 1];
    if (last != '{' && last != '[' && last != ':' && last != ',')
        bytes_add(out, ",", 1);
}

void json_open(struct bytes *out, char bracket)
{
    json_comma(out);
    bytes_add(out, &bracket, 1);
}

void json_close(struct bytes *out, char bracket)
{
    bytes_add(out, &bracket, 1);
}

void json_close_all(struct bytes *out, const char *brackets)
{
    bytes_add_text(out, brackets);
}

void json_key(struct bytes *out, const char *key)
{
    json_string(out, key);
    bytes_add(out, ":", 1);
}

void json_text(struct bytes *out, const char *text, size_t size)
{
    json_comma(out);
    json_text_quote(out, text, size, JSON_DELETE_ESCAPED);
}

void json_canonical_text(struct bytes *out, const char *text, size_t size)
{
    json_comma(out);
    json_text_quote(out, text, size, JSON_DELETE_AS_IT_IS);
}

void json_string(struct bytes *out, const char *text)
{
    if (text)
        json_text(out, text, strlen(text));
    else
        json_null(out);
}

static void add_word(struct bytes *out, const char *word)
{
    json_comma(out);
    bytes_add_text(out, word);
}

static void add_digits(struct bytes *out, bool is_negative, uint64_t value)
{
    char digits[24];
    char *const end = digits + sizeof digits;
    char *at = end;
    do
        *--at = (char) ('0' + value % 10);
    while ((value /= 10) > 0);
    if (is_negative)
        *--at = '-';
    json_comma(out);
    bytes_add(out, at, (size_t) (end - at));
}

void json_count(struct bytes *out, uint64_t value)
{
    add_digits(out, false, value);
}

void json_number(struct bytes *out, int64_t value)
{
    add_digits(out, value < 0, value < 0 ? -(uint64_t) value : (uint64_t) value);
}

void json_flag(struct bytes *out, bool value)
{
    add_word(out, value ? "true" : "false");
}

void json_null(struct bytes *out)
{
    add_word(out, "null");
}

void json_base64(struct bytes *out, const void *data, size_t size)
{
    json_comma(out);
    char *place = bytes_reserve(out, base64_size(size) + 2);
    if (!place)
        return;
    place[0] = '"';
    base64_encode(data, size, place + 1);
    place[base64_size(size) + 1] = '"';
    out->size += base64_size(size) + 2;
}

void json_raw(struct bytes *out, const void *json, size_t size)
{
    json_comma(out);
    bytes_add(out, json, size);
}

void json_open_field(struct bytes *out, const char *key, char bracket)
{
    json_key(out, key);
    json_open(out, bracket);
}

void json_string_field(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_string(out, text);
}

void json_count_field(struct bytes *out, const char *key, uint64_t value)
{
    json_key(out, key);
    json_count(out, value);
}

void json_number_field(struct bytes *out, const char *key, int64_t value)
{
    json_key(out, key);
    json_number(out, value);
}

void json_flag_field(struct bytes *out, const char *key, bool value)
{
    json_key(out, key);
    json_flag(out, value);
}

void json_null_field(struct bytes *out, const char *key)
{
    json_key(out, key);
    json_null(out);
}

void json_moment_field(struct bytes *out, const char *key, int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    json_string_field(out, key, ms == 0 ? NULL : timestamp_write(ms, text));
}

void json_texts(struct bytes *out, const struct bytes *texts)
{
    json_open(out, '[');
    for (size_t at = 0; at < texts->size; at += strlen(texts->data + at) + 1)
        json_string(out, texts->data + at);
    json_close(out, ']');
}
