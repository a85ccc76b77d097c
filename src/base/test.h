/* test.h - macros over cmocka: a test checks a table of facts, and prints every one that is false.
 * Only x_test.c files include it.
 *
 *     TEST(sizes_are_read_with_their_unit) { … expect(result == 0, "'%s' gave %d", text, result); }
 *     TESTS(CASE(sizes_are_read_with_their_unit), CASE(…)) */
#pragma once

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#undef fail /* error.h has one for analyzers */
#include <cmocka.h>

/* cmocka's; `fail` is ours, and `require` stops a test. */
#undef fail
#undef fail_msg

static int failed_facts;

PRINTF(3, 4) static inline void fact_failed(const char *file, int line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void) fprintf(stderr, "%s:%d: ", file, line);
    (void) vfprintf(stderr, format, values);
    (void) fputc('\n', stderr);
    va_end(values);
    failed_facts++;
}

/* _fail() of cmocka does not return (longjmp); abort() tells analyzers so. */
_Noreturn static inline void end_test(const char *file, int line)
{
    _fail(file, line);
    abort();
}

#define expect(fact, ...) ((fact) ? (void) 0 : fact_failed(__FILE__, __LINE__, __VA_ARGS__))

/* Ends the test if the fact is false. */
#define require(fact, ...)                                \
    do {                                                  \
        if (!(fact)) {                                    \
            fact_failed(__FILE__, __LINE__, __VA_ARGS__); \
            end_test(__FILE__, __LINE__);                 \
        }                                                 \
    } while (0)

#define TEST(name)                        \
    static void name##_facts(void);       \
    static void name(void **state)        \
    {                                     \
        (void) state;                     \
        failed_facts = 0;                 \
        name##_facts();                   \
        if (failed_facts > 0)             \
            end_test(__FILE__, __LINE__); \
    }                                     \
    static void name##_facts(void)

#define CASE(name) cmocka_unit_test(name)

#define TESTS(...)                                                \
    int main(void)                                                \
    {                                                             \
        static const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
        cmocka_set_message_output(CM_OUTPUT_TAP);                 \
        return cmocka_run_group_tests(tests, NULL, NULL);         \
    }
