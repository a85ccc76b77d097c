/* stream_copy.c - a machine with a state for each place in a JSON text (RFC 8259). */
#include "json/stream_copy.h"

#include "base/hex.h"

#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum state {
    AT_START,       /* the object itself is still to come */
    AT_VALUE,       /* a value must come */
    AT_FIRST_VALUE, /* or the array ends */
    AT_NAME,        /* a name must come */
    AT_FIRST_NAME,  /* or the object ends */
    AT_COLON,
    AFTER_VALUE,
    IN_TEXT,
    IN_ESCAPE,
    IN_DIGITS, /* of \uXXXX */
    IN_TOKEN,
    AT_END,
    WRONG
};

enum { PROBES_MAX = 64, REPLACEMENT = 0xFFFD };

void json_copy_init(struct json_copy *copy, json_copy_wants *wants, void *user)
{
    *copy = (struct json_copy){ .wants = wants, .user = user, .state = AT_START };
}

void json_copy_done(struct json_copy *copy)
{
    bytes_done(&copy->text);
    free(copy->names);
    copy->names = NULL;
    copy->names_room = copy->names_count = 0;
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

/* --- names that stand twice ---------------------------------------------------------------------
 */

/* Returns 1 if it was there, 0 if it is new, -1 if the table cannot take it. */
static int put_hash(uint64_t *names, size_t room, uint64_t hash)
{
    for (size_t i = 0; i < PROBES_MAX && i < room; i++) {
        uint64_t *place = &names[(hash + i) & (room - 1)];
        if (*place == hash)
            return 1;
        if (*place != 0)
            continue;
        *place = hash;
        return 0;
    }
    return -1;
}

static bool grow_names(struct json_copy *copy)
{
    size_t room = copy->names_room > 0 ? copy->names_room * 2 : 64;
    uint64_t *names = calloc(room, sizeof *names);
    bool fits = names != NULL;
    for (size_t i = 0; fits && i < copy->names_room; i++)
        fits = copy->names[i] == 0 || put_hash(names, room, copy->names[i]) == 0;
    if (!fits) {
        free(names);
        return false;
    }
    free(copy->names);
    copy->names = names;
    copy->names_room = room;
    return true;
}

/* A hash with a key of this process: names that collide cannot be chosen. */
static int note_name(struct json_copy *copy, const char *name, size_t size)
{
    static unsigned char key[crypto_shorthash_KEYBYTES];
    static bool has_key;
    uint64_t hash;
    if (!has_key)
        crypto_shorthash_keygen(key);
    has_key = true;
    (void) crypto_shorthash((unsigned char *) &hash, (const unsigned char *) name, size, key);
    hash ^= copy->object[copy->depth] * UINT64_C(0x9E3779B97F4A7C15);
    hash += hash == 0;
    if (copy->names_count >= copy->names_room / 2 && !grow_names(copy))
        return -1;
    int seen = put_hash(copy->names, copy->names_room, hash);
    copy->names_count += seen == 0;
    return seen;
}

/* --- values -------------------------------------------------------------------------------------
 */

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

/* What is not wanted, or was there before, goes again, and what follows of it is left out. */
static void end_name(struct json_copy *copy)
{
    copy->state = AT_COLON;
    if (copy->left_out_at != 0 || copy->text.failed)
        return;
    size_t at = copy->name_at;
    char *name = copy->text.data + at + 1;
    size_t size = copy->text.size - at - 2;
    int seen = note_name(copy, name, size);
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

/* A number as the grammar has it; `at` may stand behind the end. */
static bool is_number(const char *at, const char *end)
{
    at += at < end && *at == '-';
    const char *digits = at;
    while (at < end && isdigit((unsigned char) *at))
        at++;
    if (at == digits || (*digits == '0' && at - digits > 1))
        return false;
    if (at < end && *at == '.') {
        digits = ++at;
        while (at < end && isdigit((unsigned char) *at))
            at++;
        if (at == digits)
            return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        digits = at;
        while (at < end && isdigit((unsigned char) *at))
            at++;
        if (at == digits)
            return false;
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

/* --- texts --------------------------------------------------------------------------------------
 */

static void write_point(struct json_copy *copy, uint32_t point)
{
    static const char shorts[] = "\bb\nn\rr\tt\ff\"\"\\\\";
    char text[8] = { '\\' };
    size_t size = 2;
    const char *found = point < 0x80 && point != 0 ? strchr(shorts, (int) point) : NULL;
    if (found && (found - shorts) % 2 == 0) {
        text[1] = found[1];
    } else if (point < 0x20) {
        text[1] = 'u';
        text[2] = text[3] = '0';
        text[4] = (char) ('0' + (point >> 4));
        text[5] = "0123456789abcdef"[point & 0xF];
        size = 6;
    } else if (point < 0x80) {
        text[0] = (char) point;
        size = 1;
    } else if (point < 0x800) {
        text[0] = (char) (0xC0 | point >> 6);
        text[1] = (char) (0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        text[0] = (char) (0xE0 | point >> 12);
        text[1] = (char) (0x80 | (point >> 6 & 0x3F));
        text[2] = (char) (0x80 | (point & 0x3F));
        size = 3;
    } else {
        text[0] = (char) (0xF0 | point >> 18);
        text[1] = (char) (0x80 | (point >> 12 & 0x3F));
        text[2] = (char) (0x80 | (point >> 6 & 0x3F));
        text[3] = (char) (0x80 | (point & 0x3F));
        size = 4;
    }
    write_out(copy, text, size);
}

/* The first half of a pair whose second has not followed. */
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
        refuse(copy); /* read as a C string it would be another name */
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

/* Table 3-7 of Unicode: what may follow the first byte of a character. */
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

/* Takes all up to what ends the text or is escaped. Gives  how much. */
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

/* --- the machine --------------------------------------------------------------------------------
 */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Behind a value: another, or the end of what it stands in. */
static void go_on(struct json_copy *copy, char byte)
{
    if (byte == ',') {
        if (!copy->is_object[copy->depth])
            write_out(copy, ",", 1); /* of a member, begin_text() writes it */
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
        go_on(copy, byte);
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
