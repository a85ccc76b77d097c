/* holes_test.c - files with holes are saved and loaded by the orders SAVE and LOAD, through the
 * loop of operations, from one folder into another. The folders lie in a tmpfs, as a sandbox's. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE          ((off_t) 4096)
#define BLOCKS(count) ((off_t) (count) *512)
#define HUGE          ((off_t) 2 << 40) /* bytes */

enum { TURNS_MAX = 400 };

struct side {
    char path[48];
    int root, stream; /* what init writes to gloveboxd comes here */
    struct sandbox sandbox;
};

static struct side from, into;
static struct frame order; /* too large for the stack */

static void side_open(struct side *side)
{
    int ends[2];
    (void) strcpy(side->path, "/dev/shm/glovebox-holes-XXXXXX");
    require(mkdtemp(side->path), "no folder in /dev/shm");
    side->root = open(side->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for_each(place, scratch_places) {
        if (strcmp(*place, "home/user") == 0)
            (void) mkdirat(side->root, "home", 0755);
        if (strcmp(*place, "dev/shm") == 0)
            (void) mkdirat(side->root, "dev", 0755);
        require(mkdirat(side->root, *place, 0755) == 0, "make '%s'", *place);
    }
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    side->sandbox.root = side->root;
    side->sandbox.inside = ends[0];
    side->stream = ends[1];
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void) status;
    (void) type;
    (void) where;
    return remove(path);
}

static void side_close(const struct side *side)
{
    (void) close(side->root);
    (void) close(side->stream);
    (void) close(side->sandbox.inside);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    (void) nftw(side->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void begin(void)
{
    side_open(&from);
    side_open(&into);
}

static void end(void)
{
    side_close(&from);
    side_close(&into);
}

/* Does `change` after the first turn. Returns the errno of DONE, -1 if none comes. */
static int take_turns(struct side *side, void (*change)(int file), int file)
{
    static struct pollfd watched[AGENT_OPERATIONS_MAX];
    struct {
        struct agent_frame head;
        struct agent_done done;
    } heard;
    for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
        unsigned count = operations_gather(watched);
        (void) poll(watched, count, 0);
        operations_turn(&side->sandbox, watched);
        if (turn == 0 && change)
            change(file);
        if (recv(side->stream, &heard, sizeof heard, MSG_DONTWAIT) == sizeof heard)
            return heard.head.kind == AGENT_DONE ? heard.done.os : -1;
    }
    return -1;
}

static int save(int stream, void (*change)(int file), int file)
{
    error err;
    order = (struct frame){ .fd = stream, .head = { .id = 1 } };
    require(begin_save(&from.sandbox, &order, &err) == 0, "%s", err.text);
    return take_turns(&from, change, file);
}

static int load(int stream)
{
    error err;
    order = (struct frame){ .fd = stream, .head = { .id = 2 } };
    (void) lseek(stream, 0, SEEK_SET);
    require(begin_load(&into.sandbox, &order, &err) == 0, "%s", err.text);
    return take_turns(&into, NULL, -1);
}

static off_t size_of(int file)
{
    struct stat status = { 0 };
    return fstat(file, &status) == 0 ? status.st_size : -1;
}

static int made(const char *name)
{
    int file = openat(from.root, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    require(file >= 0, "make '%s'", name);
    return file;
}

/* True if both have the same size, the same data and the same holes. */
static bool are_equal(int one, int other)
{
    static char bytes[2][PAGE];
    if (size_of(one) != size_of(other))
        return false;
    for (off_t at = 0; (at = lseek(one, at, SEEK_DATA)) >= 0; at += PAGE) {
        ssize_t got = pread(one, bytes[0], PAGE, at);
        if (lseek(other, at, SEEK_DATA) != at || pread(other, bytes[1], PAGE, at) != got ||
            memcmp(bytes[0], bytes[1], (size_t) got) != 0)
            return false;
    }
    struct stat status[2];
    return fstat(one, &status[0]) == 0 && fstat(other, &status[1]) == 0 &&
           status[0].st_blocks == status[1].st_blocks;
}

TEST(files_come_back_with_their_bytes_and_their_holes)
{
    static const struct {
        const char *name;
        off_t size;
        off_t data[3]; /* where one byte is that is not zero; -1: nowhere */
        off_t stored;  /* headers and data, in blocks */
    } facts[] = {
        { "workspace/empty", 0, { -1, -1, -1 }, 512 },
        { "workspace/one_byte", 1, { 0, -1, -1 }, BLOCKS(2) },
        { "workspace/dense", PAGE, { 7, -1, -1 }, 512 + PAGE },
        { "workspace/all_hole", HUGE, { -1, -1, -1 }, BLOCKS(2) },
        { "workspace/small_hole", 1, { -1, -1, -1 }, BLOCKS(2) },
        { "workspace/odd_hole", HUGE + 1, { -1, -1, -1 }, BLOCKS(2) },
        { "workspace/hole_at_start", HUGE, { HUGE - 1, -1, -1 }, BLOCKS(2) + PAGE },
        { "workspace/hole_at_end", HUGE, { 0, -1, -1 }, BLOCKS(3) + PAGE },
        { "workspace/middle", HUGE, { HUGE / 2 + 77, -1, -1 }, BLOCKS(3) + PAGE },
        { "workspace/both_ends", HUGE + 3, { 1, HUGE + 2, -1 }, BLOCKS(3) + PAGE + 512 },
        { "tmp/three", HUGE, { PAGE - 1, 3 * PAGE, HUGE - PAGE - 1 }, BLOCKS(5) + 3 * PAGE },
        { "dev/shm/neighbours",
          5 * PAGE,
          { 2 * PAGE, 3 * PAGE - 1, 3 * PAGE },
          BLOCKS(3) + 2 * PAGE },
    };
    begin();
    auto_fd stream = memfd_create("stream", MFD_CLOEXEC);
    off_t expected = 1024; /* the end */
    for_each(fact, facts) {
        auto_fd file = made(fact->name);
        expect(ftruncate(file, fact->size) == 0, "size of '%s'", fact->name);
        for_each(at, fact->data)
            expect(*at < 0 || pwrite(file, "x", 1, *at) == 1, "write '%s'", fact->name);
        expected += fact->stored;
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1700000000 } };
        (void) fchmod(file, 0640);
        (void) futimens(file, times);
    }
    expect(save(stream, NULL, -1) == 0, "not saved");
    expect(size_of(stream) == expected, "%lld bytes, not %lld", (long long) size_of(stream),
           (long long) expected);
    int loaded = load(stream);
    expect(loaded == 0, "not loaded: errno %d", loaded);
    for_each(fact, facts) {
        auto_fd one = openat(from.root, fact->name, O_RDONLY | O_CLOEXEC);
        auto_fd other = openat(into.root, fact->name, O_RDONLY | O_CLOEXEC);
        struct stat status = { 0 };
        expect(are_equal(one, other), "'%s' has %lld bytes, or others", fact->name,
               (long long) size_of(other));
        expect(fstat(other, &status) == 0 && (status.st_mode & 07777) == 0640 &&
                   status.st_mtim.tv_sec == 1700000000,
               "mode or time of '%s'", fact->name);
    }
    end();
}

