/* idempotency.c - a ring of entries ordered by age, and a hash table of their names. The file has a
 * head and then the ring. */
#include "engine/store/idempotency.h"

#include "base/clock.h"
#include "base/read_at.h"
#include "engine/store/idempotency_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 1 << 16, NAME_SIZE = 32, TENANTS = 4096, BOOT_ID_SIZE = 36 };

static const int64_t kept_ms = INT64_C(24) * 3600 * 1000, head_every_ms = INT64_C(60) * 1000;

/* An entry, in memory and in the file at the same index. None crosses a sector. */
struct entry {
    unsigned char name[NAME_SIZE]; /* hash of caller and key */
    unsigned char digest[IDEMPOTENCY_DIGEST_SIZE];
    char id[IDEMPOTENCY_ID_SIZE]; /* "": a later entry has this name */
    uint8_t reserved[3];
    uint32_t tenant, boot; /* hashes */
    int64_t born_ms;       /* on the clock of keys, unique; 0: empty */
    uint64_t log_size;
};

struct head {
    char magic[8];
    int64_t clock_ms; /* the clock of keys when last written */
    uint8_t reserved[112];
};

_Static_assert(sizeof(struct entry) == 128 && sizeof(struct head) == sizeof(struct entry),
               "the file's entries have no holes, and lie within sectors");

static const char magic[8] = "gbkeys2";

struct idempotency {
    struct idempotency_file file;
    bool sync_each;
    uint32_t oldest, used; /* of the ring: index of the oldest, and how many */
    uint32_t boot;
    unsigned char salt[crypto_shorthash_KEYBYTES]; /* so that no client can choose a bucket */
    int64_t clock_ms, began_at; /* value of the clock of keys at now_ms() `began_at` */
    int64_t last_born_ms, head_at;
    uint32_t held[TENANTS];    /* keys of each tenant, by hash */
    uint32_t buckets[BUCKETS]; /* index + 1; 0: none */
    uint32_t behind[IDEMPOTENCY_MAX];
    bool is_of_earlier[IDEMPOTENCY_MAX];
    struct entry entries[IDEMPOTENCY_MAX];
};

static int64_t clock_of(const struct idempotency *idempotency)
{
    return idempotency->clock_ms + (now_ms() - idempotency->began_at);
}

static uint32_t hash_of(const char *text, size_t size)
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint32_t number;
    (void) crypto_generichash(hash, sizeof hash, (const unsigned char *) text, size, NULL, 0);
    memcpy(&number, hash, sizeof number);
    return number;
}

static uint32_t *bucket_of(struct idempotency *idempotency, const unsigned char name[NAME_SIZE])
{
    uint64_t hash;
    (void) crypto_shorthash((unsigned char *) &hash, name, NAME_SIZE, idempotency->salt);
    return &idempotency->buckets[hash % BUCKETS];
}

static void link_entry(struct idempotency *idempotency, uint32_t index)
{
    const struct entry *entry = &idempotency->entries[index];
    if (entry->id[0]) {
        uint32_t *bucket = bucket_of(idempotency, entry->name);
        idempotency->behind[index] = *bucket;
        *bucket = index + 1;
    }
    idempotency->held[entry->tenant % TENANTS]++;
}

/* Removes an entry from the table. Its tenant still counts it until its day has passed; if the key
 * is stored again, it gets another entry. */
static void leave_table(struct idempotency *idempotency, uint32_t index)
{
    struct entry *entry = &idempotency->entries[index];
    uint32_t *at = bucket_of(idempotency, entry->name);
    while (*at != index + 1)
        at = &idempotency->behind[*at - 1];
    *at = idempotency->behind[index];
    entry->id[0] = '\0';
}

static void unlink_entry(struct idempotency *idempotency, uint32_t index)
{
    struct entry *entry = &idempotency->entries[index];
    if (entry->id[0])
        leave_table(idempotency, index);
    idempotency->held[entry->tenant % TENANTS]--;
    *entry = (struct entry){ .born_ms = 0 };
    idempotency->is_of_earlier[index] = false;
}

static bool is_alive(const struct idempotency *idempotency, const struct entry *entry)
{
    return entry->born_ms > 0 && clock_of(idempotency) - entry->born_ms < kept_ms;
}

static uint32_t next_of(const struct idempotency *idempotency)
{
    return (idempotency->oldest + idempotency->used) % IDEMPOTENCY_MAX;
}

