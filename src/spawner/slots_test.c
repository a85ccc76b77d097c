/* slots_test.c - a slot whose processes do not end, and the events of one that has ended. A bool
 * stands for the control groups: they can be removed or not. */
#include "base/test.h"

#include "model/ids.h"
#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct spawner root;
static int daemon_side;
static bool groups_are_busy, leaf_is_frozen;

int remove_leaves(const struct spawner *spawner, struct slot *slot)
{
    (void) spawner;
    (void) slot;
    return groups_are_busy ? -1 : 0;
}

int set_frozen(const struct spawner *spawner, const struct slot *slot, bool frozen, error *err)
{
    (void) spawner;
    (void) slot;
    if (groups_are_busy)
        return fail(err, ERR_UNAVAILABLE, "no control group");
    leaf_is_frozen = frozen;
    return 0;
}

uint32_t sweep_groups(struct spawner *spawner, bool (*is_abandoned)(uint32_t slot))
{
    (void) spawner;
    (void) is_abandoned;
    return 0;
}

void build_failed(struct spawner *spawner, struct slot *slot, const error *cause)
{
    (void) cause;
    slot_leave(spawner, slot);
}

static uint64_t failed_request; /* the last one reported */

void tell_failed(struct spawner *spawner, uint64_t request, const error *cause)
{
    (void) spawner;
    expect(cause->code == ERR_TIMEOUT, "the cause it failed for");
    failed_request = request;
}

static void begin(void)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0, "a socket");
    memset(&root, 0, sizeof root);
    root.daemon = pair[0];
    daemon_side = pair[1];
    root.epoll = epoll_create1(EPOLL_CLOEXEC);
    root.slot_count = 2;
    root.slots[2].state = SLOT_BUILDING; /* of another instance, so it is not checked */
    groups_are_busy = false;
}

/* Returns the leftovers in the next SPAWN_RELEASED; -1 if there is no such message. */
static int64_t leftovers_told(void)
{
    struct packet packet;
    struct spawn_released released;
    error err;
    if (packet_receive(daemon_side, &packet, &err) != PACKET_CAME)
        return -1;
    memcpy(&released, packet.body, sizeof released);
    return packet.kind == SPAWN_RELEASED ? (int64_t) released.leftovers : -1;
}

TEST(a_stuck_slot_answers_every_release)
{
    begin();
    struct slot *slot = slot_take(&root);
    groups_are_busy = true;
    slot_leave(&root, slot);
    slot->until_ms = 0; /* its time has passed */
    (void) slots_tend(&root);
    expect(slot->state == SLOT_LEAVING && leftovers_told() == -1, "nobody has asked yet");

    slot->asked_to_leave = true;
    bool some_leave = slots_tend(&root);
    expect(leftovers_told() == 1, "it is stuck, and that is reported");
    expect(!some_leave, "nobody waits for it at the end");
    (void) slots_tend(&root);
    expect(leftovers_told() == -1, "once");

    slot->until_ms = 0; /* it is checked again some seconds later */
    (void) slots_tend(&root);
    expect(leftovers_told() == -1 && slot->state == SLOT_LEAVING, "still stuck, and told already");

    groups_are_busy = false;
    (void) slots_tend(&root);
    expect(slot->state == SLOT_LEAVING, "it is not looked at all the time");
    slot->until_ms = 0;
    (void) slots_tend(&root);
    expect(leftovers_told() == (int64_t) SPAWN_IS_BACK && slot->state == SLOT_FREE,
           "it was freed in the end, and that is reported");
}

TEST(a_failure_is_reported_once_the_slot_is_free)
{
    begin();
    struct slot *slot = slot_take(&root);
    slot->request = 7;
    slot->failed = true;
    slot->cause.code = ERR_TIMEOUT;
    groups_are_busy = true;
    slot_leave(&root, slot);
    (void) slots_tend(&root);
    expect(failed_request == 0 && slot->state == SLOT_LEAVING, "its control groups are in use");

    groups_are_busy = false;
    (void) slots_tend(&root);
    expect(failed_request == 7 && slot->state == SLOT_FREE, "now there is room for another");
}

TEST(a_slot_that_is_free_has_no_events)
{
    begin();
    struct slot *slot = slot_take(&root);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    slot->init = (int) syscall(SYS_pidfd_open, child, 0);
    require(slot->init >= 0 && waitpid(child, NULL, 0) == child, "a process");
    int held = fcntl(slot->init, F_DUPFD_CLOEXEC,
                     0); /* as a clone of a fork server, or gloveboxd, may hold it for a moment */
    struct epoll_event event = { .events = EPOLLIN };
    require(epoll_ctl(root.epoll, EPOLL_CTL_ADD, slot->init, &event) == 0, "epoll");
    expect(epoll_wait(root.epoll, &event, 1, 0) == 1, "its end is an event");

    slot->asked_to_leave = true;
    slot_leave(&root, slot);
    (void) slots_tend(&root);
    require(slot->state == SLOT_FREE && leftovers_told() == 0, "it is free");
    expect(epoll_wait(root.epoll, &event, 1, 0) == 0, "an event of a slot that is free");
    (void) close(held);
}

