/* timestamp_test.c - times as text. */
#include "base/timestamp.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static const struct {
    int64_t ms;
    const char *text;
} moments[] = {
    { 1795316400007, "2026-11-22T03:00:00.007Z" },
    { 1, "1970-01-01T00:00:00.001Z" },
    { -1, "1969-12-31T23:59:59.999Z" },
    { -62135596800000, "0001-01-01T00:00:00.000Z" },
    { 951782400000, "2000-02-29T00:00:00.000Z" },
    { 253402300799999, "9999-12-31T23:59:59.999Z" },
};

TEST(moments_are_written_in_utc_and_read_again)
{
    char text[TIMESTAMP_SIZE];
    for_each(moment, moments) {
        expect(strcmp(timestamp_write(moment->ms, text), moment->text) == 0, "got %s", text);
        expect(timestamp_read(text) == moment->ms, "read %s", text);
    }
    expect(strcmp(timestamp_write(0, text), "1970-01-01T00:00:00.000Z") == 0, "got %s", text);
}

/* A program in a sandbox can set such times for a file. */
TEST(moments_without_a_form_are_cut)
{
    char text[TIMESTAMP_SIZE];
    expect(strcmp(timestamp_write(INT64_MIN, text), "0001-01-01T00:00:00.000Z") == 0, "got %s",
           text);
    expect(strcmp(timestamp_write(INT64_MAX, text), "9999-12-31T23:59:59.999Z") == 0, "got %s",
           text);
}

TEST(moments_of_others_are_read)
{
    static const char *const same[] = { "2026-11-22T03:00:00Z", "2026-11-22T04:30:00+01:30",
                                        "2026-11-21T22:00:00.0-05:00",
                                        "2026-11-22T03:00:00.0009Z" };
    static const char *const none[] = { "",
                                        "24h",
                                        "2026-11-22",
                                        "2026-11-22T03:00:00",
                                        "2026-11-22T03:00:00Zx",
                                        "2026-13-22T03:00:00Z" };
    for_each(text, same)
        expect(timestamp_read(*text) == 1795316400000, "read %s", *text);
    for_each(text, none)
        expect(timestamp_read(*text) == 0, "read %s", *text);
}

TESTS(CASE(moments_are_written_in_utc_and_read_again), CASE(moments_without_a_form_are_cut),
      CASE(moments_of_others_are_read))
