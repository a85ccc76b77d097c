/* chain.c - see chain.h. */
#include "ledger/chain.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/write_whole.h"
#include "ledger/envelope.h"
#include "ledger/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char file_name[] = "key.chain";
static const char mark[] = "\"event\":\"" CHAIN_EVENT "\",\"facts\":{\"new_key\":\"";
static const char between[] = "\",\"old_key\":\"";

/* Reads a key from canonical JSON; no character of a key needs a backslash. */
static bool take_key(const char **at, const char *end, struct public_key *ret_key)
{
    char text[KEY_TEXT_SIZE];
    error unused;
    const char *quote = memchr(*at, '"', (size_t) (end - *at));
    if (!quote || quote - *at >= KEY_TEXT_SIZE)
        return false;
    (void) snprintf(text, sizeof text, "%.*s", (int) (quote - *at), *at);
    *at = quote;
    return public_key_read(text, ret_key, &unused) == 0;
}

static bool take_payload(const struct bytes *payload, struct chain_link *link)
{
    struct signed_place place;
    const char *at = memmem(payload->data, payload->size, mark, sizeof mark - 1);
    const char *end = payload->data + payload->size;
    if (!at || !payload_place(payload, &place))
        return false;
    link->index = place.index;
    at += sizeof mark - 1;
    if (!take_key(&at, end, &link->to) || (size_t) (end - at) < sizeof between ||
        memcmp(at, between, sizeof between - 1) != 0)
        return false;
    at += sizeof between - 1;
    return take_key(&at, end, &link->from);
}

bool key_chain_take(const char *record, size_t size, struct chain_link *ret_link)
{
    auto_envelope envelope = { 0 };
    error unused;
    bool is_one = envelope_read(record, size, &envelope, &unused) == 0 &&
                  strcmp(envelope.type, TYPE_EVENT) == 0 &&
                  take_payload(&envelope.payload, ret_link) &&
                  envelope_check(&envelope, &ret_link->from, &unused) == 0;
    if (is_one)
        merkle_leaf(record, size, &ret_link->leaf);
    return is_one;
}

static int add_link(struct key_chain *chain, const char *line, size_t size, error *err)
{
    struct chain_link *link = &chain->links[chain->count];
    const struct chain_link *before = chain->count > 0 ? link - 1 : NULL;
    if (chain->count == CHAIN_MAX)
        return fail(err, ERR_POLICY, "key.chain has more than %d keys", CHAIN_MAX);
    if (!key_chain_take(line, size, link) ||
        (before && (strcmp(before->to.id, link->from.id) != 0 || link->index <= before->index)))
        return fail(err, ERR_POLICY,
                    "line %zu of key.chain was changed: it is not signed by the key before it",
                    chain->count + 1);
    chain->count++;
    return 0;
}

int key_chain_read(int folder, struct key_chain *ret_chain, error *err)
{
    auto_fd file = openat(folder, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_text line = NULL;
    size_t room = 0;
    ssize_t size;
    int result = 0;
    ret_chain->count = ret_chain->min = 0;
    if (file < 0)
        return errno == ENOENT ? 0 : fail_os(err, "open the log's '%s'", file_name);
    FILE *stream = fdopen(file, "r");
    if (!stream)
        return fail_os(err, "read the log's '%s'", file_name);
    (void) take_fd(&file);
    while (result == 0 && (size = getline(&line, &room, stream)) > 0)
        result = add_link(ret_chain, line, (size_t) size - (line[size - 1] == '\n'), err);
    (void) fclose(stream);
    return result;
}

/* Replaces the file by rename(2), so that a writer that is killed leaves the old or the new one. */
int key_chain_add(int folder, const struct bytes *record, error *err)
{
    static const char new_name[] = ".key.chain.new";
    static char text[CHAIN_FILE_MAX];
    auto_fd old = openat(folder, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = old < 0 ? -(errno != ENOENT) : read_at(old, text, sizeof text, 0);
    if (got < 0)
        return fail_os(err, "read the log's '%s'", file_name);
    size_t size = (size_t) got;
    if (record->size + 1 > sizeof text - size)
        return fail(err, ERR_LIMIT, "the log's '%s' has no room for another key: it has %zu bytes",
                    file_name, size);
    memcpy(text + size, record->data, record->size);
    size += record->size;
    text[size++] = '\n';
    (void) unlinkat(folder, new_name, 0);
    auto_fd file =
        openat(folder, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0 || write_whole(file, text, size) < 0 || fdatasync(file) < 0 ||
        renameat(folder, new_name, folder, file_name) < 0)
        return fail_os(err, "write the log's '%s'", file_name);
    return 0;
}

const struct public_key *key_chain_key(const struct key_chain *chain, size_t number)
{
    return number < chain->count ? &chain->links[number].from : &chain->links[chain->count - 1].to;
}

int key_chain_number(const struct key_chain *chain, const char *id)
{
    for (size_t i = 0; chain->count > 0 && i <= chain->count; i++)
        if (strcmp(key_chain_key(chain, i)->id, id) == 0)
            return (int) i;
    return -1;
}

size_t key_chain_number_at(const struct key_chain *chain, uint64_t index)
{
    size_t number = 0;
    while (number < chain->count && index > chain->links[number].index)
        number++;
    return number;
}

const struct public_key *key_chain_at(const struct key_chain *chain,
                                      const struct public_key *otherwise, uint64_t index)
{
    return chain->count == 0 ? otherwise : key_chain_key(chain, key_chain_number_at(chain, index));
}

/* A checkpoint is signed by the key for the next record; one right after a change of key may also
 * be signed by the old key. */
int key_chain_checkpoint(const struct key_chain *chain, const struct public_key *otherwise,
                         const char *text, struct merkle_head *ret_head, error *err)
{
    const char *lines = strchr(text, '\n');
    uint64_t size = lines ? strtoull(lines + 1, NULL, 10) : 0;
    if (chain->count == 0)
        return checkpoint_read(text, otherwise, ret_head, err);
    size_t next = key_chain_number_at(chain, size),
           last = key_chain_number_at(chain, size > 0 ? size - 1 : 0);
    if (next < chain->min)
        return fail(
            err, ERR_POLICY,
            "the checkpoint is older than the key that was given; give the key of its time");
    if (checkpoint_read(text, key_chain_key(chain, next), ret_head, err) == 0)
        return 0;
    error unused;
    return last < next && last >= chain->min &&
                   checkpoint_read(text, key_chain_key(chain, last), ret_head, &unused) == 0
               ? 0
               : -1;
}
