/* intents.c - open executions are slots of a file. Recovery searches the log for their receipts. */
#include "ledger/intents.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/read_at.h"
#include "ledger/envelope.h"
#include "ledger/sha256.h"
#include "ledger/statement.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { SLOTS_MAX = 65536, SLOTS_SEEN = 256, INTENT_ID_SIZE = 64 };
enum { SLOT_OPEN = 1, SLOT_LEFT = 2, SETTLE_MS = 1000 };
enum { XFS_MAGIC = 0x58465342 }; /* not in the kernel's list */

/* One slot. `check` covers the members after it: an incomplete note does not count, since its run
 * had not begun. */
struct slot {
    uint32_t is_open; /* SLOT_OPEN, SLOT_LEFT; 0: free */
    uint32_t size;    /* of text */
    unsigned char check[8];
    uint64_t log_size; /* records on the disk: its receipt, if any, is not before them */
    char id[INTENT_ID_SIZE];
    char text[INTENT_MAX];
};

struct intents {
    struct ledger *ledger; /* borrowed */
    int folder, file;
    struct slot *seen; /* mapping of the first SLOTS_SEEN; NULL: write(2) is used for them */
    char name[40];
    unsigned slot_count, open_count, left_count;
    deadline next_settle; /* when to try intents_settle() again */
    unsigned *free_slots, free_count, free_room;
};

static void check_slot(const struct slot *slot, unsigned char ret_check[8])
{
    unsigned char hash[32];
    const unsigned char *from = (const unsigned char *) &slot->log_size;
    size_t size = (size_t) ((const unsigned char *) slot->text - from) + slot->size;
    sha256_of(from, size, hash);
    memcpy(ret_check, hash, 8);
}

static int open_folder(int folder, int *ret_folder, error *err)
{
    static const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    *ret_folder = openat(folder, "open", how);
    if (*ret_folder < 0 &&
        errno == ENOENT) { /* a serving daemon may not make folders, so only if needed */
        if (mkdirat(folder, "open", 0700) < 0 && errno != EEXIST)
            return fail_os(err, "make the log's folder 'open'");
        *ret_folder = openat(folder, "open", how);
    }
    return *ret_folder < 0 ? fail_os(err, "open the log's folder 'open'") : 0;
}

/* Maps the first slots of the file: a store takes a tenth of the time of write(2), and is as safe
 * if this process dies. On a full disk a store would raise SIGBUS, so the blocks must be allocated,
 * on a file system that writes in place. */
