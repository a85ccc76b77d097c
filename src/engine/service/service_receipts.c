/* service_receipts.c - see service_receipts.h. */
#include "engine/service/service_receipts.h"

#include "engine/audit/audit_log.h"
#include "engine/audit/openings.h"

#include <sodium.h>

_Static_assert((int) LOG_HASH_SIZE == 2 * MERKLE_HASH_SIZE + 1 &&
                   (int) LOG_PROOF_MAX == (int) MERKLE_PROOF_MAX &&
                   (int) LOG_KEY_SIZE == (int) KEY_TEXT_SIZE,
               "every proof and key has room");

static void write_hash(const struct merkle_hash *hash, char ret_hex[LOG_HASH_SIZE])
{
    (void) sodium_bin2hex(ret_hex, LOG_HASH_SIZE, hash->bytes, sizeof hash->bytes);
}

static void write_hashes(const struct merkle_proof *from, struct log_proof *proof)
{
    proof->count = from->count;
    for (size_t i = 0; i < from->count; i++)
        write_hash(&from->hashes[i], proof->hashes[i]);
}

/* NULL for the daemon's owner, which sees all. */
static const char *tenant_of(const struct caller *caller)
{
    const struct api_key *key = &caller->account->key;
    return key->id[0] ? key->tenant : NULL;
}

int service_receipt(const struct service *service, const struct caller *caller, const char *id,
                    struct bytes *out, error *err)
{
    return receipt_read(service->receipts, id, tenant_of(caller), out, err);
}

int service_list_receipts(const struct service *service, const struct caller *caller,
                          struct record_page *page, struct bytes *out, error *err)
{
    struct receipt_page found = { .cursor = page->cursor, .max = page->max };
    int result = receipts_list(service->receipts, tenant_of(caller), &found, out, err);
    page->next = found.next;
    page->has_more = found.has_more;
    return result;
}

int service_receipt_proof(const struct service *service, const char *id, struct bytes *checkpoint,
                          struct log_proof *ret_proof, error *err)
{
    const struct merkle_tree *tree = ledger_tree(receipts_ledger(service->receipts));
    struct merkle_proof proof;
    if (receipt_read_id(id, &ret_proof->from, err) < 0 ||
        service_log_checkpoint(service, checkpoint, &ret_proof->to, err) < 0 ||
        merkle_inclusion(tree, ret_proof->from, ret_proof->to, &proof, err) < 0)
        return -1;
    write_hashes(&proof, ret_proof);
    return 0;
}

int service_receipt_opening(const struct service *service, const struct caller *caller,
                            const char *id, struct bytes *out, error *err)
{
    return opening_write(service->receipts, caller->account, id, out, err);
}

int service_log_covers(const struct service *service, const char *receipt, uint64_t *size,
                       error *err)
{
    if (receipt && *size == 0) {
        if (receipt_read_id(receipt, size, err) < 0)
            return -1;
        ++*size;
    }
    return receipts_cover(service->receipts, size, err);
}

int service_log_checkpoint(const struct service *service, struct bytes *out, uint64_t *ret_size,
                           error *err)
{
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    if (ledger_checkpoint(receipts_ledger(service->receipts), text, &head, err) < 0)
        return -1;
    bytes_add_text(out, text);
    *ret_size = head.size;
    return 0;
}

void service_log_key(const struct service *service, struct log_key *ret_key)
{
    const struct public_key *key = ledger_key(receipts_ledger(service->receipts));
    ret_key->id = key->id;
    public_key_print(key, ret_key->line);
    public_key_print_pem(key, ret_key->pem);
}

int service_prove_inclusion(const struct service *service, struct log_proof *proof, error *err)
{
    const struct merkle_tree *tree = ledger_tree(receipts_ledger(service->receipts));
    struct merkle_proof found;
    struct merkle_hash leaf, root;
    if (merkle_inclusion(tree, proof->from, proof->to, &found, err) < 0 ||
        tree->read(tree->context, merkle_position(0, proof->from), &leaf, err) < 0 ||
        merkle_root(tree, proof->to, &root, err) < 0)
        return -1;
    write_hash(&leaf, proof->first);
    write_hash(&root, proof->second);
    write_hashes(&found, proof);
    return 0;
}

int service_prove_consistency(const struct service *service, struct log_proof *proof, error *err)
{
    const struct merkle_tree *tree = ledger_tree(receipts_ledger(service->receipts));
    struct merkle_proof found;
    struct merkle_hash old, new;
    if (merkle_consistency(tree, proof->from, proof->to, &found, err) < 0 ||
        merkle_root(tree, proof->from, &old, err) < 0 ||
        merkle_root(tree, proof->to, &new, err) < 0)
        return -1;
    write_hash(&old, proof->first);
    write_hash(&new, proof->second);
    write_hashes(&found, proof);
    return 0;
}
