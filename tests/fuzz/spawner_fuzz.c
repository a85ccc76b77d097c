/* spawner_fuzz.c - root's program under messages that nobody should send: of gloveboxd, of a
 * holder, of an init that reports, of a zygote, and their ends at any moment. Whatever came, each
 * slot is in one of its states, what was accepted lies within limits.def, every request is answered
 * once, and when all is released no descriptor is left.
 *
 * It is the whole program, main.c included for its loop. A pidfd is an eventfd here, and no process
 * is made: the linker puts __wrap_syscall() between (--wrap=syscall). */
#include <stdio.h>

#define main                 spawner_main
#define fprintf(stream, ...) (void) 0 /* a refusal is no news here */
int spawner_main(int count, char **arguments);
#include "spawner/main.c"
#undef fprintf
#undef main

#include "dice.h"

#include "model/limits.h"

#include <poll.h>
#include <stdarg.h>
#include <sys/eventfd.h>

enum { SLOTS = 6, REQUESTS = 256 };

static int daemon_side, fork_server_side; /* where the fuzzer speaks */
static int reports[SLOTS], zygote_sides[ZYGOTES_MAX];
static int known_zygotes[ZYGOTES_MAX];
static unsigned answers[REQUESTS];

long __wrap_syscall(long number, ...);

/* SIGKILL to a pidfd ends the process behind it: the descriptor becomes readable, and a second
 * signal finds nobody. */
long __wrap_syscall(long number, ...)
{
    va_list values;
    va_start(values, number);
    int fd = va_arg(values, int);
    va_end(values);
    struct pollfd process = { .fd = fd, .events = POLLIN };
    if (number != SYS_pidfd_send_signal) {
        errno = EAGAIN;
        return -1;
    }
    assert(poll(&process, 1, 0) >= 0 && !(process.revents & POLLNVAL));
    if (process.revents & POLLIN) {
        errno = ESRCH;
        return -1;
    }
    (void) eventfd_write(fd, 1);
    return 0;
}

static void forget(int *fd)
{
    close_fd(fd);
    *fd = -1;
}

/* What root says to gloveboxd is right in every case. */
static void check_answer(struct packet *packet)
{
    struct spawn_built built;
    struct spawn_slot slot;
    memcpy(&built, packet->body, sizeof built);
    memcpy(&slot, packet->body, sizeof slot);
    switch (packet->kind) {
    case SPAWN_BUILT:
        assert(packet->size == sizeof built && built.request < REQUESTS);
        assert(answers[built.request] == 1);
        answers[built.request] = 2;
        assert((built.groups >> GROUPS) == 0 && ((built.walls | built.degraded) >> WALLS) == 0);
        assert(memchr(built.err.text, '\0', sizeof built.err.text));
        assert(packet->fds ==
               (built.err.code ? 0 : 2 + (unsigned) __builtin_popcount(built.groups)));
        break;
    case SPAWN_RELEASED:
        assert(packet->size == sizeof(struct spawn_released) && packet->fds == 0);
        assert(slot.slot - spawner.first_slot < SLOTS);
        break;
    default:
        assert(packet->kind == SPAWN_LOST && packet->size == sizeof slot && packet->fds == 0);
    }
}

/* Takes what root has sent: answers, and orders with the ends that are the fuzzer's then. */
static void hear_root(void)
{
    struct packet packet;
    error err;
    while (packet_receive(daemon_side, &packet, &err) == PACKET_CAME) {
        check_answer(&packet);
        packet_done(&packet);
    }
    while (packet_receive(fork_server_side, &packet, &err) == PACKET_CAME) {
        if (packet.kind == BUILD_SANDBOX) {
            struct build_sandbox order;
            memcpy(&order, packet.body, sizeof order);
            assert(packet.size == sizeof order && packet.fds == 2 + 2 * order.groups);
            forget(&reports[order.slot - spawner.first_slot]);
            reports[order.slot - spawner.first_slot] = packet_take_fd(&packet, 1);
        } else {
            assert(packet.kind == BUILD_ZYGOTE && packet.fds == 1);
            for (unsigned i = 0; i < ZYGOTES_MAX; i++)
                if (spawner.zygotes[i].socket >= 0 &&
                    spawner.zygotes[i].socket != known_zygotes[i]) {
                    forget(&zygote_sides[i]);
                    zygote_sides[i] = packet_take_fd(&packet, 0);
                    known_zygotes[i] = spawner.zygotes[i].socket;
                    (void) fcntl(zygote_sides[i], F_SETFL, O_NONBLOCK);
                }
        }
        packet_done(&packet);
    }
    for (unsigned i = 0; i < ZYGOTES_MAX; i++) {
        if (zygote_sides[i] < 0)
            continue;
        while (packet_receive(zygote_sides[i], &packet, &err) == PACKET_CAME) {
            assert(packet.kind == ZYGOTE_FORK && packet.size == sizeof(struct zygote_fork));
            packet_done(&packet);
        }
    }
}

