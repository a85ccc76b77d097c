/* replays.c - a ring of entries, by age, with a table of lists over it, by name. */
#include "daemon/replays.h"

#include "base/clock.h"

#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, NAME_SIZE = 32, NOBODY = UINT16_MAX };

static const int64_t kept_ms = INT64_C(24) * 3600 * 1000;

struct entry {
    unsigned char name[NAME_SIZE]; /* hash of caller and key */
    unsigned char digest[REPLAY_DIGEST_SIZE];
    char run[RUN_ID_SIZE];
    deadline ends; /* at_ms 0: an empty entry */
    uint16_t next; /* in the bucket */
};

struct replays {
    uint16_t oldest; /* the next to be replaced */
    uint16_t buckets[BUCKETS];
    struct entry entries[REPLAYS_MOST];
};

_Static_assert((int) REPLAYS_MOST < (int) NOBODY, "entries are counted in 16 bits");

struct replays *replays_new(void)
{
    struct replays *replays = calloc(1, sizeof *replays);
    for (size_t i = 0; replays && i < BUCKETS; i++)
        replays->buckets[i] = NOBODY;
    return replays;
}

void replays_free(struct replays *replays)
{
    free(replays);
}

int replay_check_key(const char *key, error *err)
{
    size_t length = strlen(key);
    for (size_t i = 0; i < length; i++)
        if (key[i] < 0x21 || key[i] > 0x7E)
            return fail(err, ERR_BAD_REQUEST,
                        "an Idempotency-Key is plain ASCII without blanks, such as a UUID");
    if (length == 0 || length > REPLAY_KEY_MOST)
        return fail(err, ERR_BAD_REQUEST, "an Idempotency-Key has 1 to %d characters",
                    REPLAY_KEY_MOST);
    return 0;
}

static void name_of(const struct replay *replay, unsigned char name[NAME_SIZE])
{
    crypto_generichash_state state;
    (void) crypto_generichash_init(&state, NULL, 0, NAME_SIZE);
    (void) crypto_generichash_update(&state, (const unsigned char *) replay->caller,
                                     strlen(replay->caller) + 1);
    (void) crypto_generichash_update(&state, (const unsigned char *) replay->key,
                                     strlen(replay->key));
    (void) crypto_generichash_final(&state, name, NAME_SIZE);
}

static size_t bucket_of(const unsigned char name[NAME_SIZE])
{
    return (size_t) (name[0] | name[1] << 8) % BUCKETS;
}

int replays_find(const struct replays *replays, const struct replay *replay,
                 char ret_run[RUN_ID_SIZE], error *err)
{
    unsigned char name[NAME_SIZE];
    name_of(replay, name);
    for (uint16_t at = replays->buckets[bucket_of(name)]; at != NOBODY;
         at = replays->entries[at].next) {
        const struct entry *entry = &replays->entries[at];
        if (memcmp(entry->name, name, NAME_SIZE) != 0 || deadline_has_passed(entry->ends))
            continue;
        if (memcmp(entry->digest, replay->digest, REPLAY_DIGEST_SIZE) != 0)
            return fail(err, ERR_CONFLICT,
                        "Idempotency-Key '%.40s' came with another body before; "
                        "use a new key for a new request",
                        replay->key);
        memcpy(ret_run, entry->run, RUN_ID_SIZE);
        return REPLAY_KNOWN;
    }
    return REPLAY_NEW;
}

static void forget(struct replays *replays, uint16_t index)
{
    const struct entry *entry = &replays->entries[index];
    if (entry->ends.at_ms == 0)
        return;
    uint16_t *at = &replays->buckets[bucket_of(entry->name)];
    while (*at != index)
        at = &replays->entries[*at].next;
    *at = entry->next;
}

void replays_keep(struct replays *replays, const struct replay *replay, const char *run)
{
    uint16_t index = replays->oldest;
    struct entry *entry = &replays->entries[index];
    forget(replays, index);
    replays->oldest = (uint16_t) ((index + 1) % REPLAYS_MOST);
    *entry = (struct entry){ .ends = deadline_in(kept_ms) };
    name_of(replay, entry->name);
    memcpy(entry->digest, replay->digest, REPLAY_DIGEST_SIZE);
    memcpy(entry->run, run, strnlen(run, RUN_ID_SIZE - 1));
    uint16_t *bucket = &replays->buckets[bucket_of(entry->name)];
    entry->next = *bucket;
    *bucket = index;
}
