/* requests.c - everything that the unprivileged side can ask of root.
 *
 * What must hold for any request, no matter which process sent it:
 *   - a sandbox is cloned from the fork server of a template, a directory of the folder given on
 * the command line, and sees no other path of the host (take_template; template_root.c);
 *   - it gets a user id and a control group that no other sandbox has now (slots.c, by lock);
 *   - each number lies within the bounds of limits.def (limits_are_sound), whatever gloveboxd
 * checked;
 *   - its filter is one of those that were loaded at start, never bytes of a request (main.c);
 *   - a request touches no slot but the one it names, and only in its own generation (slot_at). */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "model/ids.h"
#include "model/limits.h"
#include "spawner/spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The ceilings, compiled from the same table that all programs use. */
static const struct ceiling {
    const char *name;
    size_t field, size;
    uint64_t min, max;
} ceilings[] = {
#define CEILING(limit, field, min, max)                                                          \
    { #limit, offsetof(struct spawn_build, field), sizeof((struct spawn_build *) 0)->field, min, \
      max },
#define LIMIT(name, unit, start, min, max, text) CEILING_##name(min, max)
#define CEILING_wall(min, max)
#define CEILING_cpu(min, max)
#define CEILING_output(min, max)
#define CEILING_artifacts(min, max)
#define CEILING_artifact_files(min, max)
#define CEILING_cpus(min, max)            CEILING(cpus, cpus_milli, min, max)
#define CEILING_memory(min, max)          CEILING(memory, memory_bytes, min, max)
#define CEILING_processes(min, max)       CEILING(processes, processes, min, max)
#define CEILING_disk(min, max)            CEILING(disk, disk_bytes, min, max)
#define CEILING_inodes(min, max)          CEILING(inodes, inodes, min, max)
#define CEILING_disk_read_rate(min, max)  CEILING(disk_read_rate, disk_read_rate, min, max)
#define CEILING_disk_write_rate(min, max) CEILING(disk_write_rate, disk_write_rate, min, max)
#define CEILING_open_files(min, max)      CEILING(open_files, open_files, min, max)
#include "model/limits.def"
};

static int limits_are_sound(const struct spawn_build *build, error *err)
{
    for_each(row, ceilings) {
        uint64_t value = 0;
        memcpy(&value, (const char *) build + row->field, row->size); /* little-endian hosts only */
        if (value < row->min || value > row->max)
            return fail(err, ERR_LIMIT, "%s must be %llu to %llu, not %llu", row->name,
                        (unsigned long long) row->min, (unsigned long long) row->max,
                        (unsigned long long) value);
    }
    return 0;
}

static int request_is_sound(const struct spawner *spawner, const struct spawn_build *build,
                            error *err)
{
    if (build->template >= SPAWN_TEMPLATES_MAX || spawner->templates[build->template].directory < 0)
        return fail(err, ERR_PROTOCOL, "template %u does not exist", build->template);
    if (build->network >= SPAWN_NETWORK_KINDS || build->start >= SPAWN_STARTS)
        return fail(err, ERR_PROTOCOL, "network %u or start %u does not exist", build->network,
                    build->start);
    if (build->start == SPAWN_FORKED &&
        (spawner->python < 0 || build->zygote >= spawner->templates[build->template].sets))
        return fail(err, ERR_PROTOCOL, "template %u has no zygote %u", build->template,
                    build->zygote);
    return limits_are_sound(build, err);
}

void tell_failed(struct spawner *spawner, uint64_t request, const error *cause)
{
    spawner->is_swept = groups_were_swept(spawner);
    struct spawn_built built = { .request = request, .err = *cause };
    error unheard;
    (void) packet_send(spawner->daemon, SPAWN_BUILT, &built, sizeof built, NULL, 0, &unheard);
}

void build_failed(struct spawner *spawner, struct slot *slot, const error *cause)
{
    if (slot->state == SLOT_BUILDING) {
        slot->failed = true;
        slot->cause = *cause;
    }
    slot_leave(spawner, slot);
}

/* What the fork server needs to know, and nothing more. */
static struct build_sandbox order_for(const struct spawner *spawner, const struct slot *slot,
                                      const struct spawn_build *build, unsigned groups)
{
    uint32_t number = slot_number(spawner, slot);
    uint32_t outer = (uint32_t) (HOST_ID_SANDBOXES - HOST_ID_BASE) + number;
    if (spawner->disabled_walls & (1ULL << WALL_unique_uid))
        outer = (uint32_t) (HOST_ID_SANDBOXES - HOST_ID_BASE);
    return (struct build_sandbox){
        .slot = number,
        .generation = slot->generation,
        .agent_outer_id = spawner->unprivileged ? 0 : outer,
        .network = build->network,
        .start = build->start,
        .groups = groups,
        .open_files = build->open_files,
        .disabled_walls_low = (uint32_t) spawner->disabled_walls,
        .tenant = build->tenant,
        .processes = processes_backstop(spawner, build),
        .disk_bytes = build->disk_bytes,
        .inodes = build->inodes,
        .route = build->route,
    };
}

