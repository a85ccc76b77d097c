/* precheck_test.c - a checker's answer is used only if all of it is well-formed: the text that the
 * checker reads may have taken it over. */
#include "engine/review/precheck.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static struct check_outcome outcome;
static struct precheck precheck;
static char text[64 * 1024];

static bool reads(const char *answer)
{
    outcome = (struct check_outcome){ 0 };
    (void) snprintf(text, sizeof text, "%s", answer);
    return check_read_answer(text, &precheck, &outcome);
}

TEST(only_whole_answers_are_read)
{
    static const struct {
        const char *answer;
        bool is_sound;
        enum check_decision decision;
    } facts[] = {
        /* clang-format off */
        { "end 0\n",                                           true,  CHECK_ALLOW },
        { "module 1 1 import os\nend 1\n",                     true,  CHECK_ALLOW },
        { "module 1 1 import ctypes\nend 1\n",                 true,  CHECK_DENY  },
        { "endless 4294967295 0 use while\nend 1\n",           true,  CHECK_WARN  },
        { "syntax 0 0 use \nend 1\n",                          true,  CHECK_DENY  },
        { "",                                                  false, CHECK_ALLOW },
        { "end 0",                                             false, CHECK_ALLOW },
        { "end\n",                                             false, CHECK_ALLOW },
        { "end 1\n",                                           false, CHECK_ALLOW },
        { "end 0\nend 0\n",                                    false, CHECK_ALLOW },
        { "end 0\nendless 1 1 use while\n",                    false, CHECK_ALLOW },
        { "end 0x0\n",                                         false, CHECK_ALLOW },
        { "endless 1 1 use while\n",                           false, CHECK_WARN  },
        { "endless 1 1 use while\nend 2\n",                    false, CHECK_WARN  }, /* there is one finding */
        { "nothing 1 1 use while\nend 1\n",                    false, CHECK_ALLOW },
        { "endless 4294967296 1 use while\nend 1\n",           false, CHECK_ALLOW },
        { "endless -1 1 use while\nend 1\n",                   false, CHECK_ALLOW },
        { "endless  1 1 use while\nend 1\n",                   false, CHECK_ALLOW },
        { "endless 1 use while\nend 1\n",                      false, CHECK_ALLOW },
        { "endless 1 1 uses while\nend 1\n",                   false, CHECK_ALLOW },
        { "endless 1 1 use \033[2J\nend 1\n",                  false, CHECK_ALLOW },
        { "endless 1 1 use \xc3\xbc\nend 1\n",                 false, CHECK_ALLOW },
        { "endless 1 1 use 0123456789012345678901234567890123456789012345678901234567890123456789"
          "0123456789\nend 1\n",                               false, CHECK_ALLOW },
        { "\n",                                                false, CHECK_ALLOW },
        /* clang-format on */
    };
    precheck_init(&precheck);
    (void) precheck_add_module(&precheck, "ctypes", CHECK_DENY);
    for_each(fact, facts) {
        bool is_sound = reads(fact->answer);
        expect(is_sound == fact->is_sound && outcome.decision == fact->decision, "'%s' is %s, %s",
               fact->answer, is_sound ? "sound" : "refused", check_decision_name(outcome.decision));
    }
}

TEST(what_decides_is_listed_although_there_is_much_else)
{
    static char answer[64 * 1024];
    size_t used = 0;
    precheck_init(&precheck);
    (void) precheck_add_module(&precheck, "ctypes", CHECK_DENY);
    for (unsigned i = 1; i <= 200; i++)
        used +=
            (size_t) snprintf(answer + used, sizeof answer - used, "endless %u 1 use while\n", i);
    (void) snprintf(answer + used, sizeof answer - used, "native 201 1 import ctypes\nend 201\n");
    expect(reads(answer), "it is sound");
    bool is_listed = false;
    for (size_t i = 0; i < outcome.count; i++)
        is_listed |= outcome.findings[i].decision == CHECK_DENY && outcome.findings[i].line == 201;
    expect(outcome.decision == CHECK_DENY && is_listed, "what denies is hidden");
    expect(outcome.count == CHECK_FINDINGS_MAX && outcome.unlisted == 101, "%zu and %llu",
           outcome.count, (unsigned long long) outcome.unlisted);
}

TESTS(CASE(only_whole_answers_are_read), CASE(what_decides_is_listed_although_there_is_much_else))
