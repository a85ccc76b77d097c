/* requests_test.c - a test for each invariant at the head of requests.c, with its name. requests.c
 * and slots.c are the real ones; this test holds the other ends of the fork servers' sockets. */
#include "base/test.h"

#include "base/clock.h"
#include "base/table.h"
#include "model/ids.h"
#include "model/limits.h"
#include "spawner/fakes_test.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 4, FIRST = 64, TEMPLATES = FAKE_TEMPLATES, FREE_SLOT = 2, BUILDING_SLOT = 3 };

static struct spawner root;
static int daemon_side, fork_server_sides[TEMPLATES], report_side;
static int first_fd;                                      /* of the descriptors that a test opens */
static unsigned char before[SLOTS * sizeof(struct slot)]; /* copy of all slots before a request */

/* Slots 0 and 1 are ready, 2 is free, 3 is being built; 4 is ready and belongs to another
 * instance. */
static void begin(void)
{
    if (root.slot_count > 0)
        (void) close_range(first_fd, UINT_MAX, 0);
    else
        first_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    memset(&root, 0, sizeof root);
    memset(started, 0, sizeof started);
    frozen = thawed = 0;
    frozen_slot = NULL;
    root.python = -1;
    root.first_slot = FIRST;
    root.slot_count = SLOTS;
    root.epoll = epoll_create1(EPOLL_CLOEXEC);
    open_pair(&root.daemon, &daemon_side);
    for (unsigned i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        root.templates[i] = (struct template){ -1, -1, .fork_server_socket = -1 };
    for (unsigned i = 0; i < TEMPLATES; i++) {
        open_pair(&root.templates[i].fork_server_socket, &fork_server_sides[i]);
        root.templates[i].directory = fcntl(daemon_side, F_DUPFD_CLOEXEC, 0);
    }
    for (unsigned i = 0; i <= SLOTS; i++) {
        root.slots[i] = (struct slot){ .state = SLOT_STANDING,
                                       .generation = 5 + i,
                                       .init = -1,
                                       .report = -1,
                                       .inside = -1,
                                       .until_ms = 17,
                                       .build.start = SPAWN_FORKED };
        memset(root.slots[i].ends, -1, sizeof root.slots[i].ends);
    }
    open_pair(&root.slots[0].report, &report_side);
    root.slots[FREE_SLOT].state = SLOT_FREE;
    root.slots[BUILDING_SLOT].state = SLOT_BUILDING;
}

static int send_to_root(uint32_t kind, const void *body, size_t size, error *err)
{
    struct packet packet = { .kind = kind, .size = size };
    memcpy(packet.body, body, size);
    return answer(&root, &packet, err);
}

static size_t size_of(uint32_t kind)
{
    if (kind == SPAWN_BUILD)
        return sizeof(struct spawn_build);
    if (kind == SPAWN_TEMPLATE)
        return sizeof(struct spawn_template);
    return kind == SPAWN_INJECT ? sizeof(struct spawn_inject) : sizeof(struct spawn_slot);
}

/* A request that passes every check. */
static struct spawn_build sound_build(void)
{
    return (struct spawn_build){ .request = 9,
                                 .open_files = 256,
                                 .memory_bytes = 64 << 20,
                                 .processes = 16,
                                 .disk_bytes = 16 << 20,
                                 .inodes = 1024,
                                 .cpus_milli = 500 };
}

/* Gives the order that a fork server got; returns false if it got none. */
static bool take_order(unsigned template, struct build_sandbox *ret_order)
{
    struct packet packet;
    error err;
    if (packet_receive(fork_server_sides[template], &packet, &err) != PACKET_CAME)
        return false;
    require(packet.kind == BUILD_SANDBOX && packet.size == sizeof *ret_order, "kind %u, %zu bytes",
            packet.kind, packet.size);
    memcpy(ret_order, packet.body, sizeof *ret_order);
    packet_done(&packet);
    return true;
}

/* Returns the text of the refusal of a build; "" if there was no answer. */
static error take_refusal(void)
{
    struct packet packet;
    struct spawn_built built = { 0 };
    error err;
    if (packet_receive(daemon_side, &packet, &err) == PACKET_CAME) {
        require(packet.kind == SPAWN_BUILT && packet.size == sizeof built && packet.fds == 0,
                "kind %u with %u descriptors", packet.kind, packet.fds);
        memcpy(&built, packet.body, sizeof built);
        expect(built.request == 9, "answers request %llu", (unsigned long long) built.request);
    }
    return built.err;
}

static bool slots_are_as_before(unsigned first)
{
    const unsigned char *now = (const unsigned char *) root.slots;
    size_t skipped = first * sizeof(struct slot);
    return memcmp(before + skipped, now + skipped, sizeof before - skipped) == 0;
}

/* Checks that the request is refused with this code, and that no slot or fork server has changed or
 * got an order. */
static void expect_refused(const struct spawn_build *build, enum error_code code, const char *word)
{
    struct build_sandbox order;
    error err = { 0 };
    memcpy(before, root.slots, sizeof before);
    unsigned servers = started[0] + started[1];
    expect(send_to_root(SPAWN_BUILD, build, sizeof *build, &err) == 0, "%s", err.text);
    error refusal = take_refusal();
    expect(refusal.code == (int32_t) code && strstr(refusal.text, word), "%s: error %d '%s'", word,
           refusal.code, refusal.text);
    expect(!take_order(0, &order) && !take_order(1, &order), "%s: a sandbox was ordered", word);
    expect(started[0] + started[1] == servers, "%s: a fork server was started", word);
    expect(slots_are_as_before(0), "%s: a slot has changed", word);
}

TEST(a_sandbox_is_cloned_from_the_fork_server_of_a_template_that_is_there)
{
    struct build_sandbox order;
    error err = { 0 };
    begin();
    struct spawn_build build = sound_build();
    for (uint32_t i = 0; i < TEMPLATES; i++) {
        build.template = i;
        require(send_to_root(SPAWN_BUILD, &build, sizeof build, &err) == 0, "%s", err.text);
        expect(take_order(i, &order) && !take_order(1 - i, &order), "template %u", i);
        expect(started[i] == 1, "its fork server was started %u times", started[i]);
        begin();
    }
    static const uint32_t unknown[] = { TEMPLATES, TEMPLATES + 1, SPAWN_TEMPLATES_MAX, UINT32_MAX };
    for_each(index, unknown) {
        build.template = *index;
        expect_refused(&build, ERR_PROTOCOL, "template");
    }
    build = sound_build();
    build.start = SPAWN_FORKED; /* a zygote that the template does not have */
    expect_refused(&build, ERR_PROTOCOL, "zygote");
    root.python = 0;
    root.templates[0].sets = 1;
    build.zygote = 1;
    expect_refused(&build, ERR_PROTOCOL, "zygote 1");
}

TEST(a_sandbox_gets_a_user_id_and_a_control_group_of_its_own)
{
    struct build_sandbox orders[SLOTS];
    error err = { 0 };
    begin();
    memset(root.slots, 0, sizeof root.slots);
    struct spawn_build build = sound_build();
    int64_t until_ms = now_ms() + SPAWN_BUILD_MS;
    for (unsigned i = 0; i < SLOTS; i++) {
        require(send_to_root(SPAWN_BUILD, &build, sizeof build, &err) == 0, "%s", err.text);
        require(take_order(0, &orders[i]), "an order: %s", take_refusal().text);
        expect(root.slots[orders[i].slot - FIRST].until_ms >= until_ms, "it has 10 s");
        expect(orders[i].slot - FIRST < SLOTS, "slot %u is not of this instance", orders[i].slot);
        expect(orders[i].agent_outer_id ==
                   (uint32_t) (HOST_ID_SANDBOXES - HOST_ID_BASE) + orders[i].slot,
               "user id %u for slot %u", orders[i].agent_outer_id, orders[i].slot);
        for (unsigned k = 0; k < i; k++)
            expect(orders[k].slot != orders[i].slot, "slot %u is given twice", orders[i].slot);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        root.slots[i].state = i == 0 ? SLOT_LEAVING : SLOT_STANDING;
    expect_refused(&build, ERR_BUSY, "all 4 sandboxes are in use");

    root.slots[0].state = SLOT_FREE;
    uint32_t generation = root.slots[0].generation;
    require(send_to_root(SPAWN_BUILD, &build, sizeof build, &err) == 0, "%s", err.text);
    expect(take_order(0, &orders[0]) && orders[0].slot == FIRST, "the slot that is free");
    expect(orders[0].generation == generation + 1, "generation %u after %u", orders[0].generation,
           generation);
}

/* A second list of all fields: it shows a field that requests.c does not check. */
static const struct bound {
    enum limit_id limit;
    size_t field, size;
} bounds[] = {
#define BOUND(limit, field)                                 \
    {                                                       \
        LIMIT_##limit, offsetof(struct spawn_build, field), \
            sizeof((struct spawn_build *) 0)->field         \
    }
    BOUND(cpus, cpus_milli),
    BOUND(memory, memory_bytes),
    BOUND(processes, processes),
    BOUND(disk, disk_bytes),
    BOUND(inodes, inodes),
    BOUND(disk_read_rate, disk_read_rate),
    BOUND(disk_write_rate, disk_write_rate),
    BOUND(open_files, open_files),
};

/* A valid request apart from one number. */
static struct spawn_build build_with(const struct bound *bound, uint64_t value)
{
    struct spawn_build build = sound_build();
    memcpy((char *) &build + bound->field, &value, bound->size); /* little-endian hosts only */
    return build;
}

static void expect_taken(const struct bound *bound, uint64_t value)
{
    struct build_sandbox order;
    error err = { 0 };
    begin();
    struct spawn_build build = build_with(bound, value);
    expect(send_to_root(SPAWN_BUILD, &build, sizeof build, &err) == 0 && take_order(0, &order),
           "%s %llu is refused", limit_rows[bound->limit].name, (unsigned long long) value);
}

TEST(each_number_lies_within_the_bounds_of_limits_def)
{
    for_each(bound, bounds) {
        const struct limit_row *row = &limit_rows[bound->limit];
        expect_taken(bound, row->min);
        expect_taken(bound, row->max);
        begin();
        const uint64_t bad[] = { row->min - 1, row->max + 1, UINT64_MAX };
        for_each(value, bad) {
            struct spawn_build build = build_with(bound, *value);
            expect_refused(&build, ERR_LIMIT, row->name);
        }
    }
}

TEST(a_filter_is_one_that_was_loaded_at_the_start_and_never_bytes_that_come_later)
{
    error err = { 0 };
    begin();
    struct spawn_build build = sound_build();
    for (build.network = SPAWN_NETWORK_KINDS; build.network < SPAWN_NETWORK_KINDS + 3;
         build.network++)
        expect_refused(&build, ERR_PROTOCOL, "network");
    build = sound_build();
    build.start = SPAWN_STARTS;
    expect_refused(&build, ERR_PROTOCOL, "start");

    memcpy(before, root.slots, sizeof before);
    for (uint32_t kind = SPAWN_BUILD; kind <= SPAWN_USUAL; kind++)
        for (int wrong = 0; wrong < 3; wrong++) {
            struct packet packet = { .kind = kind, .size = size_of(kind), .fds = wrong == 0 };
            packet.size += wrong == 1;
            packet.size -= wrong == 2;
            struct spawn_slot named = { FIRST, root.slots[0].generation };
            memcpy(packet.body, &named, sizeof named);
            if (kind == SPAWN_BUILD)
                memcpy(packet.body, &(struct spawn_build[]){ sound_build() }, sizeof build);
            expect(answer(&root, &packet, &err) < 0 && err.code == ERR_PROTOCOL,
                   "request %u with %u descriptors and %zu bytes is taken", kind, packet.fds,
                   packet.size);
        }
    for (uint32_t kind = 0; kind < 64; kind++)
        if (kind < SPAWN_BUILD || kind > SPAWN_USUAL)
            expect(send_to_root(kind, &build, sizeof build, &err) < 0, "request %u exists", kind);
    expect(slots_are_as_before(0) && frozen + thawed == 0, "a refused request has changed a slot");
}

/* Gives the message that the init of slot 0 gets; returns false if it gets none. */
static bool init_is_told(void)
{
    struct packet packet;
    error err;
    return packet_receive(report_side, &packet, &err) == PACKET_CAME;
}

static const uint32_t slot_requests[] = { SPAWN_RELEASE, SPAWN_FREEZE, SPAWN_THAW,
                                          SPAWN_IDLE,    SPAWN_USUAL,  SPAWN_INJECT };

static int ask_of_slot(uint32_t kind, uint32_t slot, uint32_t generation, error *err)
{
    struct spawn_inject inject = { slot, generation, 1 };
    return send_to_root(kind, &inject, size_of(kind), err);
}

static void expect_untouched(uint32_t kind, uint32_t slot, uint32_t generation)
{
    error err = { 0 };
    memcpy(before, root.slots, sizeof before);
    expect(ask_of_slot(kind, slot, generation, &err) < 0 && err.code == ERR_PROTOCOL,
           "request %u is taken for slot %u, generation %u", kind, slot, generation);
    expect(slots_are_as_before(0) && frozen + thawed == 0,
           "request %u for slot %u, generation %u has changed a slot", kind, slot, generation);
    expect(!init_is_told(), "request %u reaches the init of slot 0", kind);
}

TEST(a_request_with_a_stale_generation_touches_no_slot)
{
    begin();
    const uint32_t now = root.slots[0].generation;
    const uint32_t others[] = { now - 1, now + 1, 0, UINT32_MAX, now | 0x80000000 };
    for_each(kind, slot_requests)
        for_each(generation, others)
            expect_untouched(*kind, FIRST, *generation);
}

TEST(a_request_touches_no_slot_but_the_one_it_names)
{
    begin();
    for_each(kind, slot_requests) {
        expect_untouched(*kind, FIRST - 1, root.slots[0].generation);
        expect_untouched(*kind, FIRST + SLOTS, root.slots[SLOTS].generation);
        expect_untouched(*kind, UINT32_MAX, root.slots[0].generation);
        expect_untouched(*kind, FIRST + FREE_SLOT, root.slots[FREE_SLOT].generation);
        expect_untouched(*kind, FIRST + BUILDING_SLOT, root.slots[BUILDING_SLOT].generation);
    }
    for_each(kind, slot_requests) {
        error err = { 0 };
        begin();
        memcpy(before, root.slots, sizeof before);
        expect(ask_of_slot(*kind, FIRST, root.slots[0].generation, &err) == 0, "request %u: %s",
               *kind, err.text);
        expect(slots_are_as_before(1), "request %u for slot 0 has changed another", *kind);
        expect((root.slots[0].state == SLOT_LEAVING) == (*kind == SPAWN_RELEASE),
               "request %u: state %u", *kind, root.slots[0].state);
        if (*kind == SPAWN_RELEASE) /* a slot that is ending is left alone */
            expect(ask_of_slot(SPAWN_FREEZE, FIRST, root.slots[0].generation, &err) == 0, "%s",
                   err.text);
        expect(root.slots[0].is_frozen == (*kind == SPAWN_FREEZE), "request %u: is_frozen", *kind);
        expect(frozen == (*kind == SPAWN_FREEZE) && thawed == (*kind == SPAWN_THAW) &&
                   (!frozen_slot || frozen_slot == &root.slots[0]),
               "request %u: %u frozen, %u thawed", *kind, frozen, thawed);
        expect(*kind == SPAWN_RELEASE || init_is_told() == (*kind == SPAWN_INJECT),
               "request %u and the init of slot 0", *kind);
    }
}

TEST(the_group_above_a_sandbox_is_scheduled_as_idle)
{
    static const struct {
        uint32_t kind;
        const char *text;
    } rows[] = { { SPAWN_IDLE, "1" }, { SPAWN_USUAL, "0" } };
    for_each(row, rows) {
        error err = { 0 };
        begin();
        opened_slot = NULL;
        leaf_to_open = root.roots[0].directory;
        *written_name = *written_text = '\0';
        expect(ask_of_slot(row->kind, FIRST, root.slots[0].generation, &err) == 0, "%s", err.text);
        expect(opened_slot == &root.slots[0] && opened_kind == GROUP_CPU, "the leaf of cpu");
        expect(strcmp(written_name, "../cpu.idle") == 0 && strcmp(written_text, row->text) == 0,
               "'%s' in '%s'", written_text, written_name);
        *written_name = '\0';
        expect(ask_of_slot(row->kind, FIRST, root.slots[0].generation - 1, &err) < 0 &&
                   *written_name == '\0',
               "a stale request %u", row->kind);
    }
    leaf_to_open = -1;
}

static ino_t inode_of(int fd)
{
    struct stat about = { 0 };
    require(fstat(fd, &about) == 0, "descriptor %d", fd);
    return about.st_ino;
}

/* Descriptors: the stream into the sandbox and the report, then a file of processes for each root,
 * then one for each leaf. */
TEST(a_request_that_does_not_exist_or_is_malformed_is_refused)
{
    static const uint32_t unknown[] = {
        0, SPAWN_HELLO, SPAWN_BUILD - 1, SPAWN_TEMPLATE + 1, SPAWN_TEMPLATE + 2, UINT32_MAX
    };
    static const unsigned char body[sizeof(struct spawn_build) + 1];
    error err = { 0 };
    begin();
    for_each(kind, unknown)
        expect(send_to_root(*kind, body, sizeof(struct spawn_slot), &err) < 0 &&
                   err.code == ERR_PROTOCOL,
               "%u is answered", *kind);
    for (uint32_t kind = SPAWN_BUILD; kind <= SPAWN_USUAL; kind++) {
        struct packet with_fds = { .kind = kind, .size = size_of(kind), .fds = 3 };
        expect(send_to_root(kind, body, size_of(kind) - 1, &err) < 0 && err.code == ERR_PROTOCOL,
               "%u is answered with a byte less", kind);
        expect(send_to_root(kind, body, size_of(kind) + 1, &err) < 0 && err.code == ERR_PROTOCOL,
               "%u is answered with a byte more", kind);
        expect(answer(&root, &with_fds, &err) < 0 && err.code == ERR_PROTOCOL,
               "%u is answered with three descriptors", kind);
    }
}

TEST(a_fork_server_gets_the_files_of_each_control_group_in_order)
{
    enum { ROOTS = 2 };
    struct spawn_build build = sound_build();
    struct packet packet;
    error err = { 0 };
    begin();
    for (unsigned i = 0; i < ROOTS; i++)
        root.roots[i] = (struct group_root){ .kind = i == 0 ? 0 : GROUPS - 1,
                                             .holders = memfd_create("holders", MFD_CLOEXEC),
                                             .directory = memfd_create("leaf", MFD_CLOEXEC) };
    root.root_count = ROOTS;
    require(send_to_root(SPAWN_BUILD, &build, sizeof build, &err) == 0, "%s", err.text);
    require(packet_receive(fork_server_sides[0], &packet, &err) == PACKET_CAME, "no order");
    expect(packet.fds == 2 + 2 * ROOTS, "%u descriptors", packet.fds);
    for (unsigned i = 0; i < ROOTS; i++)
        expect(inode_of(packet.fd[2 + i]) == inode_of(root.roots[i].holders) &&
                   inode_of(packet.fd[2 + ROOTS + i]) == inode_of(root.roots[i].directory),
               "root %u", i);
    packet_done(&packet);
}

TESTS(CASE(a_request_that_does_not_exist_or_is_malformed_is_refused),
      CASE(a_fork_server_gets_the_files_of_each_control_group_in_order),
      CASE(a_sandbox_is_cloned_from_the_fork_server_of_a_template_that_is_there),
      CASE(a_sandbox_gets_a_user_id_and_a_control_group_of_its_own),
      CASE(each_number_lies_within_the_bounds_of_limits_def),
      CASE(a_filter_is_one_that_was_loaded_at_the_start_and_never_bytes_that_come_later),
      CASE(a_request_with_a_stale_generation_touches_no_slot),
      CASE(a_request_touches_no_slot_but_the_one_it_names),
      CASE(the_group_above_a_sandbox_is_scheduled_as_idle))
