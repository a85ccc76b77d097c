/* percent_encode_test.c - every byte but those that are named is encoded. */
#include "http1/percent_encode.h"

#include "base/test.h"

#include <string.h>

static void encodes(const char *data, size_t size, const char *plain, const char *wanted)
{
    auto_bytes out = { 0 };
    percent_encode(&out, data, size, plain);
    expect(strcmp(bytes_text(&out), wanted) == 0, "'%s' instead of '%s'", bytes_text(&out), wanted);
}

TEST(a_path_keeps_its_slashes)
{
    encodes("a/b c.txt", 9, PERCENT_PATH, "a/b%20c.txt");
    encodes("a/b c.txt", 9, PERCENT_UNRESERVED, "a%2Fb%20c.txt");
}

TEST(no_byte_ends_the_text)
{
    encodes("a\0b\n\xff%", 6, PERCENT_PATH, "a%00b%0A%FF%25");
    encodes("", 0, PERCENT_PATH, "");
}

TESTS(CASE(a_path_keeps_its_slashes), CASE(no_byte_ends_the_text))