/* Descriptors in the order of BUILD_SANDBOX. Gives how many there are. */
static unsigned list_descriptors(const struct spawner *spawner, const struct slot *slot, int inside,
                                 int report, int *ret_fds)
{
    unsigned groups = slot->procs_count, taken = 0;
    ret_fds[0] = inside;
    ret_fds[1] = report;
    for (unsigned i = 0; i < spawner->root_count; i++)
        if (slot->groups & (1U << spawner->roots[i].kind)) {
            ret_fds[2 + taken] = spawner->roots[i].holders;
            ret_fds[2 + groups + taken] = slot->procs[taken];
            taken++;
        }
    return 2 + 2 * groups;
}

static int order_sandbox(struct spawner *spawner, struct slot *slot, error *err)
{
    const struct spawn_build *build = &slot->build;
    if (make_leaves(spawner, slot, build, err) < 0)
        return -1;

    int inside[2], report[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inside) < 0)
        return fail_os(err, "make a stream for a sandbox");
    slot->inside = inside[0];
    auto_fd agent_theirs = inside[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, report) < 0)
        return fail_os(err, "make a socket for a sandbox");
    slot->report = report[0];
    auto_fd report_theirs = report[1];

    int fds[2 + 2 * GROUPS];
    unsigned count = list_descriptors(spawner, slot, agent_theirs, report_theirs, fds);
    struct build_sandbox order = order_for(spawner, slot, build, slot->procs_count);
    /* EPIPE: the fork server has ended. Its last message, which is read next, says why:
     * fork_server_speaks(). */
    if (packet_send(spawner->templates[build->template].fork_server_socket, BUILD_SANDBOX, &order,
                    sizeof order, fds, count, err) < 0 &&
        err->os != EPIPE)
        return under(err, "order a sandbox");
    return watch(spawner, slot->report, WATCH_REPORT, (uint32_t) (slot - spawner->slots), err);
}

/* Takes a slot and orders its sandbox; gives the slot back if that fails. */
static int begin_sandbox(struct spawner *spawner, const struct spawn_build *build, error *err)
{
    if (request_is_sound(spawner, build, err) < 0)
        return -1;
    if (spawner->templates[build->template].fork_server == 0 &&
        fork_server_start(spawner, build->template, err) < 0)
        return -1;
    struct slot *slot = slot_take(spawner);
    if (!slot)
        return fail(err, ERR_BUSY, "all %u sandboxes are in use", spawner->slot_count);
    if (slot->build.tenant != build->tenant)
        drop_kept_leaves(spawner, slot);
    slot->request = build->request;
    slot->template = build->template;
    slot->build = *build;
    slot->until_ms = now_ms() + SPAWN_BUILD_MS;
    if (order_sandbox(spawner, slot, err) == 0)
        return 0;
    slot_leave(spawner, slot);
    return -1;
}

/* SPAWN_BUILD. A failure is answered by SPAWN_BUILT with its cause: the request was valid. */
static int start_sandbox(struct spawner *spawner, struct packet *packet, error *err)
{
    struct spawn_build build;
    memcpy(&build, packet->body, sizeof build);
    if (begin_sandbox(spawner, &build, err) < 0)
        tell_failed(spawner, build.request, err);
    return 0;
}

/* Everything that gloveboxd needs goes to it in one message. */
static int hand_over(struct spawner *spawner, struct slot *slot, error *err)
{
    int fds[2 + GROUPS] = { slot->inside, slot->init };
    unsigned count = 2;
    int done = 0;
    for (unsigned kind = 0; kind < GROUPS; kind++)
        if (slot->groups & (1U << kind)) {
            fds[count] = open_leaf(spawner, slot, (enum group_kind) kind);
            if (fds[count] < 0)
                done = fail_os(err, "open control group of slot %u", slot_number(spawner, slot));
            count++;
        }
    /* A limit that was not asked for is listed neither as a wall nor as degraded. */
    bool has_rate = slot->build.disk_read_rate || slot->build.disk_write_rate;
    uint64_t unasked = has_rate ? 0 : 1ULL << WALL_cgroup_io;
    struct spawn_built built = {
        .request = slot->request,
        .slot = slot_number(spawner, slot),
        .generation = slot->generation,
        .walls = (slot->walls | walls_of_groups(spawner)) & ~slot->degraded &
                 ~spawner->disabled_walls & ~unasked,
        .groups = slot->groups,
    };
    if (spawner->unprivileged)
        built.walls &= ~(1ULL << WALL_unique_uid);
    built.degraded = ((1ULL << WALLS) - 1) & ~built.walls & ~unasked;
    if (done == 0)
        done = packet_send(spawner->daemon, SPAWN_BUILT, &built, sizeof built, fds, count, err);
    for (unsigned i = 2; i < count; i++)
        close_fd(&fds[i]);
    return done;
}