static void check_slots(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct slot *slot = &spawner.slots[i];
        const struct spawn_build *build = &slot->build;
        if (slot->state == SLOT_FREE)
            continue;
        assert(slot->state <= SLOT_LEAVING && slot->generation > 0);
        assert(build->template == 0 && build->network < SPAWN_NETWORK_KINDS);
        assert(build->start < SPAWN_STARTS);
        assert(build->memory_bytes >= limit_rows[LIMIT_memory].min &&
               build->memory_bytes <= limit_rows[LIMIT_memory].max);
        assert(build->processes >= limit_rows[LIMIT_processes].min &&
               build->processes <= limit_rows[LIMIT_processes].max);
        assert(build->disk_bytes <= limit_rows[LIMIT_disk].max);
        assert(build->open_files <= limit_rows[LIMIT_open_files].max);
        if (slot->state == SLOT_STANDING)
            assert(slot->init >= 0 && slot->inside < 0);
    }
}

/* One turn of the program's own loop. */
static void turn(void)
{
    struct epoll_event events[16];
    bool daemon_gone = false;
    for (int again = 0; again < 4; again++) {
        int count = epoll_wait(spawner.epoll, events, COUNT_OF(events), 0);
        for (int i = 0; i < count; i++)
            handle(&events[i], &daemon_gone);
        slots_tend(&spawner);
        zygotes_tend(&spawner);
        hear_root();
        if (spawner.templates[0].fork_server_socket < 0)
            return;
    }
    check_slots();
}

static void speak_as_daemon(struct dice *dice)
{
    static const int fds[2];
    static uint64_t request;
    struct spawn_build build = {
        .request = request % REQUESTS,
        .start = dice_byte(dice) % 2,
        .zygote = dice_byte(dice) % 2,
        .tenant = dice_byte(dice) % 8,
        .open_files = 256,
        .memory_bytes = 64 << 20,
        .processes = 16,
        .disk_bytes = 16 << 20,
        .inodes = 1024,
        .cpus_milli = 1000,
    };
    struct spawn_inject inject = { .slot = spawner.first_slot + dice_byte(dice) % SLOTS };
    inject.generation = spawner.slots[inject.slot - spawner.first_slot].generation;
    uint32_t kind;
    uint8_t what = dice_byte(dice);
    switch (what % 4) {
    case 0:
    case 1:
        dice_change(dice, (char *) &build + sizeof build.request,
                    sizeof build - sizeof build.request);
        if (answers[build.request] == 1)
            return; /* that many requests at once are not what is looked for here */
        answers[build.request] = 1;
        request++;
        send_anything(daemon_side, SPAWN_BUILD, &build, sizeof build, NULL, 0);
        break;
    case 2:
        dice_change(dice, &inject, sizeof inject);
        kind = SPAWN_RELEASE + dice_byte(dice) % 4;
        send_anything(daemon_side, kind, &inject,
                      kind == SPAWN_INJECT ? sizeof inject : sizeof(struct spawn_slot), NULL, 0);
        break;
    default:
        if (what >> 2 != SPAWN_BUILD)
            send_anything(daemon_side, what >> 2, dice->at, dice->left % 200, fds,
                          dice_byte(dice) % 3);
    }
}

static void speak_as_holder(struct dice *dice)
{
    struct build_cloned cloned = { .slot = spawner.first_slot + dice_byte(dice) % SLOTS };
    struct fork_server_ready ready = { 0 };
    int init[2] = { eventfd(0, EFD_CLOEXEC), 0 };
    cloned.generation = spawner.slots[cloned.slot - spawner.first_slot].generation;
    uint8_t what = dice_byte(dice);
    if (what % 8 == 7) {
        dice_change(dice, &ready, sizeof ready);
        send_anything(fork_server_side, FORK_SERVER_READY, &ready, sizeof ready, init, what > 200);
    } else if (what % 8 == 6) {
        send_anything(fork_server_side, what >> 3, dice->at, dice->left % 300, init, 1);
    } else {
        dice_change(dice, &cloned, sizeof cloned);
        send_anything(fork_server_side, BUILD_CLONED, &cloned, sizeof cloned, init,
                      what > 240 ? 2 : 1);
    }
    forget(&init[0]);
}

