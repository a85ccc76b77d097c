/* base64_test.c - RFC 4648: padding is kept, and everything else is refused. */
#include "base/base64.h"
#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(base64_is_strict)
{
    static const struct {
        const char *text;
        int64_t size; /* -1: refused */
        const char *bytes;
    } facts[] = {
        { "", 0, "" },        { "Zg==", 1, "f" },        { "Zm8=", 2, "fo" },
        { "Zm9v", 3, "foo" }, { "Zm9vYg==", 4, "foob" }, { "AP8=", 2, "\0\xff" },
        { "Zg", -1, "" },     { "Zg=", -1, "" },         { "Zg==Zg==", -1, "" },
        { "Z===", -1, "" },   { "Zm 9", -1, "" },        { "=Zm9", -1, "" },
        { "Zm9-", -1, "" },   { "Z=9v", -1, "" },
    };
    for_each(fact, facts) {
        char out[16] = "";
        int64_t size = base64_decode(fact->text, strlen(fact->text), out);
        expect(size == fact->size && (size < 0 || memcmp(out, fact->bytes, (size_t) size) == 0),
               "'%s' gave %lld", fact->text, (long long) size);
    }
}

TEST(bytes_come_back)
{
    unsigned char bytes[200], back[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char) (i * 151);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        char text[(200 + 2) / 3 * 4];
        base64_encode(bytes, size, text);
        int64_t got = base64_decode(text, base64_size(size), back);
        expect(got == (int64_t) size && memcmp(bytes, back, size) == 0, "%zu bytes gave %lld", size,
               (long long) got);
    }
}

TEST(the_first_wrong_character_is_named)
{
    size_t bad = 0;
    expect(base64_check("Zm9-Zm9v", 8, &bad) < 0 && bad == 3, "offset %zu", bad);
}

TESTS(CASE(base64_is_strict), CASE(bytes_come_back), CASE(the_first_wrong_character_is_named))