/* Headers add an eighth of the data, and no list of holes is kept. */
TEST(a_file_of_many_holes_costs_its_data_and_an_eighth)
{
    enum { PARTS = 2000 };
    begin();
    auto_fd stream = memfd_create("stream", MFD_CLOEXEC);
    auto_fd file = made("workspace/many");
    for (off_t part = 1; part <= PARTS; part++)
        expect(pwrite(file, &part, sizeof part, (2 * part - 1) * PAGE + 8) == sizeof part, "write");
    expect(ftruncate(file, PARTS * PAGE * 2) == 0, "no hole at its end");
    expect(save(stream, NULL, -1) == 0, "not saved");
    expect(size_of(stream) == PARTS * (PAGE + 512) + BLOCKS(3), "%lld bytes",
           (long long) size_of(stream));
    expect(load(stream) == 0, "not loaded");
    auto_fd other = openat(into.root, "workspace/many", O_RDONLY | O_CLOEXEC);
    expect(are_equal(file, other), "it came back otherwise");
    end();
}

static void cut(int file)
{
    expect(ftruncate(file, 0) == 0, "cut");
}

static void grow(int file)
{
    expect(ftruncate(file, HUGE * 2) == 0 && pwrite(file, "late", 4, HUGE + 5) == 4, "grow");
}

static void punch(int file)
{
    expect(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE) == 0, "punch");
}

static void move_beyond(int file)
{
    punch(file);
    expect(ftruncate(file, HUGE * 2) == 0 && pwrite(file, "late", 4, HUGE + PAGE) == 4, "move");
}

static void fill(int file)
{
    expect(pwrite(file, "late", 4, HUGE / 4) == 4, "fill");
}