/* The sandbox is built, with its interpreter if one was asked for: hands it to gloveboxd. */
void sandbox_stands(struct spawner *spawner, struct slot *slot)
{
    error err;
    if (hand_over(spawner, slot, &err) < 0) {
        build_failed(spawner, slot, &err);
        return;
    }
    close_fd(&slot->inside);
    slot->inside = -1;
    slot_close_ends(slot);
    slot->state = SLOT_STANDING;
}

/* Reads BUILD_READY: init has built the sandbox, or says which step failed. */
static int read_report(struct slot *slot, struct packet *packet, int came, error *err)
{
    struct build_ready ready;
    if (came != PACKET_CAME || packet->kind != BUILD_READY || packet->size != sizeof ready)
        return fail(err, ERR_UNAVAILABLE, "init ended before the sandbox was built");
    memcpy(&ready, packet->body, sizeof ready);
    ready.err.text[sizeof ready.err.text - 1] = '\0';
    *err = ready.err;
    if (err->code != ERR_NONE)
        return -1;
    unsigned ends = slot->build.start == SPAWN_FORKED ? INTERPRETER_ENDS : 0;
    if (packet->fds != ends || ((ready.walls | ready.degraded) >> WALLS) != 0)
        return fail(err, ERR_PROTOCOL, "init reported with %u descriptors, not %u", packet->fds,
                    ends);
    for (unsigned i = 0; i < ends; i++)
        slot->ends[i] = packet_take_fd(packet, i);
    slot->walls = ready.walls;
    slot->degraded |= ready.degraded;
    return 0;
}

void sandbox_reports(struct spawner *spawner, struct slot *slot)
{
    struct packet packet;
    error err;
    /* Init's report may arrive before that of the fork server (BUILD_CLONED). It then stays in the
     * socket. */
    if (slot->state == SLOT_BUILDING && slot->init < 0)
        return;
    bool stands = slot->state == SLOT_STANDING;
    int came = packet_receive(slot->report, &packet, &err);
    if (came == PACKET_NONE || (slot->state != SLOT_BUILDING && !stands))
        return;
    int done = read_report(slot, &packet, came, &err);
    if (came == PACKET_CAME)
        packet_done(&packet);
    (void) epoll_ctl(spawner->epoll, EPOLL_CTL_DEL, slot->report, NULL);
    if (done == 0 && slot->build.start == SPAWN_FORKED)
        done = fork_interpreter(spawner, slot, &err);
    else if (done == 0)
        sandbox_stands(spawner, slot);
    if (stands)
        slot_close_ends(slot); /* if that failed, init reads the end of its control socket */
    else if (done < 0)
        build_failed(spawner, slot, &err);
}

/* Finds the slot of a request. Not one that is being built: gloveboxd does not know it yet. */
static struct slot *slot_named_by(struct spawner *spawner, const struct packet *packet, error *err)
{
    struct spawn_slot named;
    memcpy(&named, packet->body, sizeof named);
    struct slot *slot = slot_at(spawner, named.slot, named.generation);
    if (slot && slot->state != SLOT_BUILDING)
        return slot;
    (void) fail(err, ERR_PROTOCOL, "slot %u, generation %u does not exist", named.slot,
                named.generation);
    return NULL;
}

/* SPAWN_RELEASE */
static int end_sandbox(struct spawner *spawner, struct packet *packet, error *err)
{
    struct slot *slot = slot_named_by(spawner, packet, err);
    if (!slot)
        return -1;
    slot->asked_to_leave = true;
    slot_leave(spawner, slot);
    return 0;
}

/* SPAWN_FREEZE, SPAWN_THAW: the leaf, without init. A slot that is ending is not changed. */
static int pause_sandbox(struct spawner *spawner, struct packet *packet, error *err)
{
    struct slot *slot = slot_named_by(spawner, packet, err);
    if (!slot || slot->state != SLOT_STANDING)
        return slot ? 0 : -1;
    slot->is_frozen |= packet->kind == SPAWN_FREEZE; /* also if it could not be thawed now */
    return set_frozen(spawner, slot, packet->kind == SPAWN_FREEZE, err);
}

