/* reports_test.c - init's reports while it builds a sandbox, and the messages to gloveboxd. */
#include "base/test.h"

#include "base/table.h"
#include "spawner/fakes_test.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct spawner root;
static struct slot *const slot = &root.slots[0];
static int daemon_side, init_side;

static void begin(enum spawn_start start)
{
    memset(&root, 0, sizeof root);
    interpreters = 0;
    root.slot_count = 1;
    root.epoll = epoll_create1(EPOLL_CLOEXEC);
    open_pair(&root.daemon, &daemon_side);
    *slot = (struct slot){ .state = SLOT_BUILDING, .generation = 3, .request = 9 };
    slot->init = eventfd(0, EFD_CLOEXEC);
    slot->inside = eventfd(0, EFD_CLOEXEC);
    slot->build.start = start;
    memset(slot->ends, -1, sizeof slot->ends);
    open_pair(&slot->report, &init_side);
}

static void end(void)
{
    slot_leave(&root, slot);
    const int fds[] = { root.epoll, root.daemon, daemon_side, init_side, slot->init };
    for_each(fd, fds)
        (void) close(*fd);
}

/* Sends a report as init does, with the given number of descriptors. */
static void report(uint32_t kind, const struct build_ready *ready, size_t size, unsigned fd_count)
{
    int fds[INTERPRETER_ENDS + 1];
    error err;
    for_each(fd, fds)
        *fd = slot->init;
    require(packet_send(init_side, kind, ready, size, fds, fd_count, &err) == 0, "%s", err.text);
    sandbox_reports(&root, slot);
}

