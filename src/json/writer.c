/* writer.c - the last byte written tells whether a comma is due. */
#include "json/writer.h"

#include "json/quote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void comma(struct bytes *out)
{
    if (out->size == 0)
        return;
    char last = out->data[out->size - 1];
    if (last != '{' && last != '[' && last != ':' && last != ',')
        bytes_add(out, ",", 1);
}

void json_open(struct bytes *out, char bracket)
{
    comma(out);
    bytes_add(out, &bracket, 1);
}

void json_close(struct bytes *out, char bracket)
{
    bytes_add(out, &bracket, 1);
}

void json_key(struct bytes *out, const char *key)
{
    json_string(out, key);
    bytes_add(out, ":", 1);
}

static void text_begin(struct bytes *out)
{
    comma(out);
    bytes_add(out, "\"", 1);
}

static void text_end(struct bytes *out)
{
    bytes_add(out, "\"", 1);
}

void json_text(struct bytes *out, const char *text, size_t size)
{
    comma(out);
    json_text_quote(out, text, size, JSON_DELETE_ESCAPED);
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
    comma(out);
    bytes_add_text(out, word);
}

void json_count(struct bytes *out, uint64_t value)
{
    comma(out);
    bytes_print(out, "%" PRIu64, value);
}

void json_number(struct bytes *out, int64_t value)
{
    comma(out);
    bytes_print(out, "%" PRId64, value);
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
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text_begin(out);
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t three = (uint32_t) at[i] << 16 | (left > 1 ? (uint32_t) at[i + 1] << 8 : 0) |
                         (left > 2 ? at[i + 2] : 0);
        char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                         (char) (left > 1 ? digits[three >> 6 & 63] : '='),
                         (char) (left > 2 ? digits[three & 63] : '=') };
        bytes_add(out, four, sizeof four);
    }
    text_end(out);
}

void json_raw(struct bytes *out, const void *json, size_t size)
{
    comma(out);
    bytes_add(out, json, size);
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
    char text[40] = "";
    struct tm parts;
    time_t seconds = (time_t) (ms / 1000);
    if (ms > 0 && gmtime_r(&seconds, &parts)) {
        size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
        (void) snprintf(text + used, sizeof text - used, ".%03dZ", (int) (ms % 1000));
    }
    json_string_field(out, key, text[0] ? text : NULL);
}

void json_since_epoch_field(struct bytes *out, const char *key, int64_t ms)
{
    if (ms > 0)
        json_number_field(out, key, ms);
    else
        json_null_field(out, key);
}

void json_texts(struct bytes *out, const struct bytes *texts)
{
    json_open(out, '[');
    for (size_t at = 0; at < texts->size; at += strlen(texts->data + at) + 1)
        json_string(out, texts->data + at);
    json_close(out, ']');
}
