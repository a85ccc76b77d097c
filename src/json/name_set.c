/* name_set.c - a hash table with open addressing; a hash of 0 is an empty place. */
#include "json/name_set.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>

enum { PROBES_MAX = 64 };

static int put_hash(uint64_t *hashes, size_t room, uint64_t hash)
{
    for (size_t i = 0; i < PROBES_MAX && i < room; i++) {
        uint64_t *place = &hashes[(hash + i) & (room - 1)];
        if (*place == hash)
            return 1;
        if (*place != 0)
            continue;
        *place = hash;
        return 0;
    }
    return -1;
}

static bool grow(struct name_set *set)
{
    size_t room = set->room > 0 ? set->room * 2 : 64;
    uint64_t *hashes = calloc(room, sizeof *hashes);
    bool fits = hashes != NULL;
    for (size_t i = 0; fits && i < set->room; i++)
        fits = set->hashes[i] == 0 || put_hash(hashes, room, set->hashes[i]) == 0;
    if (!fits) {
        free(hashes);
        return false;
    }
    free(set->hashes);
    set->hashes = hashes;
    set->room = room;
    return true;
}

/* The hash has a random key for each process, so that a sender cannot choose names that collide. */
int name_set_add(struct name_set *set, uint32_t object, const char *name, size_t size)
{
    static unsigned char key[crypto_shorthash_KEYBYTES];
    static bool has_key;
    uint64_t hash;
    if (!has_key)
        crypto_shorthash_keygen(key);
    has_key = true;
    (void) crypto_shorthash((unsigned char *) &hash, (const unsigned char *) name, size, key);
    hash ^= object * UINT64_C(0x9E3779B97F4A7C15);
    hash += hash == 0;
    if (set->count >= set->room / 2 && !grow(set))
        return -1;
    int seen = put_hash(set->hashes, set->room, hash);
    set->count += seen == 0;
    return seen;
}

void name_set_done(struct name_set *set)
{
    free(set->hashes);
    *set = (struct name_set){ .hashes = NULL };
}
