/* range_test.c - which Range headers are understood. */
#include "doors/http/range.h"

#include "base/table.h"
#include "base/test.h"

#include <inttypes.h>

TEST(one_range_is_read_in_each_of_its_forms)
{
    static const struct {
        const char *text;
        uint64_t size;
        int result;
        uint64_t from, count;
    } facts[] = {
        { "bytes=0-0", 10, RANGE_PART, 0, 1 },
        { "bytes=2-5", 10, RANGE_PART, 2, 4 },
        { "bytes=2-", 10, RANGE_PART, 2, 8 },
        { "bytes=2-99", 10, RANGE_PART, 2, 8 },
        { "bytes=-3", 10, RANGE_PART, 7, 3 },
        { "bytes=-99", 10, RANGE_PART, 0, 10 },
        { "bytes=9-18446744073709551615", 10, RANGE_PART, 9, 1 },
        { "bytes=10-", 10, RANGE_BEYOND, 0, 0 },
        { "bytes=-0", 10, RANGE_BEYOND, 0, 0 },
        { "bytes=0-", 0, RANGE_BEYOND, 0, 0 },
        { "bytes=5-2", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=-", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0-1,4-5", 10, RANGE_WHOLE, 0, 0 }, /* several ranges: the whole is sent */
        { "bytes=99999999999999999999-", 10, RANGE_WHOLE, 0, 0 },
        { "lines=0-1", 10, RANGE_WHOLE, 0, 0 },
        { "bytes= 0-1", 10, RANGE_WHOLE, 0, 0 },
        { "", 10, RANGE_WHOLE, 0, 0 },
    };
    for_each(fact, facts) {
        struct byte_range range = { 0, 0 };
        int result = range_read(fact->text, fact->size, &range);
        expect(result == fact->result && range.from == fact->from && range.size == fact->count,
               "'%s' of %" PRIu64 " gave %d: %" PRIu64 "+%" PRIu64, fact->text, fact->size, result,
               range.from, range.size);
    }
}

TESTS(CASE(one_range_is_read_in_each_of_its_forms))
