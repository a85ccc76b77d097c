/* log_head.c - see log_head.h. */
#include "cli/common/log_head.h"

#include "base/cleanup.h"
#include "cli/common/inputs.h"
#include "ledger/chain.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int log_hash_read(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    ssize_t got = pread(*(const int *) context, ret->bytes, MERKLE_HASH_SIZE,
                        (off_t) (position * MERKLE_HASH_SIZE));
    return got == MERKLE_HASH_SIZE ? 0 : fail(err, ERR_UNAVAILABLE, "the log's tree is cut off");
}

void signed_head_done(struct signed_head *signed_head)
{
    free(signed_head->text);
    signed_head->text = NULL;
}

static int read_head(int folder, const struct public_key *key, struct signed_head *ret, error *err)
{
    static struct key_chain chain;
    if (key_chain_read(folder, &chain, err) < 0)
        return -1;
    if (key_chain_number(&chain, key->id) < 0)
        chain.count = 0;
    return key_chain_checkpoint(&chain, key, ret->text, &ret->head, err);
}

int log_checkpoint_read(int folder, const struct public_key *key, struct signed_head *ret,
                        error *err)
{
    size_t size = 0;
    auto_fd file = openat(folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return fail_os(err, "open the log's checkpoint");
    return read_to_end(file, "checkpoint", &ret->text, &size, err) < 0
               ? -1
               : read_head(folder, key, ret, err);
}
