/* reader.c - json-c in strict mode, after checks that json-c does not make: UTF-8 across pieces,
 * the number of values (a small body could become a huge tree), and duplicate names or names with
 * NUL. json-c keeps the last duplicate and cuts a name at NUL; a proxy in front of us may have
 * looked at the first. */
#include "json/reader.h"

#include "base/utf8.h"
#include "json/long_text.h"

#include <inttypes.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,
    VALUES_MAX = 100000,
    PIECE_MAX = 64 * 1024,
    LONG_FROM = 1024, /* json-c costs 1 µs a call, and some ns a byte */
    LONG_MAX = PIECE_MAX / LONG_FROM
};

/* Long texts of a piece: from the quote, or the beginning of the piece, to their end. */
struct long_texts {
    size_t count;
    struct {
        size_t at, size;
    } rows[LONG_MAX];
};

int json_reader_open(struct json_reader *reader, error *err)
{
    *reader = (struct json_reader){ 0 };
    reader->tokener = json_tokener_new_ex(DEPTH_MAX);
    if (!reader->tokener)
        return fail(err, ERR_SYSTEM, "no memory to read JSON");
    json_tokener_set_flags(reader->tokener, JSON_TOKENER_STRICT);
    return 0;
}

void json_reader_close(struct json_reader *reader)
{
    if (reader->tokener)
        json_tokener_free(reader->tokener);
    if (reader->value)
        (void) json_object_put(reader->value);
    *reader = (struct json_reader){ 0 };
}

/* Fails with the offset of the wrong byte in *ret_offset. */
static int check_characters(struct json_reader *reader, const char *data, size_t size,
                            uint64_t *ret_offset)
{
    const char *start = data;
    *ret_offset = reader->bytes;
    if (reader->cut_size > 0) {
        int length = UTF8_CUT;
        while (length == UTF8_CUT && size > 0 && reader->cut_size < sizeof reader->cut) {
            reader->cut[reader->cut_size++] = (unsigned char) *data++;
            size--;
            length = utf8_character(reader->cut, reader->cut_size);
        }
        if (length == UTF8_CUT && size == 0)
            return 0;
        if (length <= 0 || (size_t) length != reader->cut_size)
            return -1;
        reader->cut_size = 0;
    }
    size_t cut = utf8_cut_at_end(data, size);
    memcpy(reader->cut, data + size - cut, cut);
    reader->cut_size = cut;
    size_t valid = utf8_valid_size(data, size - cut);
    *ret_offset = reader->bytes + (size_t) (data - start) + valid;
    return valid == size - cut ? 0 : -1;
}

static void take_of_text(struct json_reader *reader, char byte)
{
    static const char nul[] = "u0000";
    bool is_next =
        (reader->after_backslash || reader->nul_size > 0) && byte == nul[reader->nul_size];
    reader->nul_size = is_next ? reader->nul_size + 1 : 0;
    if (reader->nul_size == sizeof nul - 1) {
        reader->nul_size = 0;
        reader->text_has_nul = true;
    }
    if (reader->after_backslash)
        reader->after_backslash = false;
    else if (byte == '\\')
        reader->after_backslash = true;
    else if (byte == '"')
        reader->in_text = false;
}

static void note_text(struct long_texts *texts, size_t from, size_t to)
{
    if (to - from < LONG_FROM)
        return;
    texts->rows[texts->count].at = from;
    texts->rows[texts->count++].size = to - from;
}

/* FNV-1a; used only to find a name for an error message. */
static uint64_t hash_of(const char *name, size_t size)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char) name[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* Counts values and names, and finds the long texts. Returns a message for what json-c accepts even
 * in strict mode and JSON does not have: single quotes, NaN, Infinity; and for a name with NUL. */
static const char *count_values(struct json_reader *reader, const char *data, size_t size,
                                struct long_texts *ret_texts)
{
    size_t began = 0, ended = 0;
    ret_texts->count = 0;
    for (size_t i = 0; i < size; i++) {
        if (reader->in_text && !reader->after_backslash && reader->nul_size == 0)
            i += long_text_plain_size(data + i, size - i);
        if (i == size)
            break;
        char byte = data[i];
        if (reader->in_text) {
            take_of_text(reader, byte);
            ended = i;
            if (!reader->in_text)
                note_text(ret_texts, began, i);
        } else if (byte == '"') {
            began = i + 1;
            reader->in_text = true;
            reader->text_has_nul = false;
        } else if (byte == '\'' || byte == 'N' || byte == 'I') {
            return "is not JSON: it has a single quote, NaN or Infinity";
        } else if (byte == ':' && reader->text_has_nul) {
            return "has a key with a NUL character";
        } else if (byte == ',' || byte == ':' || byte == '[' || byte == '{') {
            reader->values++;
            reader->names += byte == ':';
            reader->name_hashes += byte == ':' ? hash_of(data + began, ended - began) : 0;
        }
    }
    if (reader->in_text)
        note_text(ret_texts, began, size);
    return NULL;
}

struct names {
    uint64_t count, hashes;
    uint64_t wanted; /* the hash of `found` */
    const char *found;
};

/* NOLINTNEXTLINE(misc-no-recursion): the tokener bounds the depth: DEPTH_MAX */
static void look_at_names(struct json_object *value, struct names *names)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            look_at_names(json_object_array_get_idx(value, i), names);
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, name, member)
        {
            uint64_t hash = hash_of(name, strlen(name));
            names->count++;
            names->hashes += hash;
            if (hash == names->wanted)
                names->found = name;
            look_at_names(member, names);
        }
    }
}

