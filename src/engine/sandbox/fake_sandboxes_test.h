/* fake_sandboxes_test.h - a fake spawner and fake inits for gloveboxd's engine: the pool, the
 * client of the spawner and struct sandbox are real, the other ends of their sockets are here. The
 * clock only moves by fake_pass(). Linked with fake_engine of meson.build (--wrap).
 *
 *     fake_order(0, AGENT_EXECUTE);                what init of slot 0 was ordered, in turn
 *     fake_say(0, AGENT_OUTPUT, 1, "1\n", 2);      what it says */
#pragma once

#include "base/test.h"

#include "base/packet.h"
#include "base/table.h"
#include "engine/observe/loop_monitor.h"
#include "engine/sandbox/pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FAKE_SLOTS = 6,
    FAKE_FRAMES_MAX = 64,
    FAKE_PAYLOAD_MAX = 1024, /* bytes of it that are kept */
    FAKE_WAIT_MS = 5000,     /* of real time, for threads */
};

/* One order of gloveboxd to an init. */
struct fake_frame {
    enum agent_kind kind;
    uint32_t id;
    size_t size;
    unsigned char payload[FAKE_PAYLOAD_MAX];
    int fd; /* that came with it; -1: none */
};

static struct {
    uv_loop_t loop;
    struct spawner_link spawner;
    struct pool pool;
    int spawner_end; /* the spawner's end of its socket */
    struct {
        int stream; /* init's end; -1: a free slot */
        uint32_t generation;
        size_t in_size;
        unsigned char in[256 * 1024];
        int in_fd;
        unsigned count, taken;
        struct fake_frame frames[FAKE_FRAMES_MAX];
    } slots[FAKE_SLOTS];
    unsigned builds, releases, freezes, thaws;
    struct spawn_build last_build;
    struct spawn_inject injected; /* the last one; id 0: none */
    const char *build_failure;    /* the spawner refuses builds with this text */
    bool builds_wait;             /* it answers none until this is false */
    int64_t clock_us;
    char group[64]; /* directory of counters for all sandboxes */
} fake;

/* --- the clock -------------------------------------------------------------------------------- */

int64_t __wrap_now_us(void);
int64_t __wrap_now_ms(void);
deadline __wrap_deadline_in(int64_t duration_ms);
int64_t __wrap_deadline_left_ms(deadline end);
bool __wrap_deadline_has_passed(deadline end);

int64_t __wrap_now_us(void)
{
    return fake.clock_us;
}

int64_t __wrap_now_ms(void)
{
    return fake.clock_us / 1000;
}

deadline __wrap_deadline_in(int64_t duration_ms)
{
    return (deadline){ .at_ms = fake.clock_us / 1000 + duration_ms };
}

int64_t __wrap_deadline_left_ms(deadline end)
{
    int64_t left = end.at_ms - fake.clock_us / 1000;
    return left > 0 ? left : 0;
}

bool __wrap_deadline_has_passed(deadline end)
{
    return end.at_ms <= fake.clock_us / 1000;
}

/* --- the spawner ------------------------------------------------------------------------------ */

static inline void fake_say(unsigned slot, enum agent_kind kind, uint32_t id, const void *payload,
                            size_t size);

static inline void fake_answer_build(const struct spawn_build *build)
{
    struct spawn_built built = { .request = build->request,
                                 .groups = 1U << GROUP_UNIFIED,
                                 .walls = 1 };
    error err;
    int fds[3];
    int stream[2];
    unsigned slot = 0;
    while (slot < FAKE_SLOTS && fake.slots[slot].stream >= 0)
        slot++;
    require(slot < FAKE_SLOTS, "a slot is free");
    if (fake.build_failure) {
        built.groups = 0;
        (void) fail(&built.err, ERR_SYSTEM, "%s", fake.build_failure);
        require(packet_send(fake.spawner_end, SPAWN_BUILT, &built, sizeof built, NULL, 0, &err) ==
                    0,
                "%s", err.text);
        return;
    }
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) == 0, "a stream");
    fake.slots[slot].stream = stream[0];
    fake.slots[slot].in_fd = -1;
    fake.slots[slot].in_size = fake.slots[slot].count = fake.slots[slot].taken = 0;
    built.slot = slot;
    built.generation = ++fake.slots[slot].generation;
    fds[0] = stream[1];
    fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC); /* for init's pidfd */
    fds[2] = open(fake.group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(packet_send(fake.spawner_end, SPAWN_BUILT, &built, sizeof built, fds, 3, &err) == 0,
            "%s", err.text);
    for_each(fd, fds)
        (void) close(*fd);
    fake_say(slot, AGENT_HELLO, 0, &(struct agent_hello){ .version = AGENT_VERSION },
             sizeof(struct agent_hello));
    if (build->start == SPAWN_FORKED)
        fake_say(slot, AGENT_STARTED, AGENT_INTERPRETER, &(struct agent_started){ .pid = 2 },
                 sizeof(struct agent_started));
}

