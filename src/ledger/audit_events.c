/* audit_events.c - see audit_events.h. */
#include "ledger/audit_events.h"

#include "base/table.h"

#include <stdbool.h>
#include <string.h>

static const struct event_row {
    const char *kind;
    const char *always, *optional; /* names of facts, separated by blanks */
} rows[] = {
#define AUDIT_EVENT(kind, always, optional, text) { kind, always, optional },
#include "ledger/audit_events.def"
};

static bool has_word(const char *words, const char *word)
{
    for (size_t length = strlen(word), here; *words; words += here + (words[here] == ' ')) {
        here = strcspn(words, " ");
        if (here == length && strncmp(words, word, length) == 0)
            return true;
    }
    return false;
}

static bool has_fact(const struct event_field *fields, const char *name, size_t length)
{
    for (; fields->name; fields++)
        if (strlen(fields->name) == length && strncmp(fields->name, name, length) == 0)
            return true;
    return false;
}

static int check_facts(const struct event_row *row, const struct event_field *fields, error *err)
{
    for (const struct event_field *field = fields; field->name; field++)
        if (!has_word(row->always, field->name) && !has_word(row->optional, field->name))
            return fail(err, ERR_INTERNAL, "the event %s has no fact '%s' (audit_events.def)",
                        row->kind, field->name);
    for (const char *word = row->always; *word;) {
        size_t length = strcspn(word, " ");
        if (!has_fact(fields, word, length))
            return fail(err, ERR_INTERNAL, "the event %s lacks its fact '%.*s' (audit_events.def)",
                        row->kind, (int) length, word);
        word += length + (word[length] == ' ');
    }
    return 0;
}

int audit_event_check(const char *kind, const struct event_field *fields, error *err)
{
    for_each(row, rows)
        if (strcmp(row->kind, kind) == 0)
            return check_facts(row, fields, err);
    return fail(err, ERR_INTERNAL, "there is no event '%s' (audit_events.def)", kind);
}
