/* audit_events_test.c - which events the log accepts. */
#include "ledger/audit_events.h"

#include "base/table.h"
#include "base/test.h"

#include <stdbool.h>

static bool is_taken(const char *kind, const char *first, const char *second)
{
    const struct event_field fields[] = { { first, "", 0 }, { second, "", 0 }, { 0 } };
    error err;
    return audit_event_check(kind, fields, &err) == 0;
}

TEST(only_an_event_with_the_facts_of_its_row_is_taken)
{
    static const struct {
        bool is_taken;
        const char *kind, *first, *second;
    } cases[] = {
        { true, "log.key_rotated", "new_key", "old_key" },
        { true, "log.key_rotated", "old_key", "new_key" },
        { true, "log.trimmed", "first_kept", NULL },
        { false, "log.trimme", "first_kept", NULL },
        { false, "log.trimmed2", "first_kept", NULL },
        { false, "", NULL, NULL },
        { false, "log.trimmed", NULL, NULL },
        { false, "log.key_rotated", "new_key", NULL },
        { false, "log.key_rotated", "new_key", "new_key" },
        { false, "log.key_rotated", "new_key", "key" },
        { false, "log.key_rotated", "new_key", "new_key old_key" },
        { false, "log.trimmed", "first_kept", "torn_bytes" },
    };
    for_each(row, cases)
        expect(is_taken(row->kind, row->first, row->second) == row->is_taken, "%s with %s, %s",
               row->kind, row->first ? row->first : "no fact", row->second ? row->second : "none");
}

TESTS(CASE(only_an_event_with_the_facts_of_its_row_is_taken))
