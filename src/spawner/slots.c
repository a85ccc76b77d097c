/* slots.c - slots are numbers that are unique on the host: a sandbox's user id and control group
 * follow from its slot. An instance owns a range of slots by a lock on that range of a file, which
 * the kernel drops when the instance ends for any reason. So a group whose slot can be locked has
 * no owner, and can be removed. */
#include "base/clock.h"
#include "model/ids.h"
#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LEAVE_MS = 5000, AGAIN_MS = 2000 };

static int slots_file = -1;

/* Open file description locks: not shared with other processes, nor dropped by another close(). */
static bool lock_range(uint32_t first, uint32_t count, short kind)
{
    struct flock range = {
        .l_type = kind,
        .l_whence = SEEK_SET,
        .l_start = (off_t) first,
        .l_len = (off_t) count,
    };
    return fcntl(slots_file, F_OFD_SETLK, &range) == 0;
}

/* Keeps the lock until the sweep is over, so that no other spawner takes a slot being swept. */
static bool is_abandoned(uint32_t slot)
{
    return lock_range(slot, 1, F_WRLCK);
}

int lock_slots(struct spawner *spawner, const char *path, uint32_t count, error *err)
{
    slots_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (slots_file < 0)
        return fail_os(err, "open slots file '%s'", path);
    /* Before our own range is locked, so that it is swept as well. */
    spawner->swept = sweep_groups(spawner, is_abandoned);
    (void) lock_range(0, 0, F_UNLCK); /* no length: all of them */
    for (uint32_t first = 0; first + count <= SLOTS_MAX; first += count) {
        if (!lock_range(first, count, F_WRLCK))
            continue;
        spawner->first_slot = first;
        spawner->slot_count = count;
        return 0;
    }
    return fail(err, ERR_BUSY, "all %d sandbox slots of this host are taken; end an instance",
                SLOTS_MAX);
}

/* Has a service with another slots file removed our groups, as without owner (docs/operating.md)?
 * False while a group of our name exists: that service has it, and uses our slots and ids. */
bool groups_were_swept(const struct spawner *spawner)
{
    char holders[PATH_MAX] = "/";
    if (spawner->root_count > 0)
        (void) snprintf(holders, sizeof holders, "%s/%s", spawner->roots[0].path, spawner->holders);
    return access(holders, F_OK) < 0 && errno == ENOENT;
}

struct slot *slot_at(struct spawner *spawner, uint32_t number, uint32_t generation)
{
    if (number < spawner->first_slot || number - spawner->first_slot >= spawner->slot_count)
        return NULL;
    struct slot *slot = &spawner->slots[number - spawner->first_slot];
    return slot->state != SLOT_FREE && slot->generation == generation ? slot : NULL;
}

uint32_t slot_number(const struct spawner *spawner, const struct slot *slot)
{
    return spawner->first_slot + (uint32_t) (slot - spawner->slots);
}

/* Takes the free slot after the one taken last, so that an id is not used again soon. Slots that
 * keep their control groups come first. */
struct slot *slot_take(struct spawner *spawner)
{
    static uint32_t next;
    for (uint32_t tried = 0; tried < SLOTS_KEEPING + spawner->slot_count; tried++) {
        uint32_t among = spawner->slot_count;
        if (tried < SLOTS_KEEPING && among > SLOTS_KEEPING)
            among = SLOTS_KEEPING;
        struct slot *slot = &spawner->slots[next++ % among];
        if (slot->state != SLOT_FREE)
            continue;
        uint32_t generation = slot->generation + 1;
        *slot = (struct slot){ .state = SLOT_BUILDING,
                               .generation = generation,
                               .kept = slot->kept,
                               .build = slot->build,
                               .init = -1,
                               .report = -1,
                               .inside = -1,
                               .ends = { -1, -1, -1, -1 } };
        return slot;
    }
    return NULL;
}

static void close_and_forget(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
    *fd = -1;
}

/* Closes the descriptors that only the fork of the interpreter needed. */
void slot_close_ends(struct slot *slot)
{
    for (unsigned i = 0; i < INTERPRETER_ENDS; i++)
        close_and_forget(&slot->ends[i]);
}

/* Kills the sandbox's init: the kernel then ends every process of its pid namespace and waits for
 * them, pid_namespaces(7). slots_tend() does the rest. */
