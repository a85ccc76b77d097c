/* statement_other.c - other statements: the note about an execution that begins, the receipt of a
 * lost one, events. */
#include "ledger/statement_parts.h"

#include "ledger/sha256.h"

int statement_write_opened(const struct receipt_facts *facts, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    jcs_open(&json, '{');
    part_caller(&json, facts);
    part_execution(&json, facts);
    jcs_open_field(&json, "inputs", '[');
    if (facts->inputs && facts->input_count > 0)
        part_file(&json, facts->nonce, "inputs",
                  &facts->inputs[0]); /* the code or the command: a note has no space for more */
    jcs_close(&json, ']');
    part_named(&json, "policy", &facts->policy);
    part_moment(&json, "submitted_ms", facts->submitted_ms);
    part_named(&json, "template", &facts->template);
    jcs_close(&json, '}');
    return part_give(&json, out, err);
}

int statement_write_lost(const char *opened, size_t opened_size,
                         const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    char sha256[SHA256_TEXT_SIZE];
    sha256_text_of(opened, opened_size, sha256);
    jcs_open(&json, '{');
    jcs_text_field(&json, "_type", STATEMENT_TYPE);
    jcs_open_field(&json, "predicate", '{');
    jcs_text_field(&json, "id", place->id);
    part_place(&json, place);
    jcs_key(&json, "opened");
    jcs_raw(&json, opened, opened_size);
    jcs_open_field(&json, "outcome", '{');
    jcs_text_field(&json, "fault", "glovebox");
    jcs_text_field(&json, "status", "lost");
    jcs_close(&json, '}');
    jcs_open_field(&json, "times", '{');
    part_moment(&json, "written_ms", place->at_ms);
    jcs_close(&json, '}');
    jcs_close(&json, '}');
    jcs_text_field(&json, "predicateType", PREDICATE_LOST);
    jcs_open_field(&json, "subject", '[');
    part_digests(&json, "opened", "sha256", sha256);
    jcs_close(&json, ']');
    jcs_close(&json, '}');
    return part_give(&json, out, err);
}

int statement_write_event(const char *kind, const struct event_field *fields,
                          const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    jcs_open(&json, '{');
    jcs_integer_field(&json, "at_ms", place->at_ms);
    jcs_text_field(&json, "event", kind);
    jcs_open_field(&json, "facts", '{');
    for (const struct event_field *field = fields; field->name; field++)
        if (field->text)
            jcs_text_field(&json, field->name, field->text);
        else
            jcs_integer_field(&json, field->name, field->number);
    jcs_close(&json, '}');
    jcs_text_field(&json, "id", place->id);
    part_place(&json, place);
    jcs_close(&json, '}');
    return part_give(&json, out, err);
}
