/* agent_orders_fuzz.c - init's side of agent.h: any order of gloveboxd and any word of the
 * interpreter, by the real code and in a real folder. Nothing outside of that folder changes, no
 * descriptor stays, and gloveboxd understands every frame that comes back.
 *
 * What would reach beyond the process is left out by the linker (--wrap): fork, kill, connect,
 * _exit.
 */
#include "dice.h"

#include "base/cleanup.h"
#include "engine/sandbox/frame_reader.h"
#include "init/operations.h"

#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { IDS = 8, PIECE_MAX = 600, KINDS = AGENT_CANCEL + 1 };

static struct sandbox sandbox;
static struct frame frame;
static struct frame_reader reader;
static char home[] = "/tmp/glovebox-fuzz-XXXXXX";
static char root[sizeof home + 5];
static int playground; /* the folder `home` */
static jmp_buf ended;

pid_t __wrap_fork(void);
int __wrap_kill(pid_t pid, int number);
int __wrap_connect(int socket, const struct sockaddr *address, socklen_t size);
_Noreturn void __wrap__exit(int status);

pid_t __wrap_fork(void)
{
    errno = EAGAIN;
    return -1;
}

int __wrap_kill(pid_t pid, int number)
{
    assert(pid != 0 && number >= 0 && number <= 64);
    errno = ESRCH;
    return -1;
}

int __wrap_connect(int socket, const struct sockaddr *address, socklen_t size)
{
    (void) socket;
    (void) address;
    (void) size;
    errno = ECONNREFUSED;
    return -1;
}

_Noreturn void __wrap__exit(int status)
{
    (void) status;
    longjmp(ended, 1);
}

/* To the spawner, which is not here. */
void report_ready(struct sandbox *stands, const error *err)
{
    (void) stands;
    (void) err;
}

/* Every frame of init must be one that gloveboxd takes. */
static int hear(void *context, const struct agent_frame *heard, const unsigned char *payload,
                error *err)
{
    (void) context;
    (void) payload;
    (void) err;
    assert(heard->kind != AGENT_INTERPRETER_READY);
    return 0;
}

static void listen_to_init(int socket)
{
    error err;
    for (;;) {
        size_t room;
        unsigned char *into = frame_reader_room(&reader, &room);
        ssize_t got = recv(socket, into, room, MSG_DONTWAIT);
        if (got <= 0)
            return;
        int taken = frame_reader_took(&reader, (size_t) got, hear, NULL, &err);
        if (taken != 0)
            (void) fprintf(stderr, "%s\n", err.text);
        assert(taken == 0);
    }
}

/* What runs over several turns of the loop. */
static void take_turns(int socket)
{
    static struct pollfd watched[AGENT_OPERATIONS_MAX];
    for (unsigned turns = 0; turns < 64; turns++) {
        unsigned count = operations_gather(watched);
        if (poll(watched, count, 0) <= 0 && !operations_are_busy())
            return;
        operations_turn(&sandbox, watched);
        listen_to_init(socket);
    }
}

static void serve_all(int socket)
{
    for (;;) {
        size_t had = frame.have;
        if (frame_is_complete(&sandbox, &frame)) {
            obey_order(&sandbox, &frame);
            conclude_if_due(&sandbox);
            take_turns(socket);
        } else if (frame.have == had)
            return;
        listen_to_init(socket);
    }
}

/* A path of few letters, so that paths meet each other. */
static size_t make_path(struct dice *dice, char *path)
{
    static const char *const parts[] = { "a", "b",    "a/b", "..",   "/",
                                         ".", "link", "a/",  "\xff", "c\n" };
    size_t length = 0;
    for (unsigned count = dice_byte(dice) % 4; count > 0; count--) {
        const char *part = parts[dice_byte(dice) % 10];
        length += (size_t) sprintf(path + length, "%s%s", length ? "/" : "", part);
    }
    return length;
}

