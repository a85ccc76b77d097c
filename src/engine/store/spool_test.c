/* spool_test.c - spools copy all bytes in order, several at once, and no more than is allowed. */
#include "base/clock.h"
#include "base/table.h"
#include "base/test.h"
#include "engine/store/disk_worker.h"
#include "engine/store/spool.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 5 * 1024 * 1024 + 123, PIECE = 10000 };

struct heard {
    unsigned times;
    uint64_t moved, granted, max;
    error why;
};

static void hear(void *user, uint64_t moved, const error *why)
{
    struct heard *heard = user;
    heard->times++;
    heard->moved = moved;
    if (why)
        heard->why = *why;
}

static int grant(void *user, uint64_t bytes, error *err)
{
    struct heard *heard = user;
    if (heard->max > 0 && heard->granted + bytes > heard->max)
        return fail(err, ERR_BUSY, "no more");
    heard->granted += bytes;
    return 0;
}

static unsigned char pattern(size_t at, int seed)
{
    return (unsigned char) (at * 31 + at / 4096 + (size_t) seed);
}

static void pour(int pipe, int seed, size_t size)
{
    unsigned char piece[PIECE];
    for (size_t at = 0; at < size;) {
        size_t part = size - at < sizeof piece ? size - at : sizeof piece;
        for (size_t i = 0; i < part; i++)
            piece[i] = pattern(at + i, seed);
        ssize_t put = write(pipe, piece, part);
        if (put < 0)
            _exit(3);
        at += (size_t) put;
    }
    _exit(0);
}

static void drain(int pipe, int seed, size_t size)
{
    unsigned char piece[PIECE];
    size_t at = 0;
    for (ssize_t got; (got = read(pipe, piece, sizeof piece)) > 0; at += (size_t) got)
        for (size_t i = 0; i < (size_t) got; i++)
            if (piece[i] != pattern(at + i, seed))
                _exit(4);
    _exit(at == size ? 0 : 5);
}

/* Gives the end for the spool; a child has the other. */
static pid_t start(int *ret_pipe, bool is_writer, int seed, size_t size)
{
    int ends[2];
    expect(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        (void) signal(SIGPIPE, SIG_IGN);
        (void) close(ends[is_writer ? 0 : 1]);
        if (is_writer)
            pour(ends[1], seed, size);
        drain(ends[0], seed, size);
    }
    (void) close(ends[is_writer ? 1 : 0]);
    *ret_pipe = ends[is_writer ? 0 : 1];
    return child;
}

static int status_of(pid_t child)
{
    int status = -1;
    (void) waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void finish(uv_loop_t *loop)
{
    expect(uv_run(loop, UV_RUN_DEFAULT) == 0, "something is left in the loop");
    expect(uv_loop_close(loop) == 0, "the loop cannot be closed");
}

TEST(several_at_once_carry_all_of_it_there_and_back)
{
    enum { PUMPS = 3 };
    struct heard out[PUMPS] = { 0 };
    struct heard in[PUMPS] = { 0 };
    struct spool *spool = NULL;
    int files[PUMPS];
    pid_t children[PUMPS];
    uv_loop_t loop;
    error err;
    expect(uv_loop_init(&loop) == 0, "no loop");
    for (int i = 0; i < PUMPS; i++) {
        struct spool_order order = {
            .loop = &loop, .max = BYTES, .grows = grant, .told = hear, .user = &out[i]
        };
        order.file = files[i] = memfd_create("kept", MFD_CLOEXEC);
        children[i] = start(&order.pipe, true, i, BYTES);
        expect(spool_out(&order, &spool, &err) == 0, "%s", err.text);
    }
    expect(uv_run(&loop, UV_RUN_DEFAULT) == 0, "something is left in the loop");
    for (int i = 0; i < PUMPS; i++) {
        struct spool_order order = { .loop = &loop, .max = BYTES, .told = hear, .user = &in[i] };
        expect(status_of(children[i]) == 0 && out[i].times == 1 && out[i].moved == BYTES &&
                   out[i].granted == BYTES && out[i].why.code == ERR_NONE,
               "%d: %llu moved, %s", i, (unsigned long long) out[i].moved, out[i].why.text);
        order.file = files[i];
        children[i] = start(&order.pipe, false, i, BYTES);
        expect(spool_in(&order, &spool, &err) == 0, "%s", err.text);
        disk_worker_close(&loop, files[i]); /* a pump has its own */
    }
    finish(&loop);
    for (int i = 0; i < PUMPS; i++)
        expect(status_of(children[i]) == 0 && in[i].times == 1 && in[i].moved == BYTES,
               "%d: came back otherwise", i);
}

TEST(no_more_than_is_allowed_or_granted)
{
    static const struct {
        uint64_t max, granted;
        int32_t code;
    } facts[] = {
        { BYTES - 1, 0, ERR_LIMIT },
        { BYTES, 1 << 20, ERR_BUSY },
    };
    for_each(fact, facts) {
        struct heard heard = { .max = fact->granted };
        struct spool *spool = NULL;
        struct stat kept;
        uv_loop_t loop;
        error err;
        struct spool_order order = {
            .loop = &loop, .max = fact->max, .grows = grant, .told = hear, .user = &heard
        };
        expect(uv_loop_init(&loop) == 0, "no loop");
        int file = order.file = memfd_create("kept", MFD_CLOEXEC);
        pid_t child = start(&order.pipe, true, 0, BYTES);
        expect(spool_out(&order, &spool, &err) == 0, "%s", err.text);
        finish(&loop);
        expect(heard.times == 1 && heard.why.code == fact->code, "it was told %s", heard.why.text);
        expect(fstat(file, &kept) == 0 && (uint64_t) kept.st_size <= heard.granted,
               "it has written more than it was granted");
        (void) status_of(child);
        (void) close(file);
    }
}

TEST(an_abandoned_copy_is_not_reported)
{
    for (int turns = 0; turns < 8; turns++) {
        struct heard heard = { 0 };
        struct spool *spool = NULL;
        uv_loop_t loop;
        error err;
        struct spool_order order = { .loop = &loop, .max = UINT64_MAX, .told = hear };
        order.user = &heard;
        expect(uv_loop_init(&loop) == 0, "no loop");
        int file = order.file = memfd_create("kept", MFD_CLOEXEC);
        pid_t child = start(&order.pipe, true, 0, (size_t) 1 << 40);
        expect(spool_out(&order, &spool, &err) == 0, "%s", err.text);
        for (int turn = 0; turn < turns; turn++)
            (void) uv_run(&loop, turn % 2 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
        spool_abandon(spool);
        disk_worker_close(&loop, file);
        finish(&loop);
        expect(heard.times == 0, "it was told after %d turns", turns);
        expect(status_of(child) == 3, "its writer does not hear that nobody reads");
    }
}

TESTS(CASE(several_at_once_carry_all_of_it_there_and_back),
      CASE(no_more_than_is_allowed_or_granted), CASE(an_abandoned_copy_is_not_reported))