/* A turn writes one MiB of the four, so that three are read after the change. */
TEST(a_file_that_changes_meanwhile_keeps_the_size_that_it_had)
{
    static const struct {
        const char *name;
        void (*change)(int file);
        off_t data; /* what of its end is data afterwards; 0: nothing */
    } facts[] = { { "cut", cut, 0 },
                  { "grow", grow, 8 },
                  { "punch", punch, 0 },
                  { "move", move_beyond, 0 },
                  { "fill", fill, 8 } };
    static char bytes[4 << 20];
    memset(bytes, 'd', sizeof bytes);
    for_each(fact, facts) {
        begin();
        auto_fd stream = memfd_create("stream", MFD_CLOEXEC);
        auto_fd file = made("workspace/f");
        expect(pwrite(file, bytes, sizeof bytes, PAGE) == sizeof bytes &&
                   pwrite(file, "near end", 8, HUGE - 8) == 8,
               "write");
        expect(save(stream, fact->change, file) == 0, "%s: not saved", fact->name);
        expect(load(stream) == 0, "%s: not loaded", fact->name);
        auto_fd other = openat(into.root, "workspace/f", O_RDONLY | O_CLOEXEC);
        expect(size_of(other) == HUGE, "%s: %lld bytes", fact->name, (long long) size_of(other));
        char got[8] = { 0 };
        expect(pread(other, got, 1, PAGE) == 1 && got[0] == 'd', "%s: the begin", fact->name);
        expect(pread(other, got, 8, HUGE - 8) == 8, "%s: the end", fact->name);
        expect(memcmp(got, fact->data ? "near end" : "\0\0\0\0\0\0\0\0", 8) == 0, "%s: '%.8s'",
               fact->name, got);
        expect(fact->change != fill || (pread(other, got, 4, HUGE / 4) == 4 && got[0] == 'l'),
               "what came before it was reached is missing");
        end();
    }
}

/* What a client gets is a tar that every program reads, also from the place of an earlier SAVE. */
TEST(a_download_has_zeros_for_holes)
{
    static struct {
        struct agent_frame head;
        char tar[BLOCKS(32)];
    } heard;
    static const char zeros[3 * PAGE];
    begin();
    auto_fd stream = memfd_create("stream", MFD_CLOEXEC);
    auto_fd file = made("workspace/f");
    expect(pwrite(file, "end", 3, 3 * PAGE) == 3, "write");
    expect(save(stream, NULL, -1) == 0 && size_of(stream) == BLOCKS(5), "not saved");
    error err;
    const struct agent_flow flow = { .credit = 1 << 20 };
    order = (struct frame){ .fd = -1, .head = { .id = 3 } };
    memcpy(order.payload, &flow, sizeof flow);
    require(begin_pack(&from.sandbox, &order, &err) == 0, "%s", err.text);
    (void) recv(from.stream, &heard.head, sizeof heard.head, 0); /* OPENED */
    static struct pollfd watched[AGENT_OPERATIONS_MAX];
    (void) operations_gather(watched);
    operations_turn(&from.sandbox, watched);
    ssize_t got = recv(from.stream, &heard, sizeof heard, MSG_DONTWAIT);
    expect(got > (ssize_t) sizeof heard.head && heard.head.size == BLOCKS(1 + 24 + 1 + 2),
           "%u bytes", heard.head.size);
    expect(heard.tar[156] == '0' && memcmp(heard.tar + 512, zeros, sizeof zeros) == 0 &&
               memcmp(heard.tar + 512 + 3 * PAGE, "end", 3) == 0,
           "type %c, or other bytes", heard.tar[156]);
    end();
}

/* What was kept is of a sandbox: a part beyond the end, or a file that is not whole. */
TEST(a_stream_that_ends_early_is_refused)
{
    begin();
    auto_fd stream = memfd_create("stream", MFD_CLOEXEC);
    auto_fd file = made("workspace/f");
    expect(ftruncate(file, HUGE) == 0, "no hole");
    expect(save(stream, NULL, -1) == 0 && size_of(stream) == 2048, "not saved");
    expect(ftruncate(stream, 512) == 0 && load(stream) == EINVAL,
           "a file without its parts was loaded");
    end();
}

TESTS(CASE(files_come_back_with_their_bytes_and_their_holes),
      CASE(a_file_of_many_holes_costs_its_data_and_an_eighth),
      CASE(a_file_that_changes_meanwhile_keeps_the_size_that_it_had),
      CASE(a_download_has_zeros_for_holes), CASE(a_stream_that_ends_early_is_refused))