static void speak_as_init(struct dice *dice)
{
    static const int fds[6];
    unsigned index = dice_byte(dice) % SLOTS;
    struct build_ready ready = { .walls = 3 };
    uint8_t what = dice_byte(dice);
    if (what > 240) {
        forget(&reports[index]); /* init ends */
        return;
    }
    dice_change(dice, &ready, sizeof ready);
    unsigned wanted = spawner.slots[index].build.start == SPAWN_FORKED ? INTERPRETER_ENDS : 0;
    send_anything(reports[index], what > 230 ? what : BUILD_READY, &ready, sizeof ready, fds,
                  what > 200 ? what % 7 : wanted);
}

static void speak_as_zygote(struct dice *dice)
{
    static const int fds[3];
    unsigned index = dice_byte(dice) % 4;
    struct zygote_ready ready = { .version = ZYGOTE_VERSION, .threads = 1 };
    struct zygote_forked forked = { .slot = spawner.first_slot + dice_byte(dice) % SLOTS };
    forked.generation = spawner.slots[forked.slot - spawner.first_slot].generation;
    uint8_t what = dice_byte(dice);
    if (what > 245)
        forget(&zygote_sides[index]);
    else if (what % 4 == 0) {
        dice_change(dice, &ready, sizeof ready);
        send_anything(zygote_sides[index], ZYGOTE_READY, &ready, sizeof ready, fds, what % 3);
    } else if (what % 4 == 1) {
        send_anything(zygote_sides[index], what >> 2, dice->at, dice->left % 300, fds, 1);
    } else {
        dice_change(dice, &forked, sizeof forked);
        send_anything(zygote_sides[index], ZYGOTE_FORKED, &forked, sizeof forked, NULL, 0);
    }
}

static void open_pair(int *ret_theirs, int *ret_ours)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    *ret_theirs = pair[0];
    *ret_ours = pair[1];
}

static void begin(void)
{
    error err;
    memset(&spawner, 0, sizeof spawner);
    memset(answers, 0, sizeof answers);
    spawner.unprivileged = true;
    spawner.python = 0;
    spawner.first_slot = 128;
    spawner.slot_count = SLOTS;
    for (unsigned i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        spawner.templates[i] = (struct template){ -1, -1, .fork_server_socket = -1 };
    spawner.epoll = epoll_create1(EPOLL_CLOEXEC);
    open_pair(&spawner.daemon, &daemon_side);
    struct template *template = &spawner.templates[0];
    *template =
        (struct template){ .directory = open("/", O_PATH | O_CLOEXEC), -1, 2, .fork_server = -1 };
    open_pair(&template->fork_server_socket, &fork_server_side);
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        spawner.zygotes[i].socket = zygote_sides[i] = known_zygotes[i] = -1;
    for (unsigned i = 0; i < SLOTS; i++)
        reports[i] = -1;
    if (watch(&spawner, spawner.daemon, WATCH_DAEMON, 0, &err) < 0 ||
        watch(&spawner, template->fork_server_socket, WATCH_HOLDER, 0, &err) < 0)
        abort();
}

/* Everything is released; then nothing of it may be left. */
static void end(void)
{
    error given_up;
    (void) fail(&given_up, ERR_UNAVAILABLE, "it was given up");
    for (unsigned i = 0; i < SLOTS; i++)
        if (spawner.slots[i].state != SLOT_FREE) {
            build_failed(&spawner, &spawner.slots[i], &given_up);
            spawner.slots[i].asked_to_leave = true;
        }
    slots_tend(&spawner);
    slots_tend(&spawner);
    for (unsigned i = 0; i < SLOTS; i++)
        assert(spawner.slots[i].state == SLOT_FREE);
    zygotes_of_template_are_lost(&spawner, 0);
    hear_root();
    for (unsigned i = 0; i < REQUESTS; i++)
        assert(answers[i] != 1);
    close_fd(&spawner.templates[0].fork_server_socket);
    close_fd(&spawner.templates[0].directory);
    close_fd(&spawner.daemon);
    close_fd(&spawner.epoll);
    forget(&fork_server_side);
    forget(&daemon_side);
    for (unsigned i = 0; i < SLOTS; i++)
        forget(&reports[i]);
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        forget(&zygote_sides[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const speak[])(struct dice *) = { speak_as_daemon, speak_as_holder, speak_as_init,
                                                    speak_as_zygote };
    struct dice dice = { data, size };
    unsigned before = descriptors_open();
    begin();
    while (dice.left > 0) {
        uint8_t what = dice_byte(&dice);
        if (what == 255)
            forget(&fork_server_side); /* the holder ends */
        else
            speak[what % 4](&dice);
        turn();
        if (spawner.templates[0].fork_server_socket < 0)
            break;
    }
    end();
    assert(descriptors_open() == before);
    return 0;
}
