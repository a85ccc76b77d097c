/* witness.c - reads line by line, so that a damaged line loses one checkpoint and not the file. */
#include "ledger/witness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_COMPARED = 256 };

static const char dash[] = "\xE2\x80\x94 ";

struct line {
    const char *text;
    size_t size; /* without the newline */
};

/* Reads a line; one without a newline is incomplete. */
static bool next_line(const char **at, const char *end, struct line *ret)
{
    const char *newline = memchr(*at, '\n', (size_t) (end - *at));
    if (!newline)
        return false;
    *ret = (struct line){ *at, (size_t) (newline - *at) };
    *at = newline + 1;
    return true;
}

static bool is_text(const struct line *line, const char *text)
{
    return line->size == strlen(text) && memcmp(line->text, text, line->size) == 0;
}

static bool is_origin(const struct witness_order *order, const struct line *line)
{
    const struct key_chain *chain = order->chain;
    if (is_text(line, order->key->name))
        return true;
    if (order->key->is_bare)
        return line->size == KEY_NAME_SIZE - 1 && memcmp(line->text, "glovebox/", 9) == 0;
    for (size_t i = 0; chain->count > 0 && i <= chain->count; i++)
        if (is_text(line, key_chain_key(chain, i)->name))
            return true;
    return false;
}

/* Dash, name, base64. If more follows, the line was incomplete, and something else was added. */
static bool is_signature(const struct line *line)
{
    size_t head = sizeof dash - 1;
    if (line->size <= head || memcmp(line->text, dash, head) != 0)
        return false;
    const char *end = line->text + line->size;
    const char *blank = memchr(line->text + head, ' ', line->size - head);
    return blank && blank + 1 < end && !memchr(blank + 1, ' ', (size_t) (end - blank - 1));
}

static bool is_number(const struct line *line)
{
    for (size_t i = 0; i < line->size; i++)
        if (line->text[i] < '0' || line->text[i] > '9')
            return false;
    return line->size > 0 && line->size <= 20;
}

/* Reads the rest after the origin: size, root, extensions, an empty line, signatures. */
static bool take_note(const char **at, const char *end, struct witness_note *note)
{
    struct line line;
    const char *next = *at;
    unsigned lines = 0;
    if (!next_line(&next, end, &line) || !is_number(&line))
        return false;
    note->records = strtoull(line.text, NULL, 10);
    while (next_line(&next, end, &line) && line.size > 0 && !is_signature(&line))
        lines++;
    if (lines == 0 || line.size > 0 || !next_line(&next, end, &line) || !is_signature(&line))
        return false;
    do
        *at = next;
    while (next_line(&next, end, &line) && is_signature(&line));
    note->size = (size_t) (*at - note->text);
    return true;
}

bool witness_next(const struct witness_order *order, const char **at, const char *end,
                  struct witness_note *ret)
{
    struct line line;
    while (next_line(at, end, &line)) {
        if (!is_origin(order, &line))
            continue;
        ret->text = line.text;
        if (take_note(at, end, ret))
            return true;
    }
    return false;
}

bool witness_is_whole(const char *text, size_t size)
{
    struct line line = { 0 };
    const char *newline = size > 0 ? memrchr(text, '\n', size - 1) : NULL;
    const char *at = newline ? newline + 1 : text;
    return size == 0 || (next_line(&at, text + size, &line) && is_signature(&line));
}

int witness_compare(const struct witness_order *order, const struct witness_note *note, error *err)
{
    struct merkle_head head;
    struct merkle_hash root;
    if (note->size > CHECKPOINT_NOTE_MAX)
        return fail(err, ERR_POLICY, "a checkpoint of %zu bytes; %d are read", note->size,
                    CHECKPOINT_NOTE_MAX);
    char *text = strndup(note->text, note->size);
    int result = text ? key_chain_checkpoint(order->chain, order->key, text, &head, err)
                      : fail(err, ERR_SYSTEM, "no memory for a checkpoint");
    free(text);
    if (result < 0)
        return -1;
    if (head.size > order->records)
        return fail(err, ERR_POLICY,
                    "the log has %" PRIu64 " records, and the witness has seen %" PRIu64
                    ": an older copy of it was put back, or its end was cut off",
                    order->records, head.size);
    if (merkle_root(order->tree, head.size, &root, err) < 0)
        return -1;
    return merkle_equal(&root, &head.root)
               ? 0
               : fail(err, ERR_POLICY,
                      "the first %" PRIu64 " records of the log are others than those that the "
                      "witness has seen: an older copy of it was put back, and went on",
                      head.size);
}

int witness_check(const struct witness_order *order, const char *text, size_t size,
                  uint64_t *ret_count, error *err)
{
    static struct witness_note last[LAST_COMPARED];
    struct witness_note note, largest = { 0 };
    const char *at = text, *end = text + size;
    *ret_count = 0;
    while (witness_next(order, &at, end, &note)) {
        last[(*ret_count)++ % LAST_COMPARED] = note;
        if (!largest.text || note.records > largest.records)
            largest = note;
    }
    if (largest.text && witness_compare(order, &largest, err) < 0)
        return -1;
    for (uint64_t i = 0; i < *ret_count && i < LAST_COMPARED; i++)
        if (witness_compare(order, &last[i], err) < 0)
            return -1;
    return 0;
}
