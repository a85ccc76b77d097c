/* stream_copy.c - a state machine with one state for each place in a JSON text (RFC 8259). */
#include "json/stream_copy.h"

#include "base/hex.h"
#include "base/utf8.h"
#include "json/quote.h"

#include <ctype.h>
#include <string.h>

enum state {
    AT_START,       /* the object has not begun */
    AT_VALUE,       /* a value must come */
    AT_FIRST_VALUE, /* or the end of the array */
    AT_NAME,        /* a name must come */
    AT_FIRST_NAME,  /* or the end of the object */
    AT_COLON,
    AFTER_VALUE,
    IN_TEXT,
    IN_ESCAPE,
    IN_DIGITS, /* of \uXXXX */
    IN_TOKEN,
    AT_END,
    WRONG
};

enum { REPLACEMENT = 0xFFFD };

void json_copy_init(struct json_copy *copy, json_copy_wants *wants, void *user)
{
    *copy = (struct json_copy){ .wants = wants, .user = user, .state = AT_START };
}

void json_copy_done(struct json_copy *copy)
{
    bytes_done(&copy->text);
    name_set_done(&copy->names);
}

bool json_copy_is_whole(const struct json_copy *copy)
{
    return copy->state == AT_END && !copy->text.failed;
}

static void refuse(struct json_copy *copy)
{
    json_copy_done(copy);
    copy->state = WRONG;
}

static void write_out(struct json_copy *copy, const void *data, size_t size)
{
    if (copy->left_out_at == 0)
        bytes_add(&copy->text, data, size);
}

/* --- values ----------------------------------------------------------------------------------- */

static void end_value(struct json_copy *copy)
{
    if (copy->left_out_at == copy->depth)
        copy->left_out_at = 0;
    copy->state = AFTER_VALUE;
}

static void open_bracket(struct json_copy *copy, char bracket)
{
    if (copy->depth == JSON_COPY_DEPTH_MAX) {
        refuse(copy);
        return;
    }
    if (copy->depth > 0)
        write_out(copy, &bracket, 1);
    copy->depth++;
    copy->is_object[copy->depth] = bracket == '{';
    copy->object[copy->depth] = ++copy->objects;
    copy->state = bracket == '{' ? AT_FIRST_NAME : AT_FIRST_VALUE;
}

static void close_bracket(struct json_copy *copy, char bracket)
{
    if (copy->is_object[copy->depth] != (bracket == '}')) {
        refuse(copy);
        return;
    }
    copy->depth--;
    if (copy->depth == 0) {
        copy->state = AT_END;
        return;
    }
    write_out(copy, &bracket, 1);
    end_value(copy);
}

static void begin_text(struct json_copy *copy, bool is_name)
{
    copy->is_name = is_name;
    if (is_name && copy->left_out_at == 0) {
        const struct bytes *text = &copy->text;
        bool is_first = copy->depth == 1 || text->size == 0 || text->data[text->size - 1] == '{';
        write_out(copy, ",", is_first ? 0 : 1);
        copy->name_at = text->size;
    }
    write_out(copy, "\"", 1);
    copy->state = IN_TEXT;
}

/* Removes a name that is not wanted or is a duplicate; its value is left out. */
static void end_name(struct json_copy *copy)
{
    copy->state = AT_COLON;
    if (copy->left_out_at != 0 || copy->text.failed)
        return;
    size_t at = copy->name_at;
    char *name = copy->text.data + at + 1;
    size_t size = copy->text.size - at - 2;
    int seen = name_set_add(&copy->names, copy->object[copy->depth], name, size);
    if (seen < 0) {
        refuse(copy);
        return;
    }
    size_t value_at = copy->depth == 1 ? at : copy->text.size + 1;
    bool is_wanted = seen == 0 && (copy->depth > 2 ||
                                   copy->wants(copy->user, copy->depth, name, size, value_at));
    if (!is_wanted)
        copy->left_out_at = copy->depth;
    if (is_wanted && copy->depth > 1) {
        write_out(copy, ":", 1);
        return;
    }
    copy->text.size = at;
    if (at > 0 && copy->depth > 1 && copy->text.data[at - 1] == ',')
        copy->text.size--;
}

