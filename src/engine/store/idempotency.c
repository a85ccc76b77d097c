/* idempotency.c - a ring of entries, by age, with a table of lists over it, by name. The file is
 * the ring, behind a head. */
#include "engine/store/idempotency.h"

#include "base/clock.h"
#include "engine/store/idempotency_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 1 << 16, NAME_SIZE = 32, TENANTS = 4096, BOOT_ID_SIZE = 36 };

static const int64_t kept_ms = INT64_C(24) * 3600 * 1000, head_every_ms = INT64_C(60) * 1000;

/* As it lies in the file, behind the head at its index. Each is within one sector. */
struct entry {
    unsigned char name[NAME_SIZE]; /* hash of caller and key */
    unsigned char digest[REPLAY_DIGEST_SIZE];
    char id[REPLAY_ID_SIZE]; /* "": another of this name came later, and is the one that counts */
    uint8_t reserved[3];
    uint32_t tenant, boot; /* hashes */
    int64_t born_ms;       /* on the clock of keys, never twice; 0: an empty entry */
    uint64_t log_size;
};

struct head {
    char magic[8];
    int64_t clock_ms; /* of keys, as it was last seen */
    uint8_t reserved[112];
};

_Static_assert(sizeof(struct entry) == 128 && sizeof(struct head) == sizeof(struct entry),
               "the file's entries have no holes, and lie within sectors");

static const char magic[8] = "gbkeys2";

struct replays {
    struct replays_file file;
    bool sync_each;
    uint32_t oldest, used; /* of the ring: what is used begins with the oldest */
    uint32_t boot;
    unsigned char salt[crypto_shorthash_KEYBYTES]; /* so that nobody can choose a bucket */
    int64_t clock_ms, began_at;                    /* the clock of keys was so much at now_ms() */
    int64_t last_born_ms, head_at;
    uint32_t held[TENANTS];    /* keys of each; two tenants with one hash share */
    uint32_t buckets[BUCKETS]; /* index + 1; 0: nobody */
    uint32_t behind[REPLAYS_MOST];
    bool is_of_earlier[REPLAYS_MOST];
    struct entry entries[REPLAYS_MOST];
};

static int64_t clock_of(const struct replays *replays)
{
    return replays->clock_ms + (now_ms() - replays->began_at);
}

static uint32_t hash_of(const char *text, size_t size)
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint32_t number;
    (void) crypto_generichash(hash, sizeof hash, (const unsigned char *) text, size, NULL, 0);
    memcpy(&number, hash, sizeof number);
    return number;
}

/* --- the table ----------------------------------------------------------------------------------
 */

static uint32_t *bucket_of(struct replays *replays, const unsigned char name[NAME_SIZE])
{
    uint64_t hash;
    (void) crypto_shorthash((unsigned char *) &hash, name, NAME_SIZE, replays->salt);
    return &replays->buckets[hash % BUCKETS];
}

static void link_entry(struct replays *replays, uint32_t index)
{
    const struct entry *entry = &replays->entries[index];
    if (entry->id[0]) {
        uint32_t *bucket = bucket_of(replays, entry->name);
        replays->behind[index] = *bucket;
        *bucket = index + 1;
    }
    replays->held[entry->tenant % TENANTS]++;
}

/* It is found no more. Its place is its tenant's until its day is over: a key that is kept again
 * takes another one. */
static void leave_table(struct replays *replays, uint32_t index)
{
    struct entry *entry = &replays->entries[index];
    uint32_t *at = bucket_of(replays, entry->name);
    while (*at != index + 1)
        at = &replays->behind[*at - 1];
    *at = replays->behind[index];
    entry->id[0] = '\0';
}

static void unlink_entry(struct replays *replays, uint32_t index)
{
    struct entry *entry = &replays->entries[index];
    if (entry->id[0])
        leave_table(replays, index);
    replays->held[entry->tenant % TENANTS]--;
    *entry = (struct entry){ .born_ms = 0 };
    replays->is_of_earlier[index] = false;
}

static bool is_alive(const struct replays *replays, const struct entry *entry)
{
    return entry->born_ms > 0 && clock_of(replays) - entry->born_ms < kept_ms;
}

static uint32_t next_of(const struct replays *replays)
{
    return (replays->oldest + replays->used) % REPLAYS_MOST;
}

/* From the oldest on: what is a day old, and places that were given back. */
static void forget_old(struct replays *replays)
{
    while (replays->used > 0 && !is_alive(replays, &replays->entries[replays->oldest])) {
        if (replays->entries[replays->oldest].born_ms > 0)
            unlink_entry(replays, replays->oldest);
        replays->oldest = (replays->oldest + 1) % REPLAYS_MOST;
        replays->used--;
    }
}

/* --- the file -----------------------------------------------------------------------------------
 */

static off_t place_of(uint32_t index)
{
    return (off_t) (index + 1) * (off_t) sizeof(struct entry);
}