static inline void fake_answer_release(const struct spawn_slot *name)
{
    struct spawn_released released = { .slot = name->slot, .generation = name->generation };
    error err;
    require(name->slot < FAKE_SLOTS && fake.slots[name->slot].stream >= 0 &&
                fake.slots[name->slot].generation == name->generation,
            "slot %u of generation %u is released", name->slot, name->generation);
    (void) close(fake.slots[name->slot].stream);
    fake.slots[name->slot].stream = -1;
    require(packet_send(fake.spawner_end, SPAWN_RELEASED, &released, sizeof released, NULL, 0,
                        &err) == 0,
            "%s", err.text);
}

/* Returns whether there was a request. */
static inline bool fake_serve_spawner(void)
{
    struct packet packet;
    error err;
    if (packet_receive(fake.spawner_end, &packet, &err) != PACKET_CAME)
        return false;
    if (packet.kind == SPAWN_BUILD) {
        fake.builds++;
        memcpy(&fake.last_build, packet.body, sizeof fake.last_build);
        if (!fake.builds_wait)
            fake_answer_build(&fake.last_build);
    } else if (packet.kind == SPAWN_RELEASE) {
        struct spawn_slot name;
        memcpy(&name, packet.body, sizeof name);
        fake.releases++;
        fake_answer_release(&name);
    } else if (packet.kind == SPAWN_INJECT) {
        memcpy(&fake.injected, packet.body, sizeof fake.injected);
    }
    fake.freezes += packet.kind == SPAWN_FREEZE;
    fake.thaws += packet.kind == SPAWN_THAW;
    packet_done(&packet);
    return true;
}

/* --- init ------------------------------------------------------------------------------------- */

static inline void fake_keep_frame(unsigned slot, const struct agent_frame *frame,
                                   const unsigned char *payload)
{
    require(fake.slots[slot].count < FAKE_FRAMES_MAX, "more orders than a test expects");
    struct fake_frame *kept = &fake.slots[slot].frames[fake.slots[slot].count++];
    size_t size = frame->size < sizeof kept->payload ? frame->size : sizeof kept->payload;
    *kept = (struct fake_frame){
        .kind = (enum agent_kind) frame->kind, .id = frame->id, .size = frame->size, .fd = -1
    };
    memcpy(kept->payload, payload, size);
    bool takes_fd = frame->kind == AGENT_IMAGE || frame->kind == AGENT_SAVE ||
                    frame->kind == AGENT_LOAD || frame->kind == AGENT_START;
    if (takes_fd) {
        kept->fd = fake.slots[slot].in_fd;
        fake.slots[slot].in_fd = -1;
    }
}

/* Reads frames of gloveboxd to the init of a slot. Returns whether there were any. A descriptor
 * comes with the first byte of its frame, never with bytes before it. */
static inline bool fake_read_init(unsigned slot)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    unsigned char *in = fake.slots[slot].in;
    struct iovec part = { in + fake.slots[slot].in_size,
                          sizeof fake.slots[slot].in - fake.slots[slot].in_size };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    ssize_t got = recvmsg(fake.slots[slot].stream, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0)
        return false;
    int fd = -1;
    if (take_descriptors(&message, &fd, 1) > 0)
        fake.slots[slot].in_fd = fd;
    fake.slots[slot].in_size += (size_t) got;
    for (struct agent_frame frame; fake.slots[slot].in_size >= sizeof frame;) {
        memcpy(&frame, in, sizeof frame);
        size_t whole = sizeof frame + frame.size;
        if (fake.slots[slot].in_size < whole)
            break;
        fake_keep_frame(slot, &frame, in + sizeof frame);
        fake.slots[slot].in_size -= whole;
        memmove(in, in + whole, fake.slots[slot].in_size);
    }
    return true;
}

