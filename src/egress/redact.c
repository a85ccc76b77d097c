/* redact.c - see redact.h. What is kept back is less than the longest word, and only as long as it
 * may still become one. */
#include "egress/redact.h"

#include <stdbool.h>
#include <string.h>

void redact_init(struct redact *redact, const struct redact_word *words, unsigned count)
{
    redact->words = words;
    redact->count = count;
    redact->found = 0;
    redact->held = redact->covered = 0;
}

/* The bytes that were kept back and the piece, as if they were one. */
struct view {
    const char *first, *second;
    size_t first_size, size;
};

static char byte_at(const struct view *view, size_t at)
{
    if (at < view->first_size)
        return view->first[at];
    return view->second[at - view->first_size];
}

/* Bytes of the word that stand at `at`: all of them, or 0 if another byte comes first. Fewer than
 * all at the end of what there is. */
static size_t match(const struct view *view, size_t at, const struct redact_word *word)
{
    size_t size = 0;
    while (size < word->size && at + size < view->size) {
        if (byte_at(view, at + size) != word->at[size])
            return 0;
        size++;
    }
    return size;
}

/* The longest whole word at `at`; *ret_may_be if one could still become whole. */
static size_t longest(const struct redact *redact, const struct view *view, size_t at,
                      bool *ret_may_be)
{
    size_t max = 0;
    for (unsigned i = 0; i < redact->count; i++) {
        size_t size = match(view, at, &redact->words[i]);
        if (size > 0 && size < redact->words[i].size)
            *ret_may_be = true;
        else if (size > max)
            max = size;
    }
    return max;
}

/* One byte, where `found` bytes of a word begin; words cover what is before `stars_end`. */
static char cleaned(struct redact *redact, const struct view *view, size_t at, size_t found,
                    size_t *stars_end)
{
    redact->found += found > 0;
    if (at + found > *stars_end)
        *stars_end = at + found;
    if (at < *stars_end)
        return '*';
    return byte_at(view, at);
}

size_t redact_take(struct redact *redact, const char *piece, size_t size, char *ret_clean)
{
    const struct view view = { redact->hold, piece, redact->held, redact->held + size };
    size_t stars_end = redact->covered;
    size_t at = 0;
    bool may_be = false;
    for (; at < view.size; at++) {
        size_t found = longest(redact, &view, at, &may_be);
        if (may_be)
            break;
        ret_clean[at] = cleaned(redact, &view, at, found, &stars_end);
    }
    size_t held = view.size - at;
    size_t from_hold = at < redact->held ? redact->held - at : 0;
    memmove(redact->hold, redact->hold + redact->held - from_hold, from_hold);
    memcpy(redact->hold + from_hold, piece + size - (held - from_hold), held - from_hold);
    redact->held = held;
    redact->covered = stars_end > at ? stars_end - at : 0;
    return at;
}

/* Shorter words may lie in what is left. */
size_t redact_end(struct redact *redact, char ret_clean[REDACT_WORD_MAX])
{
    const struct view view = { redact->hold, NULL, redact->held, redact->held };
    size_t stars_end = redact->covered;
    bool unheard = false;
    for (size_t at = 0; at < view.size; at++) {
        size_t found = longest(redact, &view, at, &unheard);
        ret_clean[at] = cleaned(redact, &view, at, found, &stars_end);
    }
    redact->held = redact->covered = 0;
    return view.size;
}