static void send_order(struct dice *dice, int socket)
{
    struct {
        struct agent_frame head;
        unsigned char payload[PIECE_MAX + 512];
    } order = { .head = { .kind = dice_byte(dice) % KINDS, .id = dice_byte(dice) % IDS } };
    size_t size = dice_byte(dice) % 40; /* the struct before the path, or less, or more */
    size = size < dice->left ? size : dice->left;
    memcpy(order.payload, dice->at, size);
    dice->at += size;
    dice->left -= size;
    static const size_t heads[KINDS] = {
        [AGENT_PUT] = sizeof(struct agent_put),     [AGENT_START] = sizeof(struct agent_start),
        [AGENT_LIST] = sizeof(struct agent_list),   [AGENT_READ] = sizeof(struct agent_read),
        [AGENT_WRITE] = sizeof(struct agent_write), [AGENT_PACK] = sizeof(struct agent_flow),
        [AGENT_WATCH] = sizeof(struct agent_watch)
    };
    if (heads[order.head.kind] > size)
        size = heads[order.head.kind];
    size += make_path(dice, (char *) order.payload + size);
    if (order.head.kind == AGENT_MOVE)
        size += 1 + make_path(dice, (char *) order.payload + size + 1);
    if (order.head.kind == AGENT_START)
        size++; /* the NUL of its last string */
    order.head.size = (uint32_t) size;
    size_t cut = dice_byte(dice); /* now and then a header that promises other than what comes */
    if (cut > 250)
        order.head.size = (uint32_t) (cut * 300);
    (void) send(socket, &order, sizeof order.head + size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The interpreter's own word comes first, all others are the user's. */
static void speak_as_interpreter(struct dice *dice, int socket)
{
    static const int fds[8];
    struct {
        struct agent_frame head; /* its size stands where send_anything() puts the kind */
        unsigned char payload[PIECE_MAX];
    } word = { .head = { .id = dice_byte(dice) } };
    static const uint16_t kinds[] = { AGENT_INTERPRETER_READY, AGENT_RESULT, AGENT_EXECUTED, 7 };
    word.head.kind = kinds[dice_byte(dice) % 4];
    size_t size = dice_byte(dice) % 64;
    size = size < dice->left ? size : dice->left;
    memcpy(word.payload, dice->at, size);
    dice->at += size;
    dice->left -= size;
    size_t promised = dice_byte(dice); /* too much, or little enough for a second frame */
    word.head.size = (uint32_t) (promised > 250 ? size + 1 : promised > 230 ? size / 2 : size);
    send_anything(socket, word.head.size, (unsigned char *) &word + sizeof word.head.size,
                  sizeof word.head - sizeof word.head.size + size, fds, dice_byte(dice) % 5);
    if (sandbox.programs[0].control >= 0)
        interpreter_speaks(&sandbox, &sandbox.programs[0]);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void) status;
    (void) type;
    return at->level > 0 ? remove(path) : 0;
}

static void remove_folders(void)
{
    (void) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void) unlinkat(playground, "root", AT_REMOVEDIR);
    (void) unlinkat(playground, "outside", 0);
    (void) rmdir(home);
}

static int open_folder(const char *path)
{
    int folder = openat(playground, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        abort();
    return folder;
}

/* home/root/workspace, and beside root a file that must stay as it is. */
static void make_folders(void)
{
    struct rlimit files = { 4096, 4096 };
    (void) setrlimit(RLIMIT_NOFILE, &files);
    (void) umask(0);
    if (!mkdtemp(home))
        abort();
    (void) sprintf(root, "%s/root", home);
    playground = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (playground < 0 || mkdirat(playground, "root", 0700) < 0)
        abort();
    int outside = openat(playground, "outside", O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (outside < 0 || write(outside, "as it was", 9) != 9)
        abort();
    (void) close(outside);
    (void) atexit(remove_folders);
}

static void check_outside(void)
{
    struct stat status;
    assert(fstatat(playground, "outside", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_size == 9);
    assert((status.st_mode & 07777) == 0640 && status.st_nlink == 1);
    assert(fstat(playground, &status) == 0 && status.st_nlink == 3); /* "root" is the only folder */
}

static void begin(int inside, int interpreter)
{
    memset(&sandbox, 0, offsetof(struct sandbox, programs));
    frame.have = 0;
    memset(&reader, 0, sizeof reader);
    if (mkdirat(playground, "root/workspace", 0700) < 0 ||
        symlinkat("../../outside", playground, "root/workspace/link") < 0)
        abort();
    sandbox.inside = inside;
    sandbox.listener = sandbox.report = -1;
    sandbox.root = open_folder("root");
    sandbox.workspace = open_folder("root/workspace");
    for (unsigned i = 0; i < AGENT_PROCESSES_MAX; i++) {
        struct program *program = &sandbox.programs[i];
        program->id = 0;
        program->pid = 0;
        program->waiting = 0;
        program->control = i == 0 ? interpreter : -1;
        program->listener = -1;
        program->has_spoken = program->is_driver = false;
        program->input = program->outputs[0] = program->outputs[1] = -1;
    }
    struct agent_hello hello = { .version = AGENT_VERSION };
    send_frame(&sandbox, AGENT_HELLO, 0, 0, &hello, sizeof hello, NULL, 0);
}

static void end(void)
{
    error err;
    for (uint32_t id = 0; id < IDS; id++) {
        const struct frame cancel = { .head = { .kind = AGENT_CANCEL, .id = id } };
        (void) operation_on_frame(&sandbox, &cancel);
        if (is_putting(id))
            (void) put_end(id, &err);
    }
    close_fd(&sandbox.root);
    close_fd(&sandbox.workspace);
    if (sandbox.processes > 0) /* opened by AGENT_BOUND, and zero before */
        close_fd(&sandbox.processes);
    close_fd(&sandbox.programs[0].control);
    close_fd(&sandbox.programs[0].listener);
    (void) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_first = true;
    struct dice dice = { data, size };
    int inside[2];
    int interpreter[2];
    int room = 8 << 20;
    if (is_first)
        make_folders();
    is_first = false;
    unsigned before = descriptors_open();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inside) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, interpreter) < 0)
        abort();
    (void) setsockopt(inside[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    begin(inside[0], interpreter[0]);
    if (setjmp(ended) == 0)
        while (dice.left > 0) {
            if (dice_byte(&dice) % 8 < 2)
                speak_as_interpreter(&dice, interpreter[1]);
            else
                send_order(&dice, inside[1]);
            serve_all(inside[1]);
        }
    listen_to_init(inside[1]);
    end();
    (void) close(inside[0]);
    (void) close(inside[1]);
    (void) close(interpreter[1]);
    check_outside();
    assert(descriptors_open() == before);
    return 0;
}
