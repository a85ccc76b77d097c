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

TEST(control_characters_of_a_name_are_escaped)
{
    static const struct {
        const char *path, *target;
    } facts[] = {
        { "a b", "/workspace/a b" },
        { "\x1b[1m\x7f\n", "/workspace/\\x1b[1m\\x7f\\x0a" },
        { "\xc2\x7f", "/workspace/\xc2\\x7f" },
        { "\xc2\x80\xc2\x9b!", "/workspace/\\x80\\x9b!" },
        { "\xc2\x9f\xc2\xa0", "/workspace/\\x9f\xc2\xa0" },
        { "\xc5\x9b\x9b", "/workspace/\xc5\x9b\x9b" }, /* JSON shows the last byte as U+FFFD */
        { "a\xc2", "/workspace/a\xc2" },
    };
    for_each(fact, facts) {
        struct denials denials = { 0 };
        struct agent_skipped skipped = { .reason = AGENT_SKIP_NAME };
        denials_add_skipped(&denials, &skipped, fact->path, strlen(fact->path));
        require(denials.count == 1, "%zu rows", denials.count);
        expect(strcmp(denials.rows[0].target, fact->target) == 0, "%s", denials.rows[0].target);
        denials_done(&denials);
    }
}

TESTS(CASE(denials_of_one_target_for_two_reasons_are_two_rows),
      CASE(control_characters_of_a_name_are_escaped))