/* Removes the oldest entries: those of a day ago, and those that were dropped. */
static void forget_old(struct idempotency *idempotency)
{
    while (idempotency->used > 0 &&
           !is_alive(idempotency, &idempotency->entries[idempotency->oldest])) {
        if (idempotency->entries[idempotency->oldest].born_ms > 0)
            unlink_entry(idempotency, idempotency->oldest);
        idempotency->oldest = (idempotency->oldest + 1) % IDEMPOTENCY_MAX;
        idempotency->used--;
    }
}

/* --- the file --------------------------------------------------------------------------------- */

static off_t place_of(uint32_t index)
{
    return (off_t) (index + 1) * (off_t) sizeof(struct entry);
}

static int write_head(struct idempotency *idempotency, error *err)
{
    struct head head = { .clock_ms = clock_of(idempotency) };
    memcpy(head.magic, magic, sizeof magic);
    idempotency->head_at = now_ms();
    return idempotency_file_write(&idempotency->file, &head, sizeof head, 0, err);
}

static int write_entry(struct idempotency *idempotency, uint32_t index, error *err)
{
    return idempotency_file_write(&idempotency->file, &idempotency->entries[index],
                                  sizeof(struct entry), place_of(index), err);
}

static int write_all(void *context, error *err)
{
    struct idempotency *idempotency = context;
    for (uint32_t i = 0; i < idempotency->used; i++)
        if (write_entry(idempotency, (idempotency->oldest + i) % IDEMPOTENCY_MAX, err) < 0)
            return -1;
    return write_head(idempotency, err);
}

/* Gives  how many entries the file has, 0 if it is of another kind. Fails if it cannot be read:
 * with no entries, its keys would begin a second time. */
static int read_file(struct idempotency *idempotency, struct head *ret_head, uint32_t *ret_count,
                     error *err)
{
    char *to = (char *) idempotency->entries;
    int fd = idempotency->file.fd;
    ssize_t head = fd < 0 ? 0 : read_at(fd, ret_head, sizeof *ret_head, 0);
    ssize_t got =
        head < 0 || fd < 0 ? head : read_at(fd, to, sizeof idempotency->entries, place_of(0));
    if (got < 0)
        return fail_os(err, "read the Idempotency-Keys on disk");
    if (head != sizeof *ret_head || memcmp(ret_head->magic, magic, sizeof magic) != 0) {
        *ret_head = (struct head){ .clock_ms = 1 };
        (void) !ftruncate(fd, 0);
        got = 0;
    }
    *ret_count = (uint32_t) ((size_t) got / sizeof(struct entry));
    memset(to + *ret_count * sizeof(struct entry), 0,
           sizeof idempotency->entries - *ret_count * sizeof(struct entry));
    return 0;
}

/* Torn entries are skipped. The clock continues at the newest entry, or at the value in the head if
 * that is later: the time between two daemons is not counted. */
static int read_entries(struct idempotency *idempotency, error *err)
{
    struct head head = { .clock_ms = 1 };
    uint32_t count = 0, newest = 0;
    if (read_file(idempotency, &head, &count, err) < 0)
        return -1;
    idempotency->last_born_ms = 0;
    for (uint32_t index = 0; index < count; index++) {
        struct entry *entry = &idempotency->entries[index];
        if (entry->born_ms <= 0 || !memchr(entry->id, '\0', sizeof entry->id)) {
            *entry = (struct entry){ .born_ms = 0 };
            continue;
        }
        if (entry->born_ms > idempotency->last_born_ms) {
            idempotency->last_born_ms = entry->born_ms;
            newest = index;
        }
        idempotency->is_of_earlier[index] = true;
        link_entry(idempotency, index);
    }
    bool is_round = idempotency->last_born_ms > 0 && newest + 1 != count;
    idempotency->oldest = is_round ? (newest + 1) % IDEMPOTENCY_MAX : 0;
    idempotency->used = is_round ? IDEMPOTENCY_MAX : count;
    idempotency->clock_ms =
        head.clock_ms > idempotency->last_born_ms ? head.clock_ms : idempotency->last_born_ms;
    idempotency->began_at = now_ms();
    forget_old(idempotency);
    return 0;
}