static int write_head(struct replays *replays, error *err)
{
    struct head head = { .clock_ms = clock_of(replays) };
    memcpy(head.magic, magic, sizeof magic);
    replays->head_at = now_ms();
    return replays_file_write(&replays->file, &head, sizeof head, 0, err);
}

static int write_entry(struct replays *replays, uint32_t index, error *err)
{
    return replays_file_write(&replays->file, &replays->entries[index], sizeof(struct entry),
                              place_of(index), err);
}

static int write_all(void *context, error *err)
{
    struct replays *replays = context;
    for (uint32_t i = 0; i < replays->used; i++)
        if (write_entry(replays, (replays->oldest + i) % REPLAYS_MOST, err) < 0)
            return -1;
    return write_head(replays, err);
}

/* Gives  how many entries there are. A file of another kind is one without any. */
static uint32_t read_file(struct replays *replays, struct head *ret_head)
{
    char *to = (char *) replays->entries;
    size_t room = sizeof replays->entries, got = 0;
    int fd = replays->file.fd;
    if (pread(fd, ret_head, sizeof *ret_head, 0) != sizeof *ret_head ||
        memcmp(ret_head->magic, magic, sizeof magic) != 0) {
        *ret_head = (struct head){ .clock_ms = 1 };
        (void) !ftruncate(fd, 0);
        return 0;
    }
    while (got < room) {
        ssize_t more = pread(fd, to + got, room - got, place_of(0) + (off_t) got);
        if (more <= 0)
            break;
        got += (size_t) more;
    }
    uint32_t count = (uint32_t) (got / sizeof(struct entry));
    memset(to + count * sizeof(struct entry), 0, got % sizeof(struct entry));
    return count;
}

/* What is torn is left out. The clock goes on where the newest of them was born, or the head has
 * seen it later: what lies between a daemon's end and the next one's beginning is not counted. */
static void read_entries(struct replays *replays)
{
    struct head head;
    uint32_t count = read_file(replays, &head), newest = 0;
    replays->last_born_ms = 0;
    for (uint32_t index = 0; index < count; index++) {
        struct entry *entry = &replays->entries[index];
        if (entry->born_ms <= 0 || !memchr(entry->id, '\0', sizeof entry->id)) {
            *entry = (struct entry){ .born_ms = 0 };
            continue;
        }
        if (entry->born_ms > replays->last_born_ms) {
            replays->last_born_ms = entry->born_ms;
            newest = index;
        }
        replays->is_of_earlier[index] = true;
        link_entry(replays, index);
    }
    bool is_round = replays->last_born_ms > 0 && newest + 1 != count;
    replays->oldest = is_round ? (newest + 1) % REPLAYS_MOST : 0;
    replays->used = is_round ? REPLAYS_MOST : count;
    replays->clock_ms =
        head.clock_ms > replays->last_born_ms ? head.clock_ms : replays->last_born_ms;
    replays->began_at = now_ms();
    forget_old(replays);
}

static uint32_t read_boot(void)
{
    char text[BOOT_ID_SIZE + 1] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, BOOT_ID_SIZE);
    if (fd >= 0)
        (void) close(fd);
    return hash_of(text, got > 0 ? (size_t) got : 0);
}

int replays_open(const struct replays_settings *settings, struct replays **ret_replays, error *err)
{
    struct replays *replays = calloc(1, sizeof *replays); /* pages that nobody uses take no place */
    if (!replays)
        return fail(err, ERR_SYSTEM, "no memory for the keys of requests");
    replays->file = (struct replays_file){
        .fd = -1, .loop = settings->loop, .rewrite = write_all, .context = replays
    };
    replays->sync_each = settings->sync_each;
    replays->clock_ms = 1;
    replays->began_at = now_ms();
    replays->boot = read_boot();
    crypto_shorthash_keygen(replays->salt);
    if (settings->state && (replays_file_open(&replays->file, settings->state, err) < 0 ||
                            replays_take_over(replays, err) < 0)) {
        replays_file_leave(&replays->file);
        replays_free(replays);
        return -1;
    }
    *ret_replays = replays;
    return 0;
}

void replays_leave(struct replays *replays)
{
    if (replays)
        replays_file_leave(&replays->file);
}

void replays_free(struct replays *replays)
{
    error err;
    if (!replays)
        return;
    if (replays->file.is_ours)
        (void) write_head(replays, &err);
    replays_file_close(&replays->file);
    free(replays);
}

bool replays_are_elsewhere(const struct replays *replays)
{
    return replays->file.fd >= 0 && !replays->file.is_ours;
}

int replays_take_over(struct replays *replays, error *err)
{
    if (replays_file_lock(&replays->file) == FILE_IS_ELSEWHERE)
        return REPLAYS_ELSEWHERE;
    read_entries(replays);
    if (write_head(replays, err) == 0)
        return 0;
    replays_give_back(replays);
    return -1;
}

void replays_give_back(struct replays *replays)
{
    for (uint32_t i = 0; i < replays->used; i++) {
        uint32_t index = (replays->oldest + i) % REPLAYS_MOST;
        if (replays->entries[index].born_ms > 0)
            unlink_entry(replays, index);
    }
    replays->used = 0;
    replays_file_unlock(&replays->file);
}

