/* redact.h - removes secrets from a stream of bytes: each occurrence becomes stars of the same
 * length, also across pieces, in the spellings of URLs, JSON and HTML, and, for a long secret,
 * without its last quarter. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    REDACT_WORDS_MAX = 64,
    REDACT_WORD_MAX = 4096,
    REDACT_LONG = 16,
    REDACT_SPELLED_MAX = 10, /* bytes of one character, "&#x002F;" */
    REDACT_HOLD_MAX = REDACT_WORD_MAX * REDACT_SPELLED_MAX,
};

struct redact_word {
    const char *at; /* borrowed */
    size_t size;    /* 1 to REDACT_WORD_MAX */
};

/* How much of a word is enough to be removed: a server may shorten what it repeats, and the rest of
 * a long secret could then be guessed. */
static inline size_t redact_enough(size_t size)
{
    return size < REDACT_LONG ? size : size - size / 4;
}

struct redact {
    const struct redact_word *words;
    unsigned count;
    uint64_t found;
    size_t held, covered; /* bytes held back; how many of them are stars already */
    char hold[REDACT_HOLD_MAX];
};

/* `words` are borrowed for as long as `redact` is used. */
void redact_init(struct redact *redact, const struct redact_word *words, unsigned count);

/* Takes the next piece. Writes clean bytes to ret_clean, at most size + REDACT_HOLD_MAX, and
 * returns how many; what may be the beginning of a word at the end is held back. */
size_t redact_take(struct redact *redact, const char *piece, size_t size, char *ret_clean);

/* No more bytes follow: writes those that were held back. */
size_t redact_end(struct redact *redact, char ret_clean[REDACT_HOLD_MAX]);