static uint32_t read_boot(void)
{
    char text[BOOT_ID_SIZE + 1];
    ssize_t got = read_text_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
    return hash_of(text, got > 0 ? (size_t) got : 0);
}

int idempotency_open(const struct idempotency_settings *settings, struct idempotency **ret_replays,
                     error *err)
{
    struct idempotency *idempotency =
        calloc(1, sizeof *idempotency); /* unused pages use no memory */
    if (!idempotency)
        return fail(err, ERR_SYSTEM, "no memory for the keys of requests");
    idempotency->file = (struct idempotency_file){
        .fd = -1, .loop = settings->loop, .rewrite = write_all, .context = idempotency
    };
    idempotency->sync_each = settings->sync_each;
    idempotency->clock_ms = 1;
    idempotency->began_at = now_ms();
    idempotency->boot = read_boot();
    crypto_shorthash_keygen(idempotency->salt);
    if (settings->state && (idempotency_file_open(&idempotency->file, settings->state, err) < 0 ||
                            idempotency_take_over(idempotency, err) < 0)) {
        idempotency_file_leave(&idempotency->file);
        idempotency_free(idempotency);
        return -1;
    }
    *ret_replays = idempotency;
    return 0;
}

void idempotency_leave(struct idempotency *idempotency)
{
    if (idempotency)
        idempotency_file_leave(&idempotency->file);
}

void idempotency_free(struct idempotency *idempotency)
{
    error err;
    if (!idempotency)
        return;
    if (idempotency->file.is_ours)
        (void) write_head(idempotency, &err);
    idempotency_file_close(&idempotency->file);
    free(idempotency);
}

bool idempotency_are_elsewhere(const struct idempotency *idempotency)
{
    return idempotency->file.fd >= 0 && !idempotency->file.is_ours;
}

bool idempotency_are_awaited(const struct idempotency *idempotency)
{
    return idempotency_file_is_awaited(&idempotency->file);
}

int idempotency_take_over(struct idempotency *idempotency, error *err)
{
    if (idempotency_file_lock(&idempotency->file) == FILE_IS_ELSEWHERE)
        return IDEMPOTENCY_ELSEWHERE;
    if (read_entries(idempotency, err) == 0 && write_head(idempotency, err) == 0) {
        idempotency_file_sync_soon(&idempotency->file); /* what was read may not be on disk yet */
        return 0;
    }
    idempotency_give_back(idempotency);
    return -1;
}

void idempotency_give_back(struct idempotency *idempotency)
{
    for (uint32_t i = 0; i < idempotency->used; i++) {
        uint32_t index = (idempotency->oldest + i) % IDEMPOTENCY_MAX;
        if (idempotency->entries[index].born_ms > 0)
            unlink_entry(idempotency, index);
    }
    idempotency->used = 0;
    idempotency_file_unlock(&idempotency->file);
}

/* --- keys ------------------------------------------------------------------------------------- */

int idempotency_check_key(const char *key, error *err)
{
    size_t length = strlen(key);
    for (size_t i = 0; i < length; i++)
        if (key[i] < 0x21 || key[i] > 0x7E)
            return fail(err, ERR_BAD_REQUEST,
                        "an Idempotency-Key must be plain ASCII without blanks, such as a UUID");
    if (length == 0 || length > IDEMPOTENCY_KEY_MAX)
        return fail(err, ERR_BAD_REQUEST, "an Idempotency-Key must have 1 to %d characters",
                    IDEMPOTENCY_KEY_MAX);
    return 0;
}

static void name_of(const struct idempotency_entry *replay, unsigned char name[NAME_SIZE])
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
static uint32_t find_entry(struct idempotency *idempotency, const struct idempotency_entry *replay)
{
    unsigned char name[NAME_SIZE];
    name_of(replay, name);
    uint32_t at = *bucket_of(idempotency, name);
    while (at != 0 && memcmp(idempotency->entries[at - 1].name, name, NAME_SIZE) != 0)
        at = idempotency->behind[at - 1];
    return at;
}

/* Fails while no key can be looked up or stored. */
static int check_file(const struct idempotency *idempotency, error *err)
{
    if (idempotency_are_elsewhere(idempotency))
        return fail(err, ERR_UNAVAILABLE,
                    "another gloveboxd with this state folder has the Idempotency-Keys: one that "
                    "is leaving, or has idle_exit, gives them up when it is not in use; ask again "
                    "in a second, or give one of them a --state of its own");
    if (idempotency->file.failure != 0)
        return fail(err, ERR_UNAVAILABLE,
                    "the disk of the Idempotency-Keys fails: %s; it is tried again each second",
                    strerrordesc_np(idempotency->file.failure));
    return 0;
}