/* SPAWN_IDLE, SPAWN_USUAL: the group above the leaf. */
static int schedule_tenant(struct spawner *spawner, struct packet *packet, error *err)
{
    const struct slot *slot = slot_named_by(spawner, packet, err);
    auto_fd leaf = slot ? open_leaf(spawner, slot, GROUP_CPU) : -1;
    (void) write_file(leaf, "../cpu.idle", packet->kind == SPAWN_IDLE ? "1" : "0");
    return slot ? 0 : -1;
}

/* SPAWN_INJECT. One at a time: one report is received for each request. */
static int inject_interpreter(struct spawner *spawner, struct packet *packet, error *err)
{
    const struct slot *slot = slot_named_by(spawner, packet, err); /* it begins with its slot */
    if (!slot || slot->state != SLOT_STANDING || slot->build.start != SPAWN_FORKED)
        return fail(err, ERR_PROTOCOL, "there is no sandbox that can get an interpreter");
    /* Fails while another is under way, and then init has not been asked. */
    if (watch(spawner, slot->report, WATCH_REPORT, (uint32_t) (slot - spawner->slots), err) < 0)
        return under(err, "one interpreter at a time");
    return packet_send(slot->report, BUILD_EXPECT, packet->body, packet->size, NULL, 0, err);
}

/* The descriptors must be a directory that has a name in the folder of templates (the operator may
 * have put a link to it there), and sealed memory. */
static bool is_of_folder(const struct spawner *spawner, const struct packet *packet)
{
    struct stat given, named;
    const struct dirent *entry;
    if (packet->fds != 2 || fcntl(packet->fd[1], F_GET_SEALS) < F_SEAL_WRITE ||
        fstat(packet->fd[0], &given) < 0 || !S_ISDIR(given.st_mode))
        return false;
    rewinddir(spawner->folder);
    while ((entry = readdir(spawner->folder))) /* NOLINT(concurrency-mt-unsafe): one thread */
        if (entry->d_name[strspn(entry->d_name, ".")] != '\0' && /* "." and ".." */
            fstatat(dirfd(spawner->folder), entry->d_name, &named, 0) == 0 &&
            named.st_dev == given.st_dev && named.st_ino == given.st_ino)
            return true;
    return false;
}

/* SPAWN_TEMPLATE. Template 0 is the one that most runs use: its fork server starts at once. */
static int take_template(struct spawner *spawner, struct packet *packet, error *err)
{
    struct spawn_template asked;
    memcpy(&asked, packet->body, sizeof asked);
    if (asked.template >= SPAWN_TEMPLATES_MAX || asked.sets > SPAWN_SETS_MAX ||
        (packet->fds > 0 && !is_of_folder(spawner, packet)))
        return fail(err, ERR_PROTOCOL, "template %u is not in the folder", asked.template);
    struct template *template = &spawner->templates[asked.template];
    fork_server_lost(spawner, asked.template, NULL);
    close_fd(&template->directory);
    close_fd(&template->modules);
    template->directory = packet_take_fd(packet, 0);
    template->modules = packet_take_fd(packet, 1);
    template->sets = asked.sets;
    return asked.template == 0 && template->modules >= 0 ? fork_server_start(spawner, 0, err) : 0;
}

/* clang-format off */
static const struct request_handler {
    size_t size;  /* bytes of the request, exactly */
    unsigned fds; /* at most */
    int (*answer)(struct spawner *, struct packet *, error *);
} handlers[] = {
    [SPAWN_BUILD]    = { sizeof(struct spawn_build),    0, start_sandbox      },
    [SPAWN_RELEASE]  = { sizeof(struct spawn_slot),     0, end_sandbox        },
    [SPAWN_FREEZE]   = { sizeof(struct spawn_slot),     0, pause_sandbox      },
    [SPAWN_THAW]     = { sizeof(struct spawn_slot),     0, pause_sandbox      },
    [SPAWN_INJECT]   = { sizeof(struct spawn_inject),   0, inject_interpreter },
    [SPAWN_TEMPLATE] = { sizeof(struct spawn_template), 2, take_template      },
    [SPAWN_IDLE]     = { sizeof(struct spawn_slot),     0, schedule_tenant    },
    [SPAWN_USUAL]    = { sizeof(struct spawn_slot),     0, schedule_tenant    },
};
/* clang-format on */

int answer(struct spawner *spawner, struct packet *packet, error *err)
{
    if (packet->kind >= COUNT_OF(handlers) || !handlers[packet->kind].answer)
        return fail(err, ERR_PROTOCOL, "request %u does not exist", packet->kind);
    const struct request_handler *handler = &handlers[packet->kind];
    if (packet->size != handler->size || packet->fds > handler->fds)
        return fail(err, ERR_PROTOCOL, "request %u is malformed", packet->kind);
    return handler->answer(spawner, packet, err);
}