/* --- keys ---------------------------------------------------------------------------------------
 */

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

/* Gives  index + 1, or 0. */
static uint32_t find_entry(struct replays *replays, const struct replay *replay)
{
    unsigned char name[NAME_SIZE];
    name_of(replay, name);
    uint32_t at = *bucket_of(replays, name);
    while (at != 0 && memcmp(replays->entries[at - 1].name, name, NAME_SIZE) != 0)
        at = replays->behind[at - 1];
    return at;
}

/* Says why no key can be looked up or kept now. */
static int check_file(const struct replays *replays, error *err)
{
    if (replays_are_elsewhere(replays))
        return fail(err, ERR_UNAVAILABLE,
                    "another gloveboxd with this state folder has the Idempotency-Keys: one that "
                    "is leaving gives them up when its runs have ended; ask again in a second");
    if (replays->file.failure != 0)
        return fail(err, ERR_UNAVAILABLE,
                    "the disk of the Idempotency-Keys fails: %s; it is tried again each second",
                    strerrordesc_np(replays->file.failure));
    return 0;
}

/* Restarts of gloveboxd while no key comes do not stop the clock. */
static void save_clock(struct replays *replays)
{
    error unwritten;
    if (replays->file.is_ours && now_ms() - replays->head_at >= head_every_ms)
        (void) write_head(replays, &unwritten);
}

int replays_find(struct replays *replays, const struct replay *replay,
                 struct replayed *ret_replayed, error *err)
{
    if (check_file(replays, err) < 0)
        return -1;
    save_clock(replays);
    uint32_t at = find_entry(replays, replay);
    if (at == 0 || !is_alive(replays, &replays->entries[at - 1]))
        return REPLAY_NEW;
    const struct entry *entry = &replays->entries[at - 1];
    if (memcmp(entry->digest, replay->digest, REPLAY_DIGEST_SIZE) != 0)
        return fail(err, ERR_CONFLICT,
                    "Idempotency-Key '%.40s' came with another body, or to another place, before; "
                    "use a new key for a new request",
                    replay->key);
    *ret_replayed = (struct replayed){ .is_of_earlier = replays->is_of_earlier[at - 1],
                                       .is_of_boot = entry->boot == replays->boot,
                                       .log_size = entry->log_size };
    memcpy(ret_replayed->id, entry->id, REPLAY_ID_SIZE);
    return REPLAY_KNOWN;
}

/* A tenant may have as many keys as are free for all: alone it gets one half of them, with another
 * one a third each, and there is always some room for one more. */
static int check_share(const struct replays *replays, uint32_t tenant, error *err)
{
    uint32_t held = replays->held[tenant % TENANTS], left = REPLAYS_MOST - replays->used;
    if (held < left)
        return 0;
    return fail(err, ERR_QUOTA,
                "%u Idempotency-Keys of this tenant are remembered, each for a day, and %u places "
                "are left for all; send fewer requests with a key, or some without",
                held, left);
}

static int replace_entry(struct replays *replays, uint32_t index, error *err)
{
    leave_table(replays, index);
    return write_entry(replays, index, err);
}

static int bring_to_disk(struct replays *replays, error *err)
{
    if (replays->sync_each)
        return replays_file_sync(&replays->file, err);
    replays_file_sync_soon(&replays->file);
    return 0;
}

int replays_keep(struct replays *replays, const struct replay *replay,
                 const struct replayed *replayed, error *err)
{
    uint32_t tenant = hash_of(replay->tenant, strlen(replay->tenant));
    forget_old(replays);
    uint32_t old = find_entry(replays, replay);
    if (check_file(replays, err) < 0 || check_share(replays, tenant, err) < 0 ||
        (old != 0 && replace_entry(replays, old - 1, err) < 0))
        return -1;
    uint32_t index = next_of(replays);
    struct entry *entry = &replays->entries[index];
    int64_t clock_ms = clock_of(replays);
    replays->last_born_ms = clock_ms > replays->last_born_ms ? clock_ms : replays->last_born_ms + 1;
    *entry = (struct entry){ .tenant = tenant,
                             .boot = replays->boot,
                             .born_ms = replays->last_born_ms,
                             .log_size = replayed->log_size };
    name_of(replay, entry->name);
    memcpy(entry->digest, replay->digest, REPLAY_DIGEST_SIZE);
    memcpy(entry->id, replayed->id, strnlen(replayed->id, REPLAY_ID_SIZE - 1));
    link_entry(replays, index);
    replays->used++;
    if (write_entry(replays, index, err) == 0 && bring_to_disk(replays, err) == 0)
        return 0;
    replays_drop_last(replays);
    return -1;
}

void replays_drop_last(struct replays *replays)
{
    error unwritten;
    replays->used--;
    unlink_entry(replays, next_of(replays));
    (void) write_entry(replays, next_of(replays), &unwritten); /* else: it is found nowhere */
}
