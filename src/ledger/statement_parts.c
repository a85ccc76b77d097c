/* statement_parts.c - see statement_parts.h. */
#include "ledger/statement_parts.h"

#include <sodium.h>

void part_digest(struct jcs *json, const struct fact_named *named)
{
    jcs_open(json, '{');
    jcs_text_field(json, "digest", named->digest);
    jcs_text_field(json, "name", named->name);
    jcs_close(json, '}');
}

void part_named(struct jcs *json, const char *key, const struct fact_named *named)
{
    jcs_key(json, key);
    part_digest(json, named);
}

void part_caller(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "caller", '{');
    jcs_text_field(json, "key", facts->key);
    jcs_text_field(json, "tenant", facts->tenant);
    jcs_close(json, '}');
}

void part_execution(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "execution", '{');
    jcs_text_field(json, "context", facts->context);
    jcs_text_field(json, "id", facts->id);
    jcs_text_field(json, "kind", facts->kind);
    jcs_text_field(json, "language", facts->language);
    jcs_text_field(json, "session", facts->session);
    jcs_text_field(json, "start", facts->start);
    jcs_close(json, '}');
}

/* The log, the position in it, and the root of all earlier records: so the signature of a receipt
 * also covers the history before it. */
void part_place(struct jcs *json, const struct statement_place *place)
{
    char root[SHA256_TEXT_SIZE];
    (void) sodium_bin2hex(root, sizeof root, place->before.root.bytes, MERKLE_HASH_SIZE);
    jcs_open_field(json, "log", '{');
    jcs_count_field(json, "index", place->before.size);
    jcs_text_field(json, "origin", place->origin);
    jcs_text_field(json, "root_before", root);
    jcs_close(json, '}');
}

static void commit(const struct part_commitment *what, char ret[OPENING_HEX_SIZE])
{
    struct opening_key key;
    opening_item(what->nonce, what->group, what->name, &key);
    opening_mask(&key, what->sha256, ret);
}

void part_commitment(struct jcs *json, const char *key, const struct part_commitment *what)
{
    char commitment[OPENING_HEX_SIZE] = "";
    if (what->sha256[0])
        commit(what, commitment);
    jcs_text_field(json, key, commitment[0] ? commitment : NULL);
}

void part_digests(struct jcs *json, const char *name, const char *algorithm, const char *digest)
{
    jcs_open(json, '{');
    jcs_open_field(json, "digest", '{');
    jcs_text_field(json, algorithm, digest);
    jcs_close(json, '}');
    jcs_text_field(json, "name", name);
    jcs_close(json, '}');
}

void part_subject(struct jcs *json, const char *name, const struct part_commitment *what)
{
    char commitment[OPENING_HEX_SIZE];
    commit(what, commitment);
    part_digests(json, name, "commitment", commitment);
}

void part_file(struct jcs *json, const struct opening_key *nonce, const char *group,
               const struct fact_file *file)
{
    const struct part_commitment what = { nonce, group, file->name, file->sha256 };
    jcs_open(json, '{');
    jcs_count_field(json, "bytes", file->bytes);
    part_commitment(json, "commitment", &what);
    jcs_text_field(json, "name", file->name);
    jcs_close(json, '}');
}

int part_give(struct jcs *json, struct bytes *out, error *err)
{
    int result = jcs_end(json, err);
    if (result == 0)
        bytes_add(out, json->out.data, json->out.size);
    jcs_done(json);
    if (result == 0 && out->failed)
        return fail(err, ERR_SYSTEM, "no memory for a receipt");
    return result;
}
