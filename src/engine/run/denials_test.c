/* denials_test.c - which refusals are one row. */
#include "engine/run/denials.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(denials_of_one_target_for_two_reasons_are_two_rows)
{
    struct denials denials = { 0 };
    char cut[DENIAL_MESSAGE_SIZE + 40];
    memset(cut, 'x', sizeof cut);
    cut[sizeof cut - 1] = '\0';
    const struct {
        enum denial_reason reason;
        const char *message;
        size_t row;
    } facts[] = {
        { DENIAL_CONNECTION, "another server name", 0 },
        { DENIAL_CONNECTION, "no server name", 1 },
        { DENIAL_CONNECTION, "no server name", 1 },
        { DENIAL_CONNECTION, "another server name", 0 },
        { DENIAL_EGRESS, "no server name", 2 },
        { DENIAL_CONNECTION, cut, 3 },
        { DENIAL_CONNECTION, cut, 3 }, /* although it is kept cut short */
    };
    for_each(fact, facts) {
        uint64_t before = fact->row < denials.count ? denials.rows[fact->row].count : 0;
        denials_add(&denials, fact->reason, "example.org:443", fact->message, 2);
        require(denials.count > fact->row, "%zu rows", denials.count);
        const struct denial *row = &denials.rows[fact->row];
        expect(row->count == before + 2 && row->reason == fact->reason &&
                   strncmp(row->message, fact->message, sizeof row->message - 1) == 0,
               "%.30s: %d of %.30s", fact->message, (int) row->count, row->message);
    }
    expect(denials.count == 4, "%zu rows", denials.count);
    denials_done(&denials);
}

TESTS(CASE(denials_of_one_target_for_two_reasons_are_two_rows))