static bool daemon_is_told(struct spawn_built *ret_built, unsigned *ret_fds)
{
    struct packet packet;
    error err;
    if (packet_receive(daemon_side, &packet, &err) != PACKET_CAME)
        return false;
    require(packet.kind == SPAWN_BUILT && packet.size == sizeof *ret_built, "kind %u", packet.kind);
    memcpy(ret_built, packet.body, sizeof *ret_built);
    *ret_fds = packet.fds;
    packet_done(&packet);
    return true;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(a_ready_sandbox_is_handed_over_with_its_descriptors)
{
    struct spawn_built built;
    unsigned fds = 0;
    begin(SPAWN_EMPTY);
    slot->groups = 1U << GROUP_MEMORY | 1U << GROUP_PIDS;
    leaf_to_open = slot->init;
    struct build_ready ready = { .walls = 1ULL << WALL_cgroup_io | 1ULL << WALL_unique_uid | 1 };
    unsigned files = open_files();
    report(BUILD_READY, &ready, sizeof ready, 0);
    expect(slot->state == SLOT_STANDING && slot->inside == -1, "state %u", slot->state);
    expect(open_files() < files, "control groups stay open: %u files, %u before", open_files(),
           files);
    require(daemon_is_told(&built, &fds), "an answer");
    expect(fds == 4 && built.groups == slot->groups, "%u descriptors", fds);
    expect(built.request == 9 && built.slot == 0 && built.generation == 3 && built.err.code == 0,
           "request %llu, generation %u: %s", (unsigned long long) built.request, built.generation,
           built.err.text);
    expect(built.walls == (1ULL << WALL_unique_uid | 1),
           "without a rate no bound of the disk: %llx", (unsigned long long) built.walls);
    expect((built.walls & built.degraded) == 0 &&
               (built.walls | built.degraded | 1ULL << WALL_cgroup_io) == (1ULL << WALLS) - 1,
           "a wall stands, or is missing: %llx", (unsigned long long) built.degraded);
    end();

    begin(SPAWN_EMPTY);
    leaf_to_open = slot->init;
    root.unprivileged = true;
    slot->build.disk_write_rate = 1;
    report(BUILD_READY, &ready, sizeof ready, 0);
    require(daemon_is_told(&built, &fds), "an answer");
    expect(built.walls == (1ULL << WALL_cgroup_io | 1), "walls of a user: %llx",
           (unsigned long long) built.walls);
    end();

    begin(SPAWN_EMPTY);
    leaf_to_open = -1;
    slot->groups = 1U << GROUP_MEMORY;
    report(BUILD_READY, &ready, sizeof ready, 0);
    expect(slot->state == SLOT_LEAVING && slot->failed && !daemon_is_told(&built, &fds),
           "handed over without its control group");
    end();
}

TEST(a_report_that_is_wrong_ends_the_sandbox)
{
    struct build_ready failed = { .err.code = ERR_UNAVAILABLE };
    struct build_ready no_wall = { .walls = 1ULL << WALLS };
    struct build_ready not_degraded = { .degraded = 1ULL << WALLS };
    struct build_ready good = { .walls = 1 };
    const struct {
        const char *what;
        uint32_t kind;
        const struct build_ready *ready;
        size_t size;
        unsigned fds;
        enum spawn_start start;
        enum error_code code;
    } rows[] = {
        { "kind", BUILD_CLONED, &good, sizeof good, 0, SPAWN_EMPTY, ERR_UNAVAILABLE },
        { "size", BUILD_READY, &good, sizeof good - 1, 0, SPAWN_EMPTY, ERR_UNAVAILABLE },
        { "error", BUILD_READY, &failed, sizeof failed, 0, SPAWN_EMPTY, ERR_UNAVAILABLE },
        { "walls", BUILD_READY, &no_wall, sizeof no_wall, 0, SPAWN_EMPTY, ERR_PROTOCOL },
        { "missing", BUILD_READY, &not_degraded, sizeof good, 0, SPAWN_EMPTY, ERR_PROTOCOL },
        { "one end", BUILD_READY, &good, sizeof good, 1, SPAWN_EMPTY, ERR_PROTOCOL },
        { "three ends", BUILD_READY, &good, sizeof good, 3, SPAWN_FORKED, ERR_PROTOCOL },
        { "five ends", BUILD_READY, &good, sizeof good, 5, SPAWN_FORKED, ERR_PROTOCOL },
    };
    for_each(row, rows) {
        struct spawn_built built;
        unsigned fds;
        begin(row->start);
        report(row->kind, row->ready, row->size, row->fds);
        expect(slot->state == SLOT_LEAVING && slot->failed, "%s: state %u", row->what, slot->state);
        expect(slot->cause.code == (int32_t) row->code, "%s: %s", row->what, slot->cause.text);
        expect(!daemon_is_told(&built, &fds), "%s: told before the slot is free", row->what);
        expect(interpreters == 0, "%s: an interpreter was forked", row->what);
        end();
    }
    begin(SPAWN_EMPTY);
    (void) close(init_side);
    sandbox_reports(&root, slot);
    expect(slot->state == SLOT_LEAVING && slot->cause.code == ERR_UNAVAILABLE, "init has ended");
    init_side = -1;
    end();
}

TEST(a_report_waits_for_that_of_the_fork_server)
{
    struct build_ready ready = { .walls = 1 };
    begin(SPAWN_EMPTY);
    int init = slot->init;
    sandbox_reports(&root, slot);
    expect(slot->state == SLOT_BUILDING, "nothing came, and the state is %u", slot->state);
    slot->init = -1;
    report(BUILD_READY, &ready, sizeof ready, 0);
    expect(slot->state == SLOT_BUILDING, "state %u", slot->state);
    slot->init = init;
    sandbox_reports(&root, slot);
    expect(slot->state == SLOT_STANDING, "state %u", slot->state);
    end();
}

TEST(an_interpreter_that_cannot_be_forked_ends_only_a_sandbox_that_is_being_built)
{
    struct build_ready ready = { .walls = 1 };
    begin(SPAWN_FORKED);
    report(BUILD_READY, &ready, sizeof ready, INTERPRETER_ENDS);
    expect(interpreters == 1 && slot->state == SLOT_LEAVING && slot->failed, "state %u",
           slot->state);
    end();

    begin(SPAWN_FORKED);
    slot->state = SLOT_STANDING;
    report(BUILD_READY, &ready, sizeof ready, INTERPRETER_ENDS);
    expect(interpreters == 1 && slot->state == SLOT_STANDING && !slot->failed, "state %u",
           slot->state);
    expect(slot->ends[0] == -1, "its ends are closed: init reads that");
    end();

    begin(SPAWN_FORKED);
    slot->state = SLOT_LEAVING;
    report(BUILD_READY, &ready, sizeof ready, INTERPRETER_ENDS);
    expect(interpreters == 0, "one that is ending takes no interpreter");
    end();
}

TESTS(CASE(a_ready_sandbox_is_handed_over_with_its_descriptors),
      CASE(a_report_that_is_wrong_ends_the_sandbox),
      CASE(a_report_waits_for_that_of_the_fork_server),
      CASE(an_interpreter_that_cannot_be_forked_ends_only_a_sandbox_that_is_being_built))