void slot_leave(struct spawner *spawner, struct slot *slot)
{
    (void) spawner;
    slot->lost = false;
    close_and_forget(&slot->report);
    close_and_forget(&slot->inside);
    slot_close_ends(slot);
    for (unsigned i = 0; i < slot->procs_count; i++)
        close_and_forget(&slot->procs[i]);
    slot->procs_count = 0;
    if (slot->init >= 0)
        (void) syscall(SYS_pidfd_send_signal, slot->init, SIGKILL, NULL, 0);
    if (slot->state != SLOT_LEAVING)
        slot->until_ms = now_ms() + LEAVE_MS;
    slot->state = SLOT_LEAVING;
}

/* Kills it again at each call: if one signal could not be sent, the slot must not stay in use. */
static bool has_ended(int pidfd)
{
    return pidfd < 0 ||
           (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno == ESRCH);
}

/* With cgroup v1, frozen processes do not die of a signal. Called after init was killed: the kernel
 * kills the others with it, so they do not run on. */
static void thaw(const struct spawner *spawner, struct slot *slot)
{
    error unheard;
    if (slot->is_frozen && set_frozen(spawner, slot, false, &unheard) == 0)
        slot->is_frozen = false;
}

/* Sends SPAWN_RELEASED, for which gloveboxd waits. False: the socket is full; try again. */
static bool release_is_told(const struct spawner *spawner, const struct slot *slot,
                            uint32_t leftovers)
{
    struct spawn_released released = { .slot = slot_number(spawner, slot),
                                       .generation = slot->generation,
                                       .leftovers = leftovers };
    error err;
    return packet_send(spawner->daemon, SPAWN_RELEASED, &released, sizeof released, NULL, 0,
                       &err) == 0 ||
           err.os == EPIPE || err.os == ECONNRESET || err.os == ENOTCONN;
}

static void slot_is_gone(struct spawner *spawner, struct slot *slot, uint32_t leftovers)
{
    if (slot->failed)
        tell_failed(spawner, slot->request, &slot->cause);
    slot->failed = false;
    bool is_back = slot->told_stuck && leftovers == 0;
    if ((slot->asked_to_leave || is_back) &&
        !release_is_told(spawner, slot, is_back ? SPAWN_IS_BACK : leftovers))
        return;                  /* slots_tend() tries again */
    slot->stuck = leftovers > 0; /* processes that the kernel cannot kill, or only slowly */
    slot->told_stuck = slot->stuck && (slot->told_stuck || slot->asked_to_leave);
    slot->asked_to_leave = false;
    slot->until_ms = now_ms() + AGAIN_MS;
    if (slot->stuck)
        return;
    if (slot->init >= 0) /* close() alone leaves it in epoll while another process has it open */
        (void) epoll_ctl(spawner->epoll, EPOLL_CTL_DEL, slot->init, NULL);
    close_and_forget(&slot->init);
    slot->state = SLOT_FREE;
}

/* Advances slots that wait for something: called after every event, and every millisecond while a
 * slot is leaving. */
bool slots_tend(struct spawner *spawner)
{
    int64_t now = now_ms();
    bool some_leave = false;
    for (uint32_t i = 0; i < spawner->slot_count; i++) {
        struct slot *slot = &spawner->slots[i];
        if (slot->state == SLOT_BUILDING && now >= slot->until_ms) {
            error late;
            bool warms = slot->zygote && !slot->zygote->ready;
            (void) fail(&late, ERR_TIMEOUT, "%s was not ready in time; try again",
                        warms ? "the zygote, which imports modules," : "the sandbox");
            build_failed(spawner, slot, &late);
        }
        bool rests = slot->lost || (slot->stuck && !slot->asked_to_leave);
        if (slot->state != SLOT_LEAVING || (rests && now < slot->until_ms))
            continue;
        bool has_gone = has_ended(slot->init);
        thaw(spawner, slot);
        bool gone = has_gone && remove_leaves(spawner, slot) == 0;
        if (gone || slot->stuck || now >= slot->until_ms)
            slot_is_gone(spawner, slot, gone ? 0 : 1);
        some_leave |= slot->state == SLOT_LEAVING && !slot->stuck && !slot->lost;
    }
    return some_leave;
}