/* So that the clock continues after a restart even if no key has come. */
static void save_clock(struct idempotency *idempotency)
{
    error unwritten;
    if (idempotency->file.is_ours && now_ms() - idempotency->head_at >= head_every_ms)
        (void) write_head(idempotency, &unwritten);
}

int idempotency_find(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     struct replayed *ret_replayed, error *err)
{
    if (check_file(idempotency, err) < 0)
        return -1;
    save_clock(idempotency);
    uint32_t at = find_entry(idempotency, replay);
    if (at == 0 || !is_alive(idempotency, &idempotency->entries[at - 1]))
        return IDEMPOTENCY_NEW;
    const struct entry *entry = &idempotency->entries[at - 1];
    if (memcmp(entry->digest, replay->digest, IDEMPOTENCY_DIGEST_SIZE) != 0)
        return fail(err, ERR_CONFLICT,
                    "Idempotency-Key '%.40s' was used before with another body or path; "
                    "use a new key for a new request",
                    replay->key);
    *ret_replayed = (struct replayed){ .is_of_earlier = idempotency->is_of_earlier[at - 1],
                                       .is_of_boot = entry->boot == idempotency->boot,
                                       .log_size = entry->log_size };
    memcpy(ret_replayed->id, entry->id, IDEMPOTENCY_ID_SIZE);
    return IDEMPOTENCY_KNOWN;
}

/* A tenant may use as many keys as are free for all: alone it gets one half, two get a third each,
 * and there is always room for one more key. */
static int check_share(const struct idempotency *idempotency, uint32_t tenant, error *err)
{
    uint32_t held = idempotency->held[tenant % TENANTS], left = IDEMPOTENCY_MAX - idempotency->used;
    if (held < left)
        return 0;
    return fail(err, ERR_QUOTA,
                "%u Idempotency-Keys of this tenant are remembered, each for a day, and %u places "
                "are left for all; send fewer requests with a key, or some without",
                held, left);
}

static int replace_entry(struct idempotency *idempotency, uint32_t index, error *err)
{
    leave_table(idempotency, index);
    return write_entry(idempotency, index, err);
}

static int bring_to_disk(struct idempotency *idempotency, error *err)
{
    if (idempotency->sync_each)
        return idempotency_file_sync(&idempotency->file, err);
    idempotency_file_sync_soon(&idempotency->file);
    return 0;
}

int idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     const struct replayed *replayed, error *err)
{
    uint32_t tenant = hash_of(replay->tenant, strlen(replay->tenant));
    forget_old(idempotency);
    uint32_t old = find_entry(idempotency, replay);
    if (check_file(idempotency, err) < 0 || check_share(idempotency, tenant, err) < 0 ||
        (old != 0 && replace_entry(idempotency, old - 1, err) < 0))
        return -1;
    uint32_t index = next_of(idempotency);
    struct entry *entry = &idempotency->entries[index];
    int64_t clock_ms = clock_of(idempotency);
    idempotency->last_born_ms =
        clock_ms > idempotency->last_born_ms ? clock_ms : idempotency->last_born_ms + 1;
    *entry = (struct entry){ .tenant = tenant,
                             .boot = idempotency->boot,
                             .born_ms = idempotency->last_born_ms,
                             .log_size = replayed->log_size };
    name_of(replay, entry->name);
    memcpy(entry->digest, replay->digest, IDEMPOTENCY_DIGEST_SIZE);
    memcpy(entry->id, replayed->id, strnlen(replayed->id, IDEMPOTENCY_ID_SIZE - 1));
    link_entry(idempotency, index);
    idempotency->used++;
    if (write_entry(idempotency, index, err) == 0 && bring_to_disk(idempotency, err) == 0)
        return 0;
    idempotency_drop_last(idempotency);
    return -1;
}

void idempotency_drop_last(struct idempotency *idempotency)
{
    error unwritten;
    idempotency->used--;
    unlink_entry(idempotency, next_of(idempotency));
    (void) write_entry(idempotency, next_of(idempotency), &unwritten); /* else: no such entry */
}
