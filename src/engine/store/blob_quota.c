/* blob_quota.c - a list for each tenant. Beyond the bounds the tenant with most loses blobs: it has
 * at least the bound divided by the number of tenants. So no tenant within that share loses blobs
 * because of others. */
#include "engine/store/blobs_internal.h"

#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

/* What it uses on the disk: whole blocks, and at least one, for its inode. */
static uint64_t weight_of(const struct blob *blob)
{
    uint64_t blocks = (blob->size + BLOCK - 1) / BLOCK;
    return (blocks > 0 ? blocks : 1) * BLOCK;
}

static void leave_line(struct blob *blob)
{
    struct blob_share *share = blob->share;
    *(blob->older ? &blob->older->newer : &share->oldest) = blob->newer;
    *(blob->newer ? &blob->newer->older : &share->newest) = blob->older;
    blob->older = blob->newer = NULL;
}

static void join_line(struct blob *blob)
{
    struct blob_share *share = blob->share;
    blob->older = share->newest;
    *(share->newest ? &share->newest->newer : &share->oldest) = blob;
    share->newest = blob;
}

int blob_share_join(struct blob_store *store, struct blob *blob, const char *payer, error *err)
{
    struct blob_share *share = store->shares;
    while (share && strcmp(share->payer, payer) != 0)
        share = share->next;
    if (!share) {
        share = calloc(1, sizeof *share);
        if (!share)
            return fail(err, ERR_SYSTEM, "no memory to keep a blob");
        (void) snprintf(share->payer, sizeof share->payer, "%s", payer);
        share->next = store->shares;
        store->shares = share;
    }
    blob->share = share;
    join_line(blob);
    share->bytes += weight_of(blob);
    share->count++;
    store->usage.bytes += weight_of(blob);
    store->usage.count++;
    return 0;
}

void blob_share_leave(struct blob_store *store, struct blob *blob)
{
    struct blob_share *share = blob->share;
    leave_line(blob);
    blob->share = NULL;
    share->bytes -= weight_of(blob);
    share->count--;
    store->usage.bytes -= weight_of(blob);
    store->usage.count--;
    if (share->count > 0)
        return;
    (void) list_remove(store->shares, share, next);
    free(share);
}

void blob_share_renew(struct blob *blob)
{
    leave_line(blob);
    join_line(blob);
}

static struct blob_share *largest(const struct blob_store *store, bool by_count)
{
    struct blob_share *max = store->shares;
    for (struct blob_share *share = store->shares; share; share = share->next)
        if (by_count ? share->count > max->count : share->bytes > max->bytes)
            max = share;
    return max;
}

/* If the largest share is only the fresh blob, the store stays above its bound by that one. */
void blob_shares_hold(struct blob_store *store, const struct blob *fresh)
{
    for (;;) {
        bool has_too_many = store->usage.count > store->bounds.count;
        if (!has_too_many && store->usage.bytes <= store->bounds.bytes)
            return;
        struct blob_share *share = largest(store, has_too_many);
        if (!share || share->oldest == fresh)
            return;
        blob_remove(store, share->oldest, true);
        store->usage.evicted++;
    }
}