static struct slot *see_slots(int file)
{
    static const off_t size = (off_t) SLOTS_SEEN * (off_t) sizeof(struct slot);
    struct statfs system;
    if (fstatfs(file, &system) < 0 ||
        (system.f_type != EXT4_SUPER_MAGIC && system.f_type != XFS_MAGIC &&
         system.f_type != TMPFS_MAGIC) ||
        fallocate(file, 0, 0, size) < 0)
        return NULL;
    void *seen = mmap(NULL, (size_t) size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return seen == MAP_FAILED ? NULL : seen;
}

int intents_open(int folder, struct ledger *ledger, struct intents **ret_intents, error *err)
{
    struct intents *intents = calloc(1, sizeof *intents);
    if (!intents)
        return fail(err, ERR_SYSTEM, "no memory for the list of open runs");
    intents->ledger = ledger;
    intents->folder = intents->file = -1;
    unsigned char chance[16];
    char path[64];
    randombytes_buf(chance, sizeof chance);
    (void) sodium_bin2hex(intents->name, sizeof intents->name, chance, sizeof chance);
    int result = open_folder(folder, &intents->folder, err);
    if (result == 0) {
        intents->file = openat(intents->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", intents->file);
        /* Locked before it has a name, so that it is never mistaken for that of a dead daemon. */
        if (intents->file < 0 || flock(intents->file, LOCK_EX | LOCK_NB) < 0 ||
            linkat(AT_FDCWD, path, intents->folder, intents->name, AT_SYMLINK_FOLLOW) < 0)
            result = fail_os(err, "make the list of open runs");
    }
    if (result < 0) {
        close_fd(&intents->folder);
        close_fd(&intents->file);
        free(intents);
        return -1;
    }
    intents->seen = see_slots(intents->file);
    *ret_intents = intents;
    return 0;
}

void intents_close(struct intents *intents)
{
    if (!intents)
        return;
    if (intents->open_count == 0)
        (void) unlinkat(intents->folder, intents->name, 0);
    if (intents->seen)
        (void) munmap(intents->seen, SLOTS_SEEN * sizeof *intents->seen);
    close_fd(&intents->file);
    close_fd(&intents->folder);
    free(intents->free_slots);
    free(intents);
}

static int take_slot(struct intents *intents, unsigned *ret_slot, error *err)
{
    if (intents->free_count > 0) {
        *ret_slot = intents->free_slots[--intents->free_count];
        return 0;
    }
    if (intents->slot_count == SLOTS_MAX)
        return fail(err, ERR_BUSY, "%d executions are open at once", SLOTS_MAX);
    if (intents->free_room == intents->slot_count) { /* the free list must fit every slot */
        unsigned room = intents->free_room ? 2 * intents->free_room : 64;
        unsigned *more = reallocarray(intents->free_slots, room, sizeof *more);
        if (!more)
            return fail(err, ERR_SYSTEM, "no memory for the list of open runs");
        intents->free_slots = more;
        intents->free_room = room;
    }
    *ret_slot = intents->slot_count++;
    return 0;
}

/* `is_open` is stored last: if the process is killed before that, the slot is still free. */
static void store_slot(struct slot *seen, const struct slot *slot)
{
    memcpy((char *) seen + sizeof seen->is_open, (const char *) slot + sizeof slot->is_open,
           offsetof(struct slot, text) + slot->size - sizeof slot->is_open);
    __atomic_store_n(&seen->is_open, slot->is_open, __ATOMIC_RELEASE);
}

static int put_slot(const struct intents *intents, unsigned number, const struct slot *slot,
                    bool is_durable, error *err)
{
    bool is_seen = intents->seen && number < SLOTS_SEEN;
    if (is_seen)
        store_slot(&intents->seen[number], slot);
    errno = 0;
    if ((is_seen || pwrite(intents->file, slot, sizeof *slot, (off_t) (number * sizeof *slot)) ==
                        sizeof *slot) &&
        (!is_durable || fdatasync(intents->file) == 0))
        return 0;
    if (errno == 0)
        errno = ENOSPC; /* a short write sets no errno */
    return fail_os(err, "note an open run");
}

int intents_note(struct intents *intents, const struct intent *intent, unsigned *ret_slot,
                 error *err)
{
    const struct bytes *opened = intent->opened;
    struct slot slot = { .is_open = SLOT_OPEN, .log_size = ledger_covered(intents->ledger) };
    if (opened->size > INTENT_MAX || strlen(intent->id) >= INTENT_ID_SIZE)
        return fail(err, ERR_INTERNAL, "a note of %zu bytes on an open run", opened->size);
    slot.size = (uint32_t) opened->size;
    (void) snprintf(slot.id, sizeof slot.id, "%s", intent->id);
    memcpy(slot.text, opened->data, opened->size);
    check_slot(&slot, slot.check);
    unsigned number = 0;
    if (take_slot(intents, &number, err) < 0)
        return -1;
    intents->open_count++;
    if (put_slot(intents, number, &slot, intent->is_durable, err) < 0) {
        intents_strike(intents, number); /* a part may have been written */
        return -1;
    }
    *ret_slot = number;
    return 0;
}

static void put_state(const struct intents *intents, unsigned slot, uint32_t state)
{
    if (intents->seen && slot < SLOTS_SEEN)
        __atomic_store_n(&intents->seen[slot].is_open, state, __ATOMIC_RELEASE);
    else
        (void) !pwrite(intents->file, &state, sizeof state, (off_t) (slot * sizeof(struct slot)));
}

void intents_leave(struct intents *intents, unsigned slot)
{
    put_state(intents, slot, SLOT_LEFT);
    intents->left_count++;
}

void intents_strike(struct intents *intents, unsigned slot)
{
    put_state(intents, slot, 0);
    intents->free_slots[intents->free_count++] = slot;
    intents->open_count--;
}

/* An execution that a slot holds open. */
struct open_run {
    unsigned slot;
    bool is_told; /* the log has a record of it */
    uint64_t log_size;
    char id[INTENT_ID_SIZE];
};

struct open_runs {
    struct open_run *list;
    size_t count, room;
};

static void open_runs_done(struct open_runs *runs)
{
    free(runs->list);
}

/* Returns  1, or 0 after the last one. A read error is a failure, and does not mean the end. */
static int read_slot(int file, unsigned number, struct slot *slot, error *err)
{
    ssize_t got = read_at(file, slot, sizeof *slot, (off_t) (number * sizeof *slot));
    return got < 0 ? fail_os(err, "read the list of open runs") : got == sizeof *slot;
}

static bool is_open(const struct slot *slot)
{
    unsigned char check[8];
    if ((slot->is_open != SLOT_OPEN && slot->is_open != SLOT_LEFT) || slot->size > INTENT_MAX ||
        !memchr(slot->id, '\0', INTENT_ID_SIZE))
        return false;
    check_slot(slot, check);
    return memcmp(check, slot->check, sizeof check) == 0;
}

static int compare_runs(const void *one, const void *other)
{
    const struct open_run *a = one, *b = other;
    int order = strcmp(a->id, b->id);
    return order ? order : (a->log_size > b->log_size) - (a->log_size < b->log_size);
}

/* Lists open runs of a file; with `left_only` those that intents_leave() has marked. */
static int list_open(int file, bool left_only, struct open_runs *runs, error *err)
{
    struct slot slot;
    int came;
    for (unsigned number = 0; (came = read_slot(file, number, &slot, err)) != 0; number++) {
        if (came < 0)
            return -1;
        if (!is_open(&slot) || (left_only && slot.is_open != SLOT_LEFT))
            continue;
        if (runs->count == runs->room) {
            size_t room = runs->room ? 2 * runs->room : 64;
            struct open_run *more = reallocarray(runs->list, room, sizeof *more);
            if (!more)
                return fail(err, ERR_SYSTEM, "no memory for the list of open runs");
            runs->list = more;
            runs->room = room;
        }
        struct open_run *run = &runs->list[runs->count++];
        *run = (struct open_run){ .slot = number, .log_size = slot.log_size };
        memcpy(run->id, slot.id, sizeof run->id);
    }
    if (runs->count > 0) /* qsort(3) must not get NULL */
        qsort(runs->list, runs->count, sizeof *runs->list, compare_runs);
    for (size_t i = 1; i < runs->count; i++) /* an id in two slots gets one receipt */
        runs->list[i].is_told = strcmp(runs->list[i].id, runs->list[i - 1].id) == 0;
    return 0;
}

static void mark_told(struct open_runs *runs, uint64_t index, const struct bytes *payload)
{
    char words[INTENT_ID_SIZE + 16];
    for (struct open_run *run = runs->list; run < runs->list + runs->count; run++) {
        if (run->is_told || run->log_size > index)
            continue;
        int size = snprintf(words, sizeof words, "\"id\":\"%s\"", run->id);
        run->is_told = memmem(payload->data, payload->size, words, (size_t) size);
    }
}

/* Marks those that have a record. The log is read once for all of them. */
static int search_log(struct ledger *ledger, struct open_runs *runs, error *err)
{
    uint64_t index = ledger_size(ledger);
    for (size_t i = 0; i < runs->count; i++)
        if (runs->list[i].log_size < index)
            index = runs->list[i].log_size;
    for (; index < ledger_size(ledger); index++) {
        auto_bytes record = { 0 };
        auto_envelope envelope = { 0 };
        if (ledger_read(ledger, index, &record, err) < 0 ||
            envelope_read(record.data, record.size, &envelope, err) < 0)
            return -1;
        mark_told(runs, index, &envelope.payload);
    }
    return 0;
}

static int write_lost(struct ledger *ledger, const struct slot *slot, error *err)
{
    struct statement_place place = { .origin = ledger_key(ledger)->name, .at_ms = wall_clock_ms() };
    auto_bytes statement = { 0 };
    if (ledger_begin(ledger, &place.before, err) < 0)
        return -1;
    receipt_make_id(place.before.size, place.id);
    if (statement_write_lost(slot->text, slot->size, &place, &statement, err) < 0) {
        ledger_abandon(ledger);
        return -1;
    }
    return ledger_commit(ledger, TYPE_STATEMENT, &statement, err);
}

static int write_lost_run(struct ledger *ledger, int file, const struct open_run *run, error *err)
{
    struct slot slot;
    if (run->is_told)
        return 0;
    if (read_slot(file, run->slot, &slot, err) != 1 || !is_open(&slot))
        return fail(err, ERR_SYSTEM, "slot %u of the list of open runs cannot be read again",
                    run->slot);
    return write_lost(ledger, &slot, err);
}

/* Reads the marked slots from the file. If marking failed, the next daemon records them as lost. */
int intents_settle(struct intents *intents, error *err)
{
    __attribute__((cleanup(open_runs_done))) struct open_runs runs = { 0 };
    if (intents->left_count == 0)
        return 0;
    if (!deadline_has_passed(intents->next_settle))
        return fail(err, ERR_UNAVAILABLE, "%u of them wait; try again in a second",
                    intents->left_count);
    intents->next_settle = deadline_in(SETTLE_MS);
    if (list_open(intents->file, true, &runs, err) < 0 ||
        search_log(intents->ledger, &runs, err) < 0)
        return -1;
    for (size_t i = 0; i < runs.count; i++)
        if (write_lost_run(intents->ledger, intents->file, &runs.list[i], err) < 0)
            return -1;
    /* The sync of a record that was found may have failed: it may not be on disk yet. */
    if (ledger_sync(intents->ledger, err) < 0)
        return -1;
    for (size_t i = 0; i < runs.count; i++)
        intents_strike(intents, runs.list[i].slot);
    intents->left_count = 0;
    return 0;
}

static int recover_file(int folder, const char *name, struct ledger *ledger, unsigned *lost,
                        error *err)
{
    auto_fd file = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    __attribute__((cleanup(open_runs_done))) struct open_runs runs = { 0 };
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
        return 0; /* its daemon runs, or another one is recovering it */
    if (list_open(file, false, &runs, err) < 0 || search_log(ledger, &runs, err) < 0)
        return under(err, "find the runs that were lost");
    for (size_t i = 0; i < runs.count; i++) {
        if (write_lost_run(ledger, file, &runs.list[i], err) < 0)
            return under(err, "write the receipts of lost runs");
        *lost += !runs.list[i].is_told;
    }
    /* Remove this file only when the records are on disk. */
    if (runs.count > 0 && ledger_sync(ledger, err) < 0)
        return under(err, "bring the receipts of lost runs to disk");
    (void) unlinkat(folder, name, 0);
    return 0;
}

int intents_recover(int folder, struct ledger *ledger, unsigned *ret_lost, error *err)
{
    int copy = -1;
    *ret_lost = 0;
    if (open_folder(folder, &copy, err) < 0)
        return -1;
    DIR *entries = fdopendir(copy);
    if (!entries) {
        close_fd(&copy);
        return fail_os(err, "list open runs");
    }
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (errno = 0, entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe) */
        if (strspn(entry->d_name, "0123456789abcdef") == 32 && entry->d_name[32] == '\0')
            result = recover_file(dirfd(entries), entry->d_name, ledger, ret_lost, err);
    if (result == 0 && errno != 0)
        result = fail_os(err, "list open runs");
    (void) closedir(entries);
    return result;
}