static void end_text(struct json_copy *copy)
{
    write_out(copy, "\"", 1);
    if (copy->is_name)
        end_name(copy);
    else
        end_value(copy);
}

/* Skips digits, at least one. Returns their end; NULL if there are none. */
static const char *pass_digits(const char *at, const char *end)
{
    const char *first = at;
    while (at < end && isdigit((unsigned char) *at))
        at++;
    return at > first ? at : NULL;
}

/* True for a number as the grammar defines it; `at` may be past the end. */
static bool is_number(const char *at, const char *end)
{
    at += at < end && *at == '-';
    const char *first = at;
    at = pass_digits(at, end);
    if (!at || (*first == '0' && at - first > 1))
        return false;
    if (at < end && *at == '.')
        at = pass_digits(at + 1, end);
    if (at && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        at = pass_digits(at, end);
    }
    return at == end;
}

static bool is_word(const struct json_copy *copy, const char *word)
{
    return copy->token_size == strlen(word) && memcmp(copy->token, word, copy->token_size) == 0;
}

static void end_token(struct json_copy *copy)
{
    if (!is_word(copy, "true") && !is_word(copy, "false") && !is_word(copy, "null") &&
        !is_number(copy->token, copy->token + copy->token_size)) {
        refuse(copy);
        return;
    }
    write_out(copy, copy->token, copy->token_size);
    end_value(copy);
}

static void begin_value(struct json_copy *copy, char byte)
{
    if (++copy->values > JSON_COPY_VALUES_MAX)
        refuse(copy);
    else if (byte == '{' || byte == '[')
        open_bracket(copy, byte);
    else if (byte == '"')
        begin_text(copy, false);
    else {
        copy->token[0] = byte;
        copy->token_size = 1;
        copy->state = IN_TOKEN;
    }
}

/* --- texts ------------------------------------------------------------------------------------ */

static void write_point(struct json_copy *copy, uint32_t point)
{
    char text[4];
    if (copy->left_out_at != 0)
        return;
    if (point < 0x20 || point == '"' || point == '\\')
        json_escape(&copy->text, (unsigned char) point);
    else
        bytes_add(&copy->text, text, utf8_encode(point, text));
}

/* Writes U+FFFD for a high surrogate that no low surrogate follows. */
static void give_up_half(struct json_copy *copy)
{
    if (copy->high != 0)
        write_point(copy, REPLACEMENT);
    copy->high = 0;
}

static void take_unit(struct json_copy *copy)
{
    uint32_t unit = copy->unit;
    copy->state = IN_TEXT;
    if (copy->high != 0 && unit >= 0xDC00 && unit <= 0xDFFF) {
        write_point(copy, 0x10000 + ((copy->high - 0xD800) << 10) + (unit - 0xDC00));
        copy->high = 0;
        return;
    }
    give_up_half(copy);
    if (unit >= 0xD800 && unit <= 0xDBFF)
        copy->high = unit;
    else if (unit >= 0xDC00 && unit <= 0xDFFF)
        write_point(copy, REPLACEMENT);
    else if (unit == 0 && copy->is_name)
        refuse(copy); /* a C string would end there and be another name */
    else
        write_point(copy, unit);
}

static void take_digit(struct json_copy *copy, char byte)
{
    int digit = hex_digit(byte);
    if (digit < 0) {
        refuse(copy);
        return;
    }
    copy->unit = copy->unit << 4 | (uint32_t) digit;
    if (++copy->digits == 4)
        take_unit(copy);
}

static void take_escape(struct json_copy *copy, char byte)
{
    copy->state = IN_TEXT;
    if (byte == 'u') {
        copy->state = IN_DIGITS;
        copy->unit = copy->digits = 0;
        return;
    }
    give_up_half(copy);
    char text[2] = { '\\', byte };
    if (byte == '/')
        write_out(copy, "/", 1);
    else if (byte != '\0' && strchr("\"\\bnrtf", byte))
        write_out(copy, text, 2);
    else
        refuse(copy);
}

