/* replays.c - a ring of entries, by age, with a table of lists over it, by name. The file is the
 * ring: what is written there survives the daemon, if not the machine. */
#include "daemon/replays.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BUCKETS = 4096, NAME_SIZE = 32, NOBODY = UINT16_MAX };

static const int64_t kept_ms = INT64_C(24) * 3600 * 1000;

/* As it lies in the file, at its index. */
struct entry {
    unsigned char name[NAME_SIZE]; /* hash of caller and key */
    unsigned char digest[REPLAY_DIGEST_SIZE];
    char run[RUN_ID_SIZE];
    uint8_t reserved[3];
    int64_t ends_ms; /* since 1970; 0: an empty entry */
    uint64_t log_size;
};

_Static_assert(sizeof(struct entry) == 120, "the file's entries have no holes");

struct replays {
    int file;      /* -1: only in memory */
    uint16_t next; /* to be replaced: the oldest */
    uint16_t buckets[BUCKETS];
    uint16_t behind[REPLAYS_MOST]; /* the next in the bucket */
    bool is_of_earlier[REPLAYS_MOST];
    struct entry entries[REPLAYS_MOST];
};

_Static_assert((int) REPLAYS_MOST < (int) NOBODY, "entries are counted in 16 bits");

static size_t bucket_of(const struct entry *entry)
{
    return (size_t) (entry->name[0] | entry->name[1] << 8) % BUCKETS;
}

static void link_entry(struct replays *replays, uint16_t index)
{
    uint16_t *bucket = &replays->buckets[bucket_of(&replays->entries[index])];
    replays->behind[index] = *bucket;
    *bucket = index;
}

static void unlink_entry(struct replays *replays, uint16_t index)
{
    struct entry *entry = &replays->entries[index];
    if (entry->ends_ms == 0)
        return;
    uint16_t *at = &replays->buckets[bucket_of(entry)];
    while (*at != index)
        at = &replays->behind[*at];
    *at = replays->behind[index];
    entry->ends_ms = 0;
    replays->is_of_earlier[index] = false;
}

/* What is torn or of another time is left out; the oldest goes first again. */
static void read_entries(struct replays *replays)
{
    ssize_t got = pread(replays->file, replays->entries, sizeof replays->entries, 0);
    size_t count = got > 0 ? (size_t) got / sizeof(struct entry) : 0;
    int64_t now = wall_clock_ms(), newest = 0;
    memset(&replays->entries[count], 0, (REPLAYS_MOST - count) * sizeof(struct entry));
    for (size_t index = 0; index < count; index++) {
        struct entry *entry = &replays->entries[index];
        if (entry->ends_ms <= now || entry->ends_ms > now + kept_ms ||
            !memchr(entry->run, '\0', sizeof entry->run)) {
            entry->ends_ms = 0;
            continue;
        }
        if (entry->ends_ms >= newest) {
            newest = entry->ends_ms;
            replays->next = (uint16_t) ((index + 1) % REPLAYS_MOST);
        }
        replays->is_of_earlier[index] = true;
        link_entry(replays, (uint16_t) index);
    }
}

static int open_file(struct replays *replays, const char *state, error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/replays", state) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "the path of the state folder is too long");
    auto_fd file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return fail_os(err, "open '%s', where the keys of requests are kept", path);
    if (flock(file, LOCK_EX | LOCK_NB) < 0)
        return 0;
    replays->file = take_fd(&file);
    read_entries(replays);
    return 0;
}

int replays_open(const char *state, struct replays **ret_replays, error *err)
{
    struct replays *replays = calloc(1, sizeof *replays);
    if (!replays)
        return fail(err, ERR_SYSTEM, "no memory for the keys of requests");
    replays->file = -1;
    memset(replays->buckets, 0xFF, sizeof replays->buckets); /* NOBODY */
    if (state && open_file(replays, state, err) < 0) {
        replays_free(replays);
        return -1;
    }
    *ret_replays = replays;
    return 0;
}

void replays_free(struct replays *replays)
{
    if (!replays)
        return;
    close_fd(&replays->file);
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

static uint16_t find_entry(const struct replays *replays, const struct replay *replay)
{
    struct entry wanted = { .ends_ms = 0 };
    name_of(replay, wanted.name);
    uint16_t at = replays->buckets[bucket_of(&wanted)];
    while (at != NOBODY && memcmp(replays->entries[at].name, wanted.name, NAME_SIZE) != 0)
        at = replays->behind[at];
    return at;
}

int replays_find(const struct replays *replays, const struct replay *replay,
                 struct replayed *ret_replayed, error *err)
{
    uint16_t at = find_entry(replays, replay);
    if (at == NOBODY || replays->entries[at].ends_ms <= wall_clock_ms())
        return REPLAY_NEW;
    const struct entry *entry = &replays->entries[at];
    if (memcmp(entry->digest, replay->digest, REPLAY_DIGEST_SIZE) != 0)
        return fail(err, ERR_CONFLICT,
                    "Idempotency-Key '%.40s' came with another body before; "
                    "use a new key for a new request",
                    replay->key);
    *ret_replayed = (struct replayed){ .is_of_earlier = replays->is_of_earlier[at],
                                       .log_size = entry->log_size };
    memcpy(ret_replayed->run, entry->run, RUN_ID_SIZE);
    return REPLAY_KNOWN;
}

static int write_entry(const struct replays *replays, uint16_t index, error *err)
{
    const struct entry *entry = &replays->entries[index];
    ssize_t size = sizeof *entry;
    if (replays->file < 0 || pwrite(replays->file, entry, sizeof *entry, index * size) == size)
        return 0;
    return fail_os(err, "keep an Idempotency-Key on disk");
}

static int forget_entry(struct replays *replays, uint16_t index, error *err)
{
    unlink_entry(replays, index);
    return write_entry(replays, index, err);
}

int replays_keep(struct replays *replays, const struct replay *replay,
                 const struct replayed *replayed, error *err)
{
    uint16_t index = replays->next, old = find_entry(replays, replay);
    struct entry *entry = &replays->entries[index];
    if (old != NOBODY && forget_entry(replays, old, err) < 0)
        return -1;
    unlink_entry(replays, index);
    *entry = (struct entry){ .ends_ms = wall_clock_ms() + kept_ms, .log_size = replayed->log_size };
    name_of(replay, entry->name);
    memcpy(entry->digest, replay->digest, REPLAY_DIGEST_SIZE);
    memcpy(entry->run, replayed->run, strnlen(replayed->run, RUN_ID_SIZE - 1));
    link_entry(replays, index);
    replays->next = (uint16_t) ((index + 1) % REPLAYS_MOST);
    if (write_entry(replays, index, err) == 0)
        return 0;
    replays_drop_last(replays);
    return -1;
}

void replays_drop_last(struct replays *replays)
{
    error unwritten;
    replays->next = (uint16_t) ((replays->next + REPLAYS_MOST - 1) % REPLAYS_MOST);
    (void) forget_entry(replays, replays->next, &unwritten); /* else: its run is found nowhere */
}
