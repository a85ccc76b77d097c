/* timestamp_test.c - moments as text. */
#include "base/timestamp.h"

#include "base/test.h"

#include <string.h>

TEST(moments_are_written_in_utc)
{
    char text[TIMESTAMP_SIZE];
    expect(strcmp(timestamp_write(1795316400007, text), "2026-11-22T03:00:00Z") == 0, "got %s",
           text);
    expect(strcmp(timestamp_write_ms(1795316400007, text), "2026-11-22T03:00:00.007Z") == 0,
           "got %s", text);
}

TEST(no_moment_is_no_text)
{
    char text[TIMESTAMP_SIZE] = "x";
    expect(*timestamp_write(0, text) == '\0', "got %s", text);
    expect(*timestamp_write_ms(-1, text) == '\0', "got %s", text);
}

TESTS(CASE(moments_are_written_in_utc), CASE(no_moment_is_no_text))
