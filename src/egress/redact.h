/* redact.h - takes secrets out of bytes that stream by: each occurrence becomes stars of the same
 * length, wherever the pieces were cut, also as URLs, JSON and HTML write it, and without the last
 * quarter if it is long. Pure; any thread. */
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

/* A server that shortens what it repeats leaves so much that the rest could be guessed. */
static inline size_t redact_enough(size_t size)
{
    return size < REDACT_LONG ? size : size - size / 4;
}

struct redact {
    const struct redact_word *words;
    unsigned count;
    uint64_t found;
    size_t held, covered; /* bytes kept back; how many of them are stars already */
    char hold[REDACT_HOLD_MAX];
};

/* The words are borrowed for the life of the scrub. */
void redact_init(struct redact *redact, const struct redact_word *words, unsigned count);

/* Takes the next piece. Gives in ret_clean what may go on, at most size + REDACT_HOLD_MAX bytes:
 * the beginning of a word at the end is kept back. Returns how many. */
size_t redact_take(struct redact *redact, const char *piece, size_t size, char *ret_clean);

/* Gives what was kept back: nothing follows that could have made it a word. */
size_t redact_end(struct redact *redact, char ret_clean[REDACT_HOLD_MAX]);