/* Begins a character; table 3-7 of Unicode gives the bytes that may follow the first. */
static bool begin_character(struct json_copy *copy, unsigned char byte)
{
    if (byte < 0xC2 || byte > 0xF4)
        return false;
    copy->utf8_left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    copy->utf8_low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    copy->utf8_high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
}

static bool take_character(struct json_copy *copy, unsigned char byte)
{
    if (copy->utf8_left == 0)
        return begin_character(copy, byte);
    if (byte < copy->utf8_low || byte > copy->utf8_high)
        return false;
    copy->utf8_left--;
    copy->utf8_low = 0x80;
    copy->utf8_high = 0xBF;
    return true;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Takes all up to the end of the text or an escape. Returns how many bytes. */
static size_t take_text(struct json_copy *copy, const char *data, size_t size)
{
    size_t at = 0;
    while (at < size) {
        unsigned char byte = (unsigned char) data[at];
        if (copy->utf8_left == 0 && byte < 0x80) {
            if (!is_plain(byte))
                break;
        } else if (!take_character(copy, byte)) {
            refuse(copy);
            return size;
        }
        at++;
    }
    if (at > 0)
        give_up_half(copy);
    write_out(copy, data, at);
    if (at == size)
        return at;
    if (data[at] == '"') {
        give_up_half(copy);
        end_text(copy);
    } else if (data[at] == '\\') {
        copy->state = IN_ESCAPE;
    } else {
        refuse(copy); /* a control character */
    }
    return at + 1;
}

/* --- the machine ------------------------------------------------------------------------------ */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* After a value: a comma, or the end of the array or object. */
static void take_after_value(struct json_copy *copy, char byte)
{
    if (byte == ',') {
        if (!copy->is_object[copy->depth])
            write_out(copy, ",", 1); /* for a member begin_text() writes it */
        copy->state = copy->is_object[copy->depth] ? AT_NAME : AT_VALUE;
    } else if (byte == '}' || byte == ']') {
        close_bracket(copy, byte);
    } else {
        refuse(copy);
    }
}

static void take_between(struct json_copy *copy, char byte)
{
    enum state state = (enum state) copy->state;
    if (is_blank(byte))
        return;
    if (state == AT_START && byte == '{')
        open_bracket(copy, byte);
    else if ((state == AT_FIRST_NAME && byte == '}') || (state == AT_FIRST_VALUE && byte == ']'))
        close_bracket(copy, byte);
    else if ((state == AT_FIRST_NAME || state == AT_NAME) && byte == '"')
        begin_text(copy, true);
    else if (state == AT_COLON && byte == ':')
        copy->state = AT_VALUE;
    else if (state == AT_VALUE || state == AT_FIRST_VALUE)
        begin_value(copy, byte);
    else if (state == AFTER_VALUE)
        take_after_value(copy, byte);
    else
        refuse(copy);
}

static void take_token(struct json_copy *copy, char byte)
{
    if (is_blank(byte) || byte == ',' || byte == '}' || byte == ']') {
        end_token(copy);
        if (copy->state == AFTER_VALUE)
            take_between(copy, byte);
    } else if (copy->token_size == sizeof copy->token) {
        refuse(copy);
    } else {
        copy->token[copy->token_size++] = byte;
    }
}

void json_copy_take(struct json_copy *copy, const char *data, size_t size)
{
    for (size_t at = 0; at < size && copy->state != WRONG;) {
        if (copy->state == IN_TEXT) {
            at += take_text(copy, data + at, size - at);
            continue;
        }
        char byte = data[at++];
        if (copy->state == IN_ESCAPE)
            take_escape(copy, byte);
        else if (copy->state == IN_DIGITS)
            take_digit(copy, byte);
        else if (copy->state == IN_TOKEN)
            take_token(copy, byte);
        else
            take_between(copy, byte);
    }
}
