/* graveyard_test.c - the list of sessions says what happened, and does not grow. */
#include "daemon/graveyard.h"

#include "base/cleanup.h"
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    graveyard_note_begin(&sessions->graveyard, session);
    return session;
}

static void end(struct sessions *sessions, struct session *session)
{
    session->state = SESSION_ENDED;
    session->end = END_DELETED;
    session->ended_ms = session->created_ms + 1;
    (void) fail(&session->why, ERR_CONFLICT, "somebody deleted it");
    sessions->ended++;
    graveyard_note_end(&sessions->graveyard, session);
    if (sessions->ended > GRAVES_MOST && sessions->oldest->state == SESSION_ENDED)
        forget_oldest(sessions);
}

struct memory {
    unsigned count, alive;
    char last[SESSION_ID_SIZE], last_end[16];
};

static void remember(void *context, const struct grave *grave)
{
    struct memory *memory = context;
    memory->count++;
    memory->alive += strcmp(grave->end, "daemon") == 0;
    (void) snprintf(memory->last, sizeof memory->last, "%s", grave->id);
    (void) snprintf(memory->last_end, sizeof memory->last_end, "%s", grave->end);
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
    enum { MANY = 9000, LINE_MOST = 300 };
    char folder[] = "/tmp/graveyard-XXXXXX";
    struct sessions sessions = { 0 };
    struct memory memory = { 0 };
    error err;
    require(mkdtemp(folder) != NULL, "a folder");
    require(graveyard_open(folder, remember, &memory, &sessions.graveyard, &err) == 0, "%s",
            err.text);
    expect(memory.count == 0, "%u sessions in an empty folder", memory.count);
    off_t most = 0;
    for (unsigned number = 0; number < MANY; number++) {
        struct session *session = begin(&sessions, number);
        if (number < MANY - 1)
            end(&sessions, session);
        off_t size = size_of(folder, "sessions.log") + size_of(folder, "sessions.more.log");
        most = size > most ? size : most;
    }
    expect(most < (off_t) 5 * GRAVES_MOST * LINE_MOST, "%lld bytes", (long long) most);
    close_fd(&sessions.graveyard.file);
    close_fd(&sessions.graveyard.other);
    close_fd(&sessions.graveyard.lock);
    require(graveyard_open(folder, remember, &memory, &sessions.graveyard, &err) == 0, "%s",
            err.text);
    char last[SESSION_ID_SIZE];
    (void) snprintf(last, sizeof last, "ses_%032x", MANY - 1U);
    expect(memory.count == GRAVES_MOST && memory.alive == 1, "%u, %u of them alive", memory.count,
           memory.alive);
    expect(strcmp(memory.last, last) == 0 && strcmp(memory.last_end, "daemon") == 0,
           "%s ended by %s", memory.last, memory.last_end);
    while (sessions.oldest)
        forget_oldest(&sessions);
    close_fd(&sessions.graveyard.file);
    close_fd(&sessions.graveyard.other);
    close_fd(&sessions.graveyard.lock);
    static const char *const names[] = { "sessions.log", "sessions.more.log", "sessions.lock" };
    for (unsigned i = 0; i < 3; i++) {
        char path[128];
        (void) snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void) unlink(path);
    }
    (void) rmdir(folder);
}

TESTS(CASE(the_list_says_what_happened_and_does_not_grow))