static inline void fake_send(unsigned slot, const struct agent_frame *frame, const void *payload)
{
    require(fake.slots[slot].stream >= 0, "slot %u has a sandbox", slot);
    struct iovec parts[2] = { { (void *) (uintptr_t) frame, sizeof *frame },
                              { (void *) (uintptr_t) payload, frame->size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = frame->size > 0 ? 2 : 1 };
    require(sendmsg(fake.slots[slot].stream, &message, MSG_NOSIGNAL) ==
                (ssize_t) (sizeof *frame + frame->size),
            "init speaks");
}

/* --- time and turns --------------------------------------------------------------------------- */

/* Runs the loop, the spawner and the inits until nothing more happens. */
static inline void fake_turn(void)
{
    for (int quiet = 0, turns = 0; quiet < 3; turns++) {
        require(turns < 100000, "it goes on without end");
        (void) uv_run(&fake.loop, UV_RUN_NOWAIT);
        bool is_busy = fake_serve_spawner();
        for (unsigned slot = 0; slot < FAKE_SLOTS; slot++)
            is_busy |= fake.slots[slot].stream >= 0 && fake_read_init(slot);
        quiet = is_busy ? 0 : quiet + 1;
    }
}

/* Runs them until a thread has done its part. */
#define fake_until(fact)                                                   \
    do {                                                                   \
        for (int waited = 0; waited < FAKE_WAIT_MS && !(fact); waited++) { \
            fake_turn();                                                   \
            if (!(fact))                                                   \
                (void) usleep(1000);                                       \
        }                                                                  \
        require(fact, "it does not come: " #fact);                         \
    } while (0)

static inline void fake_shorten(uv_handle_t *handle, void *context)
{
    const uint64_t *ms = context;
    uv_timer_t *timer = (uv_timer_t *) handle;
    if (handle->type != UV_TIMER || !uv_is_active(handle))
        return;
    uint64_t left = uv_timer_get_due_in(timer);
    uint64_t repeat = uv_timer_get_repeat(timer);
    (void) uv_timer_start(timer, timer->timer_cb, left > *ms ? left - *ms : 0, repeat);
}

/* Moves the clock, and runs all timers that are due on the way. */
static inline void fake_pass(int64_t ms)
{
    uint64_t passed = (uint64_t) ms;
    fake.clock_us += ms * 1000;
    uv_walk(&fake.loop, fake_shorten, &passed);
    fake_turn();
}

/* Sends a frame from init and runs the loop. */
static inline void fake_say(unsigned slot, enum agent_kind kind, uint32_t id, const void *payload,
                            size_t size)
{
    fake_send(slot,
              &(struct agent_frame){ .kind = (uint16_t) kind,
                                     .id = id,
                                     .size = (uint32_t) size,
                                     .stream = kind == AGENT_OUTPUT },
              payload);
}

static inline void fake_says(unsigned slot, enum agent_kind kind, uint32_t id, const void *payload,
                             size_t size)
{
    fake_say(slot, kind, id, payload, size);
    fake_turn();
}

/* Sends DONE with an errno; 0: success. */
static inline void fake_done(unsigned slot, uint32_t id, int os)
{
    const struct agent_done done = { .os = os };
    fake_says(slot, AGENT_DONE, id, &done, sizeof done);
}

/* The first frame of this kind that was not taken yet; earlier ones are skipped. NULL: none has
 * come. */
static inline const struct fake_frame *fake_order(unsigned slot, enum agent_kind kind)
{
    fake_turn();
    for (unsigned i = fake.slots[slot].taken; i < fake.slots[slot].count; i++)
        if (fake.slots[slot].frames[i].kind == kind) {
            fake.slots[slot].taken = i + 1;
            return &fake.slots[slot].frames[i];
        }
    return NULL;
}

/* Sets the processor time of every sandbox. */
static inline void fake_use_cpu(uint64_t us)
{
    char path[96];
    (void) snprintf(path, sizeof path, "%s/cpu.stat", fake.group);
    FILE *file = fopen(path, "we");
    require(file, "counters");
    (void) fprintf(file, "usage_usec %llu\n", (unsigned long long) us);
    (void) fclose(file);
}
