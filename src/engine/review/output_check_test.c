/* output_check_test.c - only one answer of the checker is a pass: six bytes. */
#include "engine/review/output_check.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static struct output_check_outcome outcome;
static char text[64 * 1024];
static const uint32_t counts[2] = { 2, 1 };

enum { UNSOUND = -1 };

static int read_it(const char *answer)
{
    outcome = (struct output_check_outcome){ 0 };
    (void) snprintf(text, sizeof text, "%s", answer);
    return output_check_read_answer(text, counts, &outcome) ? (int) outcome.verdict : UNSOUND;
}

TEST(only_whole_answers_are_read)
{
    static const struct {
        const char *answer;
        int verdict;
    } facts[] = {
        /* clang-format off */
        { "end 0\n",                                      OUTPUT_CHECK_PASSED },
        { "json stdout 0 line 1\nend 1\n",                OUTPUT_CHECK_FAILED },
        { "cut stdout 0 \nend 1\n",                       OUTPUT_CHECK_FAILED },
        { "type artifact.1 0 expected a/b\nend 1\n",      OUTPUT_CHECK_FAILED },
        { "missing expected.0 0 \nend 1\n",               OUTPUT_CHECK_FAILED },
        { "secret stderr 4294967295 jwt\nend 1\n",        OUTPUT_CHECK_FAILED },
        { "failed no memory\n",                           OUTPUT_CHECK_ERROR  },
        { "",                                             UNSOUND     },
        { "\n",                                           UNSOUND     },
        { "end 0",                                        UNSOUND     },
        { "end 0\n\n",                                    UNSOUND     },
        { "end 0\nend 0\n",                               UNSOUND     },
        { "end  0\n",                                     UNSOUND     },
        { "end 00\n",                                     UNSOUND     },
        { "end +0\n",                                     UNSOUND     },
        { "end -1\n",                                     UNSOUND     },
        { "end 0 \n",                                     UNSOUND     },
        { "End 0\n",                                      UNSOUND     },
        { "end\n",                                        UNSOUND     },
        { "end 1\n",                                      UNSOUND     },
        { "end 100\n",                                    UNSOUND     },
        { "json stdout 0 x\nend 0\n",                     UNSOUND     },
        { "json stdout 0 x\nend 2\n",                     UNSOUND     },
        { "json stdout 0 x\nfailed x\n",                  UNSOUND     },
        { "end 0\njson stdout 0 x\n",                     UNSOUND     },
        { "json stdout 0\nend 1\n",                       UNSOUND     },
        { "json stdout x y\nend 1\n",                     UNSOUND     },
        { "json nowhere 0 x\nend 1\n",                    UNSOUND     },
        { "json stdout.0 0 x\nend 1\n",                   UNSOUND     },
        { "type artifact 0 x\nend 1\n",                   UNSOUND     },
        { "type artifact.2 0 x\nend 1\n",                 UNSOUND     },
        { "type artifact.-1 0 x\nend 1\n",                UNSOUND     },
        { "missing expected.1 0 \nend 1\n",               UNSOUND     },
        { "fine stdout 0 x\nend 1\n",                     UNSOUND     },
        { "secret stdout 1 ghp_abc\nend 1\n",             UNSOUND     }, /* no pattern has this name */
        { "json stdout 0 \x1b[0m\nend 1\n",               UNSOUND     },
        { "json stdout 0 \xc3\xa9\nend 1\n",              UNSOUND     },
        { "failed \x07\n",                                UNSOUND     },
        /* clang-format on */
    };
    for_each(fact, facts) {
        int verdict = read_it(fact->answer);
        expect(verdict == fact->verdict, "'%s' is %d", fact->answer, verdict);
    }
    expect(read_it("secret artifact.1 7 jwt\nend 1\n") == OUTPUT_CHECK_FAILED &&
               outcome.findings[0].rule == OUTPUT_CHECK_secret &&
               outcome.findings[0].place == PLACE_ARTIFACT && outcome.findings[0].index == 1 &&
               outcome.findings[0].line == 7,
           "a finding is read as something else");
}

TEST(more_than_can_be_listed_are_counted)
{
    size_t at = 0;
    for (int i = 0; i < OUTPUT_CHECK_FINDINGS_MAX; i++)
        at += (size_t) snprintf(text + at, sizeof text - at, "schema stdout 0 %d\n", i);
    (void) snprintf(text + at, sizeof text - at, "end 5000\n");
    outcome = (struct output_check_outcome){ 0 };
    expect(output_check_read_answer(text, counts, &outcome) &&
               outcome.verdict == OUTPUT_CHECK_FAILED &&
               outcome.count == OUTPUT_CHECK_FINDINGS_MAX && outcome.unlisted == 4900,
           "it is %d, %zu and %d more", (int) outcome.verdict, outcome.count,
           (int) outcome.unlisted);
    at = 0;
    for (int i = 0; i <= OUTPUT_CHECK_FINDINGS_MAX; i++)
        at += (size_t) snprintf(text + at, sizeof text - at, "schema stdout 0 %d\n", i);
    (void) snprintf(text + at, sizeof text - at, "end 101\n");
    outcome = (struct output_check_outcome){ 0 };
    expect(!output_check_read_answer(text, counts, &outcome),
           "more findings than there is room for");
}

TESTS(CASE(only_whole_answers_are_read), CASE(more_than_can_be_listed_are_counted))
