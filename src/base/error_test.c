/* error_test.c - an error keeps the texts added to it, up to the size of its buffer. */
#include "base/error.h"

#include "base/test.h"

#include <errno.h>
#include <string.h>

TEST(a_failure_says_what_and_gives_minus_one)
{
    error err = { .os = 7 };
    expect(fail(&err, ERR_LIMIT, "memory %d", 5) == -1, "fail gives -1");
    expect(err.code == ERR_LIMIT && err.os == 0 && strcmp(err.text, "memory 5") == 0, "'%s'",
           err.text);
}

TEST(a_failure_of_the_kernel_says_why)
{
    error err = { 0 };
    errno = ENOSPC;
    expect(fail_os(&err, "mount '%s'", "/tmp") == -1, "fail_os gives -1");
    expect(err.code == ERR_SYSTEM && err.os == ENOSPC && errno == ENOSPC, "code and errno");
    expect(strcmp(err.text, "mount '/tmp': No space left on device") == 0, "'%s'", err.text);
    errno = 99999;
    (void) fail_os(&err, "x");
    expect(strcmp(err.text, "x: unknown error") == 0, "'%s'", err.text);
}

TEST(context_is_put_before)
{
    error err = { 0 };
    errno = ENOENT;
    (void) fail_os(&err, "open 'a'");
    expect(under(&err, "start sandbox %s", "b7") == -1, "under gives -1");
    expect(under(&err, "run") == -1, "under gives -1");
    expect(strcmp(err.text, "run: start sandbox b7: open 'a': No such file or directory") == 0,
           "'%s'", err.text);
    expect(err.code == ERR_SYSTEM && err.os == ENOENT, "context changes neither code nor errno");
}

TEST(a_text_that_is_too_long_loses_its_end)
{
    char word[sizeof((error *) NULL)->text + 168];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    error err = { 0 };
    (void) fail(&err, ERR_INTERNAL, "%s", word);
    expect(strlen(err.text) == sizeof err.text - 1, "fail: %zu", strlen(err.text));
    errno = EPERM;
    (void) fail_os(&err, "%s", word);
    expect(strlen(err.text) == sizeof err.text - 1, "fail_os: %zu", strlen(err.text));
    (void) under(&err, "begin");
    expect(strncmp(err.text, "begin: xxx", 10) == 0, "the beginning is kept");
    expect(strlen(err.text) == sizeof err.text - 1, "under: %zu", strlen(err.text));
    (void) under(&err, "%s", word);
    expect(err.text[0] == 'x' && strlen(err.text) == sizeof err.text - 1, "context without room");
}

TESTS(CASE(a_failure_says_what_and_gives_minus_one), CASE(a_failure_of_the_kernel_says_why),
      CASE(context_is_put_before), CASE(a_text_that_is_too_long_loses_its_end))