TEST(a_frozen_slot_is_thawed_before_it_is_free)
{
    begin();
    struct slot *slot = slot_take(&root);
    slot->is_frozen = leaf_is_frozen = true;
    groups_are_busy = true;
    slot_leave(&root, slot);
    (void) slots_tend(&root);
    expect(slot->is_frozen && leaf_is_frozen, "it could not be thawed, and that is remembered");
    groups_are_busy = false;
    (void) slots_tend(&root);
    expect(!slot->is_frozen && !leaf_is_frozen && slot->state == SLOT_FREE, "state %u",
           slot->state);
    expect(root.slots[2].state == SLOT_BUILDING, "a slot of nobody here was looked at");
}

TEST(a_release_is_sent_again_until_gloveboxd_accepts_it)
{
    begin();
    error err = { 0 };
    unsigned filled = 0;
    struct slot *slot = slot_take(&root);
    while (filled < 10000 &&
           packet_send(root.daemon, SPAWN_LOST, &filled, sizeof filled, NULL, 0, &err) == 0)
        filled++;
    require(filled < 10000 && err.os == EAGAIN, "%u messages: %s", filled, err.text);
    slot->asked_to_leave = true;
    slot_leave(&root, slot);
    (void) slots_tend(&root);
    expect(slot->state == SLOT_LEAVING, "the slot is free, and gloveboxd does not know");
    for (unsigned i = 0; i < filled; i++)
        (void) leftovers_told();
    (void) slots_tend(&root);
    expect(leftovers_told() == 0 && slot->state == SLOT_FREE, "state %u", slot->state);
}

TEST(a_slot_is_free_even_if_gloveboxd_has_ended)
{
    begin();
    struct slot *slot = slot_take(&root);
    (void) close(daemon_side);
    slot->asked_to_leave = true;
    slot_leave(&root, slot);
    (void) slots_tend(&root);
    expect(slot->state == SLOT_FREE, "state %u", slot->state);
}

/* An invariant of requests.c: no other slot has the user id or the control group. */
TEST(slots_of_two_instances_never_overlap)
{
    char path[] = "/tmp/glovebox-slots-XXXXXX";
    static struct spawner first, second, third;
    error err = { 0 };
    int file = mkstemp(path);
    require(file >= 0, "a file");
    (void) close(file);
    require(lock_slots(&first, path, 20000, &err) == 0, "%s", err.text);
    require(lock_slots(&second, path, 20000, &err) == 0, "%s", err.text);
    require(lock_slots(&third, path, 20000, &err) == 0, "%s", err.text);
    expect(first.first_slot == 0 && second.first_slot == 20000 && third.first_slot == 40000,
           "they begin at %u, %u, %u", first.first_slot, second.first_slot, third.first_slot);
    expect(lock_slots(&root, path, 20000, &err) < 0 && err.code == ERR_BUSY,
           "a fourth has found room among %d", SLOTS_MAX);
    (void) unlink(path);
}

/* While the service that removed them runs, its group has the same name. */
TEST(groups_that_were_removed_are_missed)
{
    char top[] = "/tmp/glovebox-swept-XXXXXX", holders[64];
    begin();
    expect(!groups_were_swept(&root), "there are none");
    require(mkdtemp(top) != NULL, "a folder");
    root.roots[root.root_count++] = (struct group_root){ .kind = GROUP_PIDS, .path = top };
    (void) snprintf(root.holders, sizeof root.holders, "holders-8");
    (void) snprintf(holders, sizeof holders, "%s/holders-8", top);
    expect(mkdir(holders, 0700) == 0, "made");
    errno = ENOENT; /* of an earlier call */
    expect(!groups_were_swept(&root), "it is there");
    expect(rmdir(holders) == 0 && groups_were_swept(&root), "it is gone");
    expect(rmdir(top) == 0 && groups_were_swept(&root), "all is gone");
}

TESTS(CASE(a_stuck_slot_answers_every_release), CASE(a_failure_is_reported_once_the_slot_is_free),
      CASE(a_slot_that_is_free_has_no_events), CASE(slots_of_two_instances_never_overlap),
      CASE(a_frozen_slot_is_thawed_before_it_is_free),
      CASE(a_release_is_sent_again_until_gloveboxd_accepts_it),
      CASE(a_slot_is_free_even_if_gloveboxd_has_ended), CASE(groups_that_were_removed_are_missed))
