/* answers_fuzz.c - any message as an answer of the spawner: each caller is called once, with a
 * sandbox with exactly the descriptors of its groups or with an error text; a spawner that says
 * anything else is given up; and no descriptor stays. */
#include "dice.h"

#include "engine/observe/log.h"
#include "engine/sandbox/spawner_client.h"

enum { BUILDS_MAX = 8 };

static uv_loop_t loop;
static struct spawner_link asker;
static struct {
    bool asked, told;
} builds[BUILDS_MAX];
static unsigned build_count;
static bool gone;

/* A spawner that is given up is no news here. */
void log_fields(enum log_event event, enum log_level level, const struct log_field *fields)
{
    (void) level;
    (void) event;
    (void) fields;
}

static void on_hello(void *context)
{
    (void) context;
    assert(asker.hello.version == SPAWN_VERSION);
    assert((asker.hello.groups >> GROUPS) == 0 && asker.hello.slots > 0);
}

static void on_released(void *context, const struct spawn_released *released)
{
    (void) context;
    (void) released;
}

static void on_lost(void *context, const struct spawn_slot *name)
{
    (void) context;
    (void) name;
}

static void on_gone(void *context)
{
    (void) context;
    assert(!gone);
    gone = true;
}

static void on_built(void *context, const struct spawned *spawned, const error *cause)
{
    unsigned index = (unsigned) (uintptr_t) context;
    assert(builds[index].asked && !builds[index].told);
    builds[index].told = true;
    if (!spawned) {
        assert(cause->code != ERR_NONE && memchr(cause->text, '\0', sizeof cause->text));
        return;
    }
    assert(spawned->inside >= 0);
    assert(((spawned->walls | spawned->degraded) >> WALLS) == 0);
    (void) close(spawned->inside);
    for (unsigned kind = 0; kind < GROUPS; kind++)
        if (spawned->groups[kind] >= 0)
            (void) close(spawned->groups[kind]);
}

static void ask(void)
{
    struct spawn_build build = { 0 };
    error err;
    if (build_count == BUILDS_MAX)
        return;
    void *context = (void *) (uintptr_t) build_count;
    if (spawner_build(&asker, &build, on_built, context, &err) == 0)
        builds[build_count++].asked = true;
}

static void send_built(struct dice *dice, int socket)
{
    static const int fds[2 + GROUPS + 4];
    struct spawn_built built = { .request = dice_byte(dice) % (BUILDS_MAX + 1), .groups = 3 };
    uint8_t how = dice_byte(dice);
    if (how % 4 == 0) {
        built.err.code = ERR_BUSY;
        memset(built.err.text, 'x', sizeof built.err.text);
    }
    dice_change(dice, &built, sizeof built);
    unsigned count = how < 200 ? 2 + (unsigned) __builtin_popcount(built.groups) : how % 13;
    send_anything(socket, SPAWN_BUILT, &built, sizeof built, fds, count % 13);
}

static void send_other(struct dice *dice, int socket)
{
    static const int fds[4];
    struct spawn_hello hello = { .version = SPAWN_VERSION, .slots = 64 };
    struct spawn_released released = { .slot = 1 };
    switch (dice_byte(dice) % 4) {
    case 0:
        dice_change(dice, &hello, sizeof hello);
        send_anything(socket, SPAWN_HELLO, &hello, sizeof hello, NULL, 0);
        break;
    case 1:
        send_anything(socket, SPAWN_RELEASED, &released, sizeof released, NULL, 0);
        break;
    case 2:
        send_anything(socket, SPAWN_LOST, &released, sizeof(struct spawn_slot), fds,
                      dice_byte(dice) % 2);
        break;
    default: {
        uint32_t kind = dice_byte(dice) % 64;
        size_t size = dice->left < 400 ? dice->left : 400;
        send_anything(socket, kind, dice->at, size, fds, dice_byte(dice) % 5);
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct spawner_watcher watcher = {
        .hello = on_hello, .released = on_released, .lost = on_lost, .gone = on_gone
    };
    static bool ready;
    struct dice dice = { data, size };
    error err;
    int pair[2];
    if (!ready && uv_loop_init(&loop) < 0)
        abort();
    ready = true;
    memset(builds, 0, sizeof builds);
    build_count = 0;
    gone = false;
    unsigned before = descriptors_open();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        spawner_open(&asker, &loop, pair[1], &watcher, &err) < 0)
        abort();
    while (dice.left > 0 && !gone) {
        uint8_t what = dice_byte(&dice);
        if (what % 4 == 0)
            ask();
        else if (what % 4 == 3)
            send_other(&dice, pair[0]);
        else
            send_built(&dice, pair[0]);
        (void) uv_run(&loop, UV_RUN_NOWAIT);
    }
    (void) close(pair[0]); /* the spawner ends: every build that waits fails */
    for (int turn = 0; turn < 3; turn++)
        (void) uv_run(&loop, UV_RUN_NOWAIT);
    assert(gone);
    for (unsigned i = 0; i < build_count; i++)
        assert(builds[i].told);
    assert(descriptors_open() == before);
    return 0;
}
