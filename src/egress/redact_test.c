/* redact_test.c - no secret passes, complete or divided at any byte. */
#include "base/table.h"
#include "base/test.h"
#include "egress/redact.h"

#include <string.h>

static const struct redact_word words[] = { { "Bearer abcabcd", 14 },
                                            { "abcabcd", 7 },
                                            { "xyxyz", 5 },
                                            { "k/1+ 2\"<%\\&", 11 },
                                            { "Long/0123456789abcde", 20 } };

enum { ROOM = 2 * REDACT_HOLD_MAX };

/* Passes the text in pieces of `step` bytes. Returns the output, ended by NUL. */
static size_t scrubbed(const char *text, size_t step, char ret_clean[ROOM], uint64_t *ret_found)
{
    static struct redact redact;
    size_t size = strlen(text);
    size_t used = 0;
    redact_init(&redact, words, COUNT_OF(words));
    for (size_t at = 0; at < size; at += step)
        used +=
            redact_take(&redact, text + at, size - at < step ? size - at : step, ret_clean + used);
    used += redact_end(&redact, ret_clean + used);
    ret_clean[used] = '\0';
    *ret_found = redact.found;
    return used;
}

TEST(words_become_stars_wherever_the_pieces_are_cut)
{
    static const struct {
        const char *text, *clean;
    } facts[] = {
        { "", "" },
        { "nothing here", "nothing here" },
        { "abcabcd", "*******" },
        { "Authorization: Bearer abcabcd\r\n", "Authorization: **************\r\n" },
        { "abcabcabcd", "abc*******" }, /* its beginning occurs again inside it */
        { "xyxyxyz", "xy*****" },
        { "abcabcxyxyz", "abcabc*****" }, /* the beginning of one secret, then another */
        { "abcabc", "abcabc" },
        { "Bearer abcabc", "Bearer abcabc" },
        { "Bearer Bearer abcabcd", "Bearer **************" },
        { "abcabcdabcabcd", "**************" },
        { "Bearer abcabxyxyz abcabcd", "Bearer abcab***** *******" },
        { "=k/1+ 2\"<%\\&", "=***********" },
        { "=k%2F1%2b+2%22%3c%25%5C%26.", "=*************************." },
        { "=k/1%2B%202%22%3C%25%5c%26", "=*************************" }, /* encodeURI() */
        { "=k/1+ 2\\\"<%\\\\&", "=*************" },
        { "=k\\/1\\u002B 2\\u0022\\u003c%\\\\\\u0026.", "=*********************************." },
        { "=k/1&#43; 2&quot;&LT;%\\&amp;.", "=***************************." },
        { "=&#107;&#x2f;1&#x002B; 2&#34;&lt;%\\&#038;",
          "=****************************************" },
        { "Long/0123456789abcde", "********************" },
        { "Long/0123456789abcd", "*******************" }, /* shortened by a server */
        { "Long/0123456789\u2026", "***************\u2026" },
        { "Long/012345678 ...", "Long/012345678 ..." },
        { "Long%2F0123456789abc%", "********************%" },
        { "Long/0123456789abcabcabcd", "*************************" },
        { "Long/0123456Long/0123456789", "Long/0123456***************" },
        { "k%2G1 k\\u002 k&#47 k%2F1%2", "k%2G1 k\\u002 k&#47 k%2F1%2" },
    };
    for_each(fact, facts)
        for (size_t step = 1; step < 30; step++) {
            static char clean[ROOM];
            uint64_t found;
            size_t size = scrubbed(fact->text, step, clean, &found);
            expect(size == strlen(fact->text) && strcmp(clean, fact->clean) == 0,
                   "'%s' by %zu gave '%s'", fact->text, step, clean);
            expect((found > 0) == (strchr(fact->clean, '*') != NULL), "'%s' by %zu found %llu",
                   fact->text, step, (unsigned long long) found);
        }
}

TESTS(CASE(words_become_stars_wherever_the_pieces_are_cut))
