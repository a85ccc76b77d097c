/* openings.c - see openings.h. */
#include "engine/audit/openings.h"

#include "ledger/envelope.h"
#include "json/member.h"
#include "json/writer.h"

#include <json-c/json.h>
#include <sodium.h>
#include <string.h>

static const char *text(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static void write_item(struct bytes *out, const struct opening_key *nonce, const char *group,
                       const char *name, const char *commitment)
{
    struct opening_key key;
    char hex[OPENING_HEX_SIZE], sha256[OPENING_HEX_SIZE];
    opening_item(nonce, group, name, &key);
    (void) sodium_bin2hex(hex, sizeof hex, key.bytes, sizeof key.bytes);
    json_open(out, '{');
    json_string_field(out, "group", group);
    json_string_field(out, "name", name);
    json_string_field(out, "key", hex);
    opening_mask(&key, commitment, sha256);
    json_string_field(out, "sha256", sha256);
    json_close(out, '}');
}

static void write_list(struct bytes *out, const struct opening_key *nonce, const char *group,
                       struct json_object *list)
{
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *row = json_object_array_get_idx(list, i);
        write_item(out, nonce, group, text(json_member(row, "name")),
                   text(json_member(row, "commitment")));
    }
}

/* Writes the items of the receipt, or those that were noted at the beginning. */
static void write_items(struct bytes *out, const char *field, const struct opening_key *nonce,
                        struct json_object *predicate)
{
    static const char *const outputs[] = { "results", "stderr", "stdout" };
    struct json_object *opened = json_member(predicate, "opened"),
                       *said = json_member(predicate, "outputs");
    json_open_field(out, field, '[');
    write_list(out, nonce, "inputs", json_member(opened ? opened : predicate, "inputs"));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (json_member(said, outputs[i]))
            write_item(out, nonce, "outputs", outputs[i],
                       text(json_member(json_member(said, outputs[i]), "commitment")));
    write_list(out, nonce, "artifacts", json_member(predicate, "artifacts"));
    json_close(out, ']');
}

static int write_sealed(struct bytes *out, const struct opening_key *nonce, const char *sealed,
                        error *err)
{
    auto_bytes plain = { 0 };
    if (!*sealed) {
        json_key(out, "sealed");
        json_null(out);
        return 0;
    }
    if (opening_unseal(nonce, sealed, &plain, err) < 0)
        return -1;
    auto_json said = json_tokener_parse(bytes_text(&plain));
    write_items(out, "sealed_items", nonce, json_member(said, "predicate"));
    json_key(out, "sealed");
    json_raw(out, plain.data, plain.size);
    return 0;
}

/* A client that got the content may open it; an auditor may open anything. */
static int check_right(const struct account *account, struct json_object *predicate, error *err)
{
    const struct api_key *key = &account->key;
    bool is_asker =
        strcmp(key->id, text(json_member(json_member(predicate, "caller"), "key"))) == 0;
    bool is_withheld = *text(json_member(predicate, "sealed"));
    if (key->id[0] == '\0' || (key->scopes & SCOPE_AUDIT) || (is_asker && !is_withheld))
        return 0;
    return is_asker
               ? fail(err, ERR_FORBIDDEN,
                      "its output was withheld from key %s; use a key with scope audit", key->id)
               : fail(err, ERR_FORBIDDEN,
                      "only the key that got the answer, or one with scope audit, may open it");
}

static int write_opening(const struct receipts *receipts, const struct account *account,
                         struct json_object *predicate, struct bytes *out, error *err)
{
    struct json_object *opened = json_member(predicate, "opened");
    const char *execution =
        text(json_member(json_member(opened ? opened : predicate, "execution"), "id"));
    struct opening_key nonce;
    if (!*execution)
        return fail(err, ERR_BAD_REQUEST, "only receipts of executions have commitments");
    if (check_right(account, predicate, err) < 0)
        return -1;
    receipts_nonce(receipts, execution, &nonce);
    json_open(out, '{');
    json_string_field(out, "receipt", text(json_member(predicate, "id")));
    json_string_field(out, "execution", execution);
    write_items(out, "items", &nonce, predicate);
    if (write_sealed(out, &nonce, text(json_member(predicate, "sealed")), err) < 0)
        return -1;
    json_close(out, '}');
    return out->failed ? fail(err, ERR_SYSTEM, "no memory to open a receipt") : 0;
}

/* An approval event's commitments: an auditor can compare them with the request. */
static int write_approval(const struct receipts *receipts, const struct account *account,
                          struct json_object *event, struct bytes *out, error *err)
{
    static const char *const names[] = { "code", "request" };
    struct json_object *facts = json_member(event, "facts");
    struct opening_key nonce;
    if (account->key.id[0] != '\0' && account_check_scope(account, SCOPE_AUDIT, err) < 0)
        return -1;
    receipts_nonce(receipts, text(json_member(facts, "approval")), &nonce);
    json_open(out, '{');
    json_string_field(out, "receipt", text(json_member(event, "id")));
    json_string_field(out, "execution", text(json_member(facts, "approval")));
    json_open_field(out, "items", '[');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        write_item(out, &nonce, "approval", names[i], text(json_member(facts, names[i])));
    json_close(out, ']');
    json_null_field(out, "sealed");
    json_close(out, '}');
    return out->failed ? fail(err, ERR_SYSTEM, "no memory to open an event") : 0;
}

int opening_write(struct receipts *receipts, const struct account *account, const char *id,
                  struct bytes *out, error *err)
{
    const char *tenant = account->key.id[0] ? account->key.tenant : NULL;
    auto_bytes record = { 0 };
    auto_envelope envelope = { 0 };
    if (receipt_read(receipts, id, tenant, &record, err) < 0 ||
        envelope_read(record.data, record.size, &envelope, err) < 0)
        return -1;
    auto_json payload = json_tokener_parse(bytes_text(&envelope.payload));
    bool is_approval = strncmp(text(json_member(payload, "event")), "approval.", 9) == 0;
    return is_approval
               ? write_approval(receipts, account, payload, out, err)
               : write_opening(receipts, account, json_member(payload, "predicate"), out, err);
}
