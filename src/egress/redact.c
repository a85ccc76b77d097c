/* redact.c - see redact.h. Bytes are held back only while they may still become a word, and are
 * fewer than the longest word. */
#include "egress/redact.h"

#include "base/hex.h"
#include "base/table.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

void redact_init(struct redact *redact, const struct redact_word *words, unsigned count)
{
    redact->words = words;
    redact->count = count;
    redact->found = 0;
    redact->held = redact->covered = 0;
}

/* The bytes that were held back and the new piece, as one sequence. */
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

/* How an answer may write a character: unchanged, as URLs and forms do (%2F, +), as JSON does (\/,
 * \u002f), as HTML does (&#x2F;, &amp;). Within a word only one of these is recognized. */
enum spelling { AS_IT_IS, AS_URL, AS_JSON, AS_HTML, SPELLINGS };

enum { IS_CUT = -1 /* the bytes end within a character */ };

_Static_assert((int) REDACT_HOLD_MAX == (int) REDACT_WORD_MAX * (int) REDACT_SPELLED_MAX,
               "a word in its longest spelling is held");

/* Are the digits from `from` to `to` the code of this character? */
static bool is_number(const char *text, size_t from, size_t to, int base, char c)
{
    int value = 0;
    for (size_t i = from; i < to; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0 || digit >= base || value > 0xff)
            return false;
        value = value * base + digit;
    }
    return from < to && value == (unsigned char) c;
}

static int spelled_in_html(const char *text, size_t has, char c)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {
        { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' }
    };
    const char *end = memchr(text, ';', has);
    if (!end)
        return has < REDACT_SPELLED_MAX ? IS_CUT : 0;
    size_t size = (size_t) (end - text) + 1;
    for_each(row, names)
        if (strlen(row->name) == size && strncasecmp(row->name, text, size) == 0)
            return row->c == c ? (int) size : 0;
    bool is_hex = text[2] == 'x' || text[2] == 'X';
    bool is_it = text[1] == '#' && is_number(text, is_hex ? 3 : 2, size - 1, is_hex ? 16 : 10, c);
    return is_it ? (int) size : 0;
}

static int spelled_in_json(const char *text, size_t has, char c)
{
    if (has < 2)
        return IS_CUT;
    if (text[1] != 'u')
        return text[1] == c ? 2 : 0;
    if (has < 6)
        return IS_CUT;
    return is_number(text, 2, 6, 16, c) ? 6 : 0;
}

static int spelled_in_url(const char *text, size_t has, char c)
{
    if (has < 3)
        return IS_CUT;
    return is_number(text, 1, 3, 16, c) ? 3 : 0;
}

/* How many bytes at `at` spell the character; 0 if they do not, or IS_CUT. */
static int spelled(const struct view *view, size_t at, enum spelling spelling, char c)
{
    static const char begins[SPELLINGS] = { [AS_URL] = '%', [AS_JSON] = '\\', [AS_HTML] = '&' };
    char text[REDACT_SPELLED_MAX] = "";
    size_t has = 0;
    char first = byte_at(view, at);
    if (spelling == AS_IT_IS || first != begins[spelling])
        return first == c || (spelling == AS_URL && c == ' ' && first == '+');
    for (; has < sizeof text && at + has < view->size; has++)
        text[has] = byte_at(view, at + has);
    if (spelling == AS_URL)
        return spelled_in_url(text, has, c);
    return spelling == AS_JSON ? spelled_in_json(text, has, c) : spelled_in_html(text, has, c);
}

/* How many bytes at `at` are the word, or enough of it (redact_enough()); else 0. Sets *ret_may_be
 * if more bytes could complete it. */
static size_t match(const struct view *view, size_t at, enum spelling spelling,
                    const struct redact_word *word, bool *ret_may_be)
{
    size_t size = 0;
    for (size_t i = 0; i < word->size; i++) {
        int used =
            at + size < view->size ? spelled(view, at + size, spelling, word->at[i]) : IS_CUT;
        *ret_may_be |= used == IS_CUT;
        if (used <= 0)
            return i < redact_enough(word->size) ? 0 : size;
        size += (size_t) used;
    }
    return size;
}

/* The length of the longest word at `at`; sets *ret_may_be if more bytes could complete one. */
static size_t longest(const struct redact *redact, const struct view *view, size_t at,
                      bool *ret_may_be)
{
    size_t max = 0;
    for (unsigned i = 0; i < redact->count; i++)
        for (unsigned spelling = 0; spelling < SPELLINGS; spelling++) {
            size_t size = match(view, at, spelling, &redact->words[i], ret_may_be);
            if (size > max)
                max = size;
        }
    return max;
}

/* Gives one byte of output: a star if a word covers it. `found` bytes of a word begin here. */
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
    size_t stars_end = redact->covered, at = 0;
    bool may_be = false;
    for (; at < view.size; at++) {
        size_t found = longest(redact, &view, at, &may_be);
        if (may_be)
            break;
        ret_clean[at] = cleaned(redact, &view, at, found, &stars_end);
    }
    size_t held = view.size - at, from_hold = at < redact->held ? redact->held - at : 0;
    memmove(redact->hold, redact->hold + redact->held - from_hold, from_hold);
    memcpy(redact->hold + from_hold, piece + size - (held - from_hold), held - from_hold);
    redact->held = held;
    redact->covered = stars_end > at ? stars_end - at : 0;
    return at;
}

/* Shorter words may still be found in the bytes that were held back. */
size_t redact_end(struct redact *redact, char ret_clean[REDACT_HOLD_MAX])
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
