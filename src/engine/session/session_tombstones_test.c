/* session_tombstones_test.c - the list of sessions is correct, and does not grow. */
#include "engine/session/session_tombstones.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"
#include "engine/session/session_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uv_loop_t loop;

static void forget_oldest(struct sessions *sessions)
{
    struct session *oldest = sessions->oldest;
    sessions->oldest = oldest->newer;
    free(oldest);
    sessions->ended--;
}

static struct session *begin(struct sessions *sessions, unsigned number)
{
    struct session *session = calloc(1, sizeof *session);
    require(session != NULL, "memory");
    (void) snprintf(session->id, sizeof session->id, "ses_%032x", number);
    (void) snprintf(session->owner, sizeof session->owner, "owner");
    session->sessions = sessions;
    session->created_ms = number + 1;
    *(sessions->newest ? &sessions->newest->newer : &sessions->oldest) = session;
    sessions->newest = session;
    tombstones_note_begin(&sessions->tombstones, session);
    return session;
}

static void end(struct sessions *sessions, struct session *session)
{
    session->state = SESSION_ENDED;
    session->end = END_DELETED;
    session->ended_ms = session->created_ms + 1;
    (void) fail(&session->why, ERR_CONFLICT, "it was deleted");
    sessions->ended++;
    tombstones_note_end(&sessions->tombstones, session);
    if (sessions->ended > TOMBSTONES_MAX && sessions->oldest->state == SESSION_ENDED)
        forget_oldest(sessions);
}

struct memory {
    unsigned count, alive;
    char last[SESSION_ID_SIZE], last_end[16];
};

static void remember(void *context, const struct tombstone *tombstone)
{
    struct memory *memory = context;
    memory->count++;
    memory->alive += strcmp(tombstone->end, "daemon") == 0;
    (void) snprintf(memory->last, sizeof memory->last, "%s", tombstone->id);
    (void) snprintf(memory->last_end, sizeof memory->last_end, "%s", tombstone->end);
}

static void close_files(struct sessions *sessions)
{
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    tombstones_close(&sessions->tombstones);
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = { "sessions.log", "sessions.log.new", "sessions.more.log",
                                         "sessions.lock" };
    for_each(name, names) {
        char path[128];
        (void) snprintf(path, sizeof path, "%s/%s", folder, *name);
        (void) unlink(path);
    }
    expect(rmdir(folder) == 0, "remove %s", folder);
}

static off_t size_of(const char *folder, const char *name)
{
    char path[128];
    struct stat status;
    (void) snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &status) < 0 ? -1 : status.st_size;
}

TEST(the_list_says_what_happened_and_does_not_grow)
{
    enum { MANY = 9000, ROW_MAX = 300 };
    char folder[] = "/tmp/tombstones-XXXXXX";
    struct sessions sessions = { .loop = &loop };
    struct memory memory = { 0 };
    error err;
    require(mkdtemp(folder) != NULL && uv_loop_init(&loop) == 0, "a folder");
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "%s",
            err.text);
    expect(memory.count == 0, "%u sessions in an empty folder", memory.count);
    off_t max = 0;
    for (unsigned number = 0; number < MANY; number++) {
        struct session *session = begin(&sessions, number);
        if (number < MANY - 1)
            end(&sessions, session);
        (void) uv_run(&loop, UV_RUN_DEFAULT);
        off_t size = size_of(folder, "sessions.log") + size_of(folder, "sessions.more.log");
        max = size > max ? size : max;
    }
    expect(max < (off_t) 5 * TOMBSTONES_MAX * ROW_MAX, "%lld bytes", (long long) max);
    close_files(&sessions);
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "%s",
            err.text);
    char last[SESSION_ID_SIZE];
    (void) snprintf(last, sizeof last, "ses_%032x", MANY - 1U);
    expect(memory.count == TOMBSTONES_MAX && memory.alive == 1, "%u, %u of them alive",
           memory.count, memory.alive);
    expect(strcmp(memory.last, last) == 0 && strcmp(memory.last_end, "daemon") == 0,
           "%s ended by %s", memory.last, memory.last_end);
    while (sessions.oldest)
        forget_oldest(&sessions);
    close_files(&sessions);
    remove_folder(folder);
}

/* Bounds the size of files: longer writes fail, as on a full disk. */
static void bound_files(rlim_t max)
{
    struct rlimit limit;
    require(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    limit.rlim_cur = max < limit.rlim_max ? max : limit.rlim_max;
    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
}

TEST(a_full_disk_empties_no_list)
{
    char folder[] = "/tmp/tombstones-XXXXXX";
    struct sessions sessions = { .loop = &loop };
    struct memory memory = { 0 };
    error err;
    require(mkdtemp(folder) != NULL, "a folder");
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "open");
    for (unsigned number = 0; number < 20; number++)
        (void) begin(&sessions, number);
    close_files(&sessions);
    off_t size = size_of(folder, "sessions.log");

    bound_files(1000);
    memory = (struct memory){ 0 };
    expect(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) < 0,
           "it does not start with a list that it cannot write");
    close_files(&sessions);
    expect(size_of(folder, "sessions.log") == size, "the list is what it was");
    bound_files(RLIM_INFINITY);

    memory = (struct memory){ 0 };
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "open");
    expect(memory.count == 20, "%u sessions are remembered", memory.count);
    bound_files(1); /* while it runs: what is there stays */
    sessions.tombstones.lines = 4 * TOMBSTONES_MAX;
    tombstones_note_end(&sessions.tombstones, sessions.oldest);
    bound_files(RLIM_INFINITY);
    close_files(&sessions);
    memory = (struct memory){ 0 };
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "open");
    expect(memory.count == 20, "%u sessions are remembered", memory.count);
    close_files(&sessions);
    while (sessions.oldest)
        forget_oldest(&sessions);
    remove_folder(folder);
}

/* As if the kernel had no memory or descriptors for it, or its blocks could not be read. */
TEST(a_list_that_cannot_be_read_is_not_replaced)
{
    char folder[] = "/tmp/tombstones-XXXXXX";
    struct sessions sessions = { .loop = &loop };
    struct memory memory = { 0 };
    error err;
    require(mkdtemp(folder) != NULL, "a folder");
    auto_fd place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "open");
    (void) begin(&sessions, 1);
    close_files(&sessions);
    require(renameat(place, "sessions.log", place, "kept") == 0 &&
                symlinkat("kept", place, "sessions.log") == 0,
            "a link is not followed");
    expect(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) < 0 &&
               strstr(err.text, "read the list of sessions"),
           "%u sessions, %s", memory.count, err.text);
    close_files(&sessions);
    require(renameat(place, "kept", place, "sessions.log") == 0, "as it was");
    require(tombstones_open(folder, remember, &memory, &sessions.tombstones, &err) == 0, "open");
    expect(memory.count == 1, "%u sessions are remembered", memory.count);
    close_files(&sessions);
    while (sessions.oldest)
        forget_oldest(&sessions);
    remove_folder(folder);
}

TESTS(CASE(the_list_says_what_happened_and_does_not_grow), CASE(a_full_disk_empties_no_list),
      CASE(a_list_that_cannot_be_read_is_not_replaced))
