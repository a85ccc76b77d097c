/* redact.h - takes secrets out of bytes that stream by: each occurrence becomes stars of the same
 * length, wherever the pieces were cut. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SCRUB_WORDS_MOST = 64, SCRUB_WORD_MOST = 8192 };

struct scrub_word {
    const char *at; /* borrowed */
    size_t size;    /* 1 to SCRUB_WORD_MOST */
};

struct scrub {
    const struct scrub_word *words;
    unsigned count;
    uint64_t found;
    size_t held, covered; /* bytes kept back; how many of them are stars already */
    char hold[SCRUB_WORD_MOST];
};

/* The words are borrowed for the life of the scrub. */
void scrub_init(struct scrub *scrub, const struct scrub_word *words, unsigned count);

/* Takes the next piece. Gives in ret_clean what may go on, at most size + SCRUB_WORD_MOST bytes:
 * the beginning of a word at the end is kept back. Returns how many. */
size_t scrub_take(struct scrub *scrub, const char *piece, size_t size, char *ret_clean);

/* Gives what was kept back: nothing follows that could have made it a word. */
size_t scrub_end(struct scrub *scrub, char ret_clean[SCRUB_WORD_MOST]);