/* The tree has each name once, the text has duplicates too. The difference of the two sums of
 * hashes is the duplicate's hash, if there is only one and it is written without escapes. */
static int check_names(const struct json_reader *reader, error *err)
{
    struct names once = { 0 };
    look_at_names(reader->value, &once);
    if (once.count == reader->names)
        return 0;
    struct names again = { .wanted = reader->name_hashes - once.hashes };
    look_at_names(reader->value, &again);
    return fail(err, ERR_BAD_REQUEST, "the body has a key that stands twice in one object%s%.60s",
                again.found ? ": " : "", again.found ? again.found : "");
}

static bool is_blank(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", data[i]) || data[i] == '\0')
            return false;
    return true;
}

/* Feeds json-c. *used: how many bytes it took, up to the end of its value or to a mistake. */
static enum json_tokener_error parse(struct json_reader *reader, const char *data, size_t size,
                                     size_t *used)
{
    reader->value = json_tokener_parse_ex(reader->tokener, data + *used, (int) (size - *used));
    *used += json_tokener_get_parse_end(reader->tokener);
    return json_tokener_get_error(reader->tokener);
}

static enum json_tokener_error parse_all(struct json_reader *reader, const char *data, size_t size,
                                         const struct long_texts *texts, size_t *used)
{
    for (size_t i = 0; i < texts->count; i++) {
        enum json_tokener_error result = json_tokener_continue;
        if (texts->rows[i].at > *used)
            result = parse(reader, data, texts->rows[i].at, used);
        if (result != json_tokener_continue)
            return result;
        ptrdiff_t taken = long_text_take(reader->tokener, data + *used, texts->rows[i].size);
        if (taken < 0)
            return json_tokener_error_size;
        *used += (size_t) taken;
    }
    return *used < size ? parse(reader, data, size, used) : json_tokener_continue;
}

static int take(struct json_reader *reader, const char *data, size_t size, error *err)
{
    struct long_texts texts;
    if (memchr(data, '\0', size))
        return fail(err, ERR_BAD_REQUEST, "the body has a NUL byte; send JSON text in UTF-8");
    uint64_t offset;
    if (check_characters(reader, data, size, &offset) < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "the body is not UTF-8 at byte %" PRIu64
                    "; send other bytes in a field named …_base64",
                    offset);
    const char *wrong = count_values(reader, data, size, &texts);
    if (wrong)
        return fail(err, ERR_BAD_REQUEST, "the body %s", wrong);
    if (reader->values > VALUES_MAX)
        return fail(err, ERR_BAD_REQUEST,
                    "the body has more than %d values; send fewer, larger ones", VALUES_MAX);
    size_t used = 0;
    if (!reader->is_done) {
        enum json_tokener_error result = parse_all(reader, data, size, &texts, &used);
        if (result == json_tokener_continue)
            return 0;
        if (result != json_tokener_success)
            return fail(err, ERR_BAD_REQUEST, "the body is not JSON: %s at byte %" PRIu64,
                        json_tokener_error_desc(result), reader->bytes + used);
        reader->is_done = true;
    }
    if (!is_blank(data + used, size - used))
        return fail(err, ERR_BAD_REQUEST, "the body goes on after its JSON value at byte %" PRIu64,
                    reader->bytes + used);
    return 0;
}

void json_reader_take(struct json_reader *reader, const char *data, size_t size)
{
    while (size > 0 && reader->failure.code == ERR_NONE) {
        size_t piece = size < PIECE_MAX ? size : PIECE_MAX;
        (void) take(reader, data, piece, &reader->failure);
        reader->bytes += piece;
        data += piece;
        size -= piece;
    }
}

int json_reader_end(struct json_reader *reader, struct json_object **ret_value, error *err)
{
    if (reader->failure.code != ERR_NONE) {
        *err = reader->failure;
        return -1;
    }
    if (reader->bytes == 0)
        return fail(err, ERR_BAD_REQUEST, "the body is empty; send a JSON object");
    if (!reader->is_done && reader->cut_size == 0 && !reader->in_text) {
        /* json-c ends a number only at the byte that follows it */
        reader->value = json_tokener_parse_ex(reader->tokener, " ", 1);
        reader->is_done = json_tokener_get_error(reader->tokener) == json_tokener_success;
    }
    if (!reader->is_done)
        return fail(err, ERR_BAD_REQUEST,
                    "the body ends after %" PRIu64 " bytes inside its JSON value", reader->bytes);
    if (reader->is_exact && check_names(reader, err) < 0)
        return -1;
    *ret_value = reader->value;
    reader->value = NULL;
    return 0;
}

static int read_all(const char *text, size_t size, bool is_exact, struct json_object **ret_value,
                    error *err)
{
    struct json_reader reader;
    if (json_reader_open(&reader, err) < 0)
        return -1;
    reader.is_exact = is_exact;
    json_reader_take(&reader, text, size);
    int result = json_reader_end(&reader, ret_value, err);
    json_reader_close(&reader);
    return result;
}

int json_read(const char *text, size_t size, struct json_object **ret_value, error *err)
{
    return read_all(text, size, false, ret_value, err);
}

int json_read_exact(const char *text, size_t size, struct json_object **ret_value, error *err)
{
    return read_all(text, size, true, ret_value, err);
}
