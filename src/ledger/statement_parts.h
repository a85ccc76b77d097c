/* statement_parts.h - parts that all kinds of statements share. Each function writes members of the
 * JSON object that is open. */
#pragma once

#include "ledger/opening.h"
#include "ledger/statement.h"
#include "json/canonical_writer.h"

void part_digest(struct jcs *json, const struct fact_named *named);
void part_named(struct jcs *json, const char *key, const struct fact_named *named);
static inline void part_known(struct jcs *json, const char *key, bool is_known, int64_t value)
{
    if (is_known)
        jcs_integer_field(json, key, value);
    else
        jcs_null_field(json, key);
}
static inline void part_moment(struct jcs *json, const char *key, int64_t at_ms)
{
    part_known(json, key, at_ms > 0, at_ms);
}
void part_caller(struct jcs *json, const struct receipt_facts *facts);
void part_execution(struct jcs *json, const struct receipt_facts *facts);
void part_place(struct jcs *json, const struct statement_place *place);
/* A commitment to a hash; `group` and `name` say what was hashed. */
struct part_commitment {
    const struct opening_key *nonce;
    const char *group, *name, *sha256;
};
void part_commitment(struct jcs *json, const char *key, const struct part_commitment *what);
void part_digests(struct jcs *json, const char *name, const char *algorithm, const char *digest);
void part_subject(struct jcs *json, const char *name, const struct part_commitment *what);
void part_file(struct jcs *json, const struct opening_key *nonce, const char *group,
               const struct fact_file *file);
int part_give(struct jcs *json, struct bytes *out, error *err);
