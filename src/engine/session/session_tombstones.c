/* session_tombstones.c - reads the files once, before the daemon is confined; later only adds
 * lines, and sometimes rewrites the other file. */
#include "engine/session/session_tombstones.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "engine/observe/log.h"
#include "engine/session/session_internal.h"
#include "engine/store/disk_worker.h"
#include "json/member.h"
#include "json/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MAX = 4 * TOMBSTONES_MAX };

static bool add_line(int fd, struct bytes *line)
{
    errno = ENOMEM;
    bytes_add_text(line, "\n");
    if (line->failed)
        return false;
    errno = ENOSPC; /* a short write gives no errno */
    return write(fd, line->data, line->size) == (ssize_t) line->size;
}

static void say_not_noted(void)
{
    log_event(SESSIONS_JOURNAL_FAILED, TEXT("cause", strerrordesc_np(errno)));
}

static void write_tombstone(const struct tombstone *tombstone, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "id", tombstone->id);
    json_string_field(out, "owner", tombstone->owner);
    json_number_field(out, "created_ms", tombstone->created_ms);
    json_number_field(out, "ended_ms", tombstone->ended_ms);
    json_string_field(out, "end", tombstone->end);
    json_string_field(out, "why", tombstone->why.text);
    json_close(out, '}');
}

static bool note(int fd, const struct session *session, bool has_ended)
{
    struct tombstone tombstone = { .created_ms = session->created_ms,
                                   .ended_ms = has_ended ? session->ended_ms : 0,
                                   .why = has_ended ? session->why : (error){ 0 } };
    (void) snprintf(tombstone.id, sizeof tombstone.id, "%s", session->id);
    (void) snprintf(tombstone.owner, sizeof tombstone.owner, "%s", session->owner);
    (void) snprintf(tombstone.end, sizeof tombstone.end, "%s", session_end_name(session->end));
    auto_bytes line = { 0 };
    write_tombstone(&tombstone, &line);
    return add_line(fd, &line);
}

/* Syncs the new file on a disk thread, and then empties the old one. */
struct turn_over {
    struct disk_job job;
    struct tombstones *tombstones;
    int fresh, emptied;
    bool is_on_disk;
};

static void bring_to_disk(void *user)
{
    struct turn_over *turn = user;
    turn->is_on_disk = fdatasync(turn->fresh) == 0;
}

static void empty_other(void *user)
{
    struct turn_over *turn = user;
    turn->tombstones->is_turning = false;
    if (!turn->is_on_disk || (turn->tombstones->other >= 0 && ftruncate(turn->emptied, 0) < 0))
        say_not_noted();
    close_fd(&turn->fresh);
    close_fd(&turn->emptied);
    free(turn);
}

/* If this fails, both files have the same contents, which is harmless. */
static void turn_over(struct tombstones *tombstones, uv_loop_t *loop)
{
    struct turn_over *turn = calloc(1, sizeof *turn);
    if (!turn)
        return;
    *turn = (struct turn_over){ .job = { bring_to_disk, empty_other, turn, NULL },
                                .tombstones = tombstones,
                                .fresh = fcntl(tombstones->file, F_DUPFD_CLOEXEC, 0),
                                .emptied = fcntl(tombstones->other, F_DUPFD_CLOEXEC, 0) };
    tombstones->is_turning = true;
    disk_worker_do(loop, &turn->job);
}

/* Gives  *ret_lines. False: the disk is full, and the current file stays in use. */
static bool write_other(int file, const struct sessions *sessions, unsigned *ret_lines)
{
    unsigned left_out = sessions->ended > TOMBSTONES_MAX ? sessions->ended - TOMBSTONES_MAX : 0;
    *ret_lines = 0;
    if (ftruncate(file, 0) < 0)
        return false;
    for (const struct session *session = sessions->oldest; session; session = session->newer) {
        bool has_ended = session->state == SESSION_ENDED;
        if (has_ended && left_out > 0) {
            left_out--;
            continue;
        }
        if (!note(file, session, has_ended))
            return false;
        ++*ret_lines;
    }
    return true;
}

/* If the daemon dies meanwhile, both files agree on all sessions that are in both. */
static void begin_anew(struct tombstones *tombstones, const struct sessions *sessions)
{
    unsigned lines;
    if (tombstones->is_turning)
        return;
    if (!write_other(tombstones->other, sessions, &lines)) {
        say_not_noted();
        tombstones->lines = LINES_MAX / 2; /* tried again after as many more lines */
        return;
    }
    int emptied = tombstones->file;
    tombstones->file = tombstones->other;
    tombstones->other = emptied;
    tombstones->lines = lines;
    turn_over(tombstones, sessions->loop);
}

static void note_next(struct tombstones *tombstones, const struct session *session, bool has_ended)
{
    if (tombstones->file < 0)
        return;
    if (!note(tombstones->file, session, has_ended))
        say_not_noted();
    if (++tombstones->lines >= LINES_MAX)
        begin_anew(tombstones, session->sessions);
}

void tombstones_note_begin(struct tombstones *tombstones, const struct session *session)
{
    note_next(tombstones, session, false);
}

void tombstones_note_end(struct tombstones *tombstones, const struct session *session)
{
    note_next(tombstones, session, true);
}

static void read_word(struct json_object *line, const char *key, char *text, size_t size)
{
    const char *found = member_text(line, key);
    (void) snprintf(text, size, "%s", found ? found : "");
}

/* A line that cannot be read, such as the last one of a daemon that was killed, is skipped. */
static bool read_tombstone(const char *text, struct tombstone *tombstone)
{
    auto_json line = json_tokener_parse(text);
    *tombstone = (struct tombstone){ 0 };
    if (json_object_is_type(line, json_type_object)) {
        read_word(line, "id", tombstone->id, sizeof tombstone->id);
        read_word(line, "owner", tombstone->owner, sizeof tombstone->owner);
        read_word(line, "end", tombstone->end, sizeof tombstone->end);
        read_word(line, "why", tombstone->why.text, sizeof tombstone->why.text);
        tombstone->created_ms = member_number(line, "created_ms");
        tombstone->ended_ms = member_number(line, "ended_ms");
    }
    return tombstone->id[0] != '\0';
}

struct tombstone_list {
    size_t count;
    struct tombstone list[2 * TOMBSTONES_MAX];
};

static void keep_tombstone(struct tombstone_list *known, const struct tombstone *tombstone)
{
    for (size_t i = known->count; i-- > 0;)
        if (strcmp(known->list[i].id, tombstone->id) == 0) {
            if (known->list[i].ended_ms == 0)
                known->list[i] = *tombstone;
            return;
        }
    if (known->count == COUNT_OF(known->list)) {
        memmove(known->list, known->list + TOMBSTONES_MAX, TOMBSTONES_MAX * sizeof *known->list);
        known->count = TOMBSTONES_MAX;
    }
    known->list[known->count++] = *tombstone;
}

/* A list that cannot be read is an error: as an empty list it would replace the file. */
static int read_tombstones(int folder, const char *name, struct tombstone_list *known, error *err)
{
    auto_text line = NULL;
    size_t room = 0;
    struct tombstone tombstone;
    auto_fd old = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (old < 0 && errno == ENOENT)
        return 0;
    FILE *file = old < 0 ? NULL : fdopen(old, "r");
    if (!file)
        return fail_os(err, "read the list of sessions");
    (void) take_fd(&old);
    while (getline(&line, &room, file) > 0)
        if (read_tombstone(line, &tombstone))
            keep_tombstone(known, &tombstone);
    int result = feof(file) ? 0 : fail_os(err, "read the list of sessions");
    (void) fclose(file);
    return result;
}

/* The file that was written last is read last, since it is newer. */
static int read_both(int folder, struct tombstone_list *known, error *err)
{
    static const char *const names[] = { "sessions.log", "sessions.more.log" };
    struct stat first = { 0 }, more = { 0 };
    (void) fstatat(folder, names[0], &first, AT_SYMLINK_NOFOLLOW);
    (void) fstatat(folder, names[1], &more, AT_SYMLINK_NOFOLLOW);
    bool is_turned = first.st_mtim.tv_sec != more.st_mtim.tv_sec
                         ? first.st_mtim.tv_sec > more.st_mtim.tv_sec
                         : first.st_mtim.tv_nsec > more.st_mtim.tv_nsec;
    return read_tombstones(folder, names[is_turned], known, err) < 0
               ? -1
               : read_tombstones(folder, names[!is_turned], known, err);
}

/* Writes what was read into a file that replaces the old one by rename, synced. */
static int write_tombstones(int folder, const struct tombstone_list *known, size_t first,
                            error *err)
{
    auto_fd file = openat(folder, "sessions.log.new",
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return fail_os(err, "write the list of sessions");
    for (size_t i = first; i < known->count; i++) {
        auto_bytes line = { 0 };
        write_tombstone(&known->list[i], &line);
        if (!add_line(file, &line))
            return fail_os(err, "write the list of sessions");
    }
    if (fsync(file) < 0 || renameat(folder, "sessions.log.new", folder, "sessions.log") < 0 ||
        fsync(folder) < 0)
        return fail_os(err, "write the list of sessions");
    return take_fd(&file);
}

/* Ends the sessions that their daemon did not end. */
static void settle(struct tombstone_list *known)
{
    for (size_t i = 0; i < known->count; i++) {
        struct tombstone *tombstone = &known->list[i];
        if (tombstone->ended_ms != 0)
            continue;
        tombstone->ended_ms = wall_clock_ms();
        (void) snprintf(tombstone->end, sizeof tombstone->end, "%s", session_end_name(END_DAEMON));
        (void) fail(&tombstone->why, ERR_UNAVAILABLE,
                    "the glovebox that served it ended without ending its sessions");
    }
}

int tombstones_take_over(struct tombstones *tombstones, tombstone_found *found, void *context,
                         error *err)
{
    if (tombstones->folder < 0 || tombstones->file >= 0)
        return 0;
    if (flock(tombstones->lock, LOCK_EX | LOCK_NB) < 0)
        return TOMBSTONES_ELSEWHERE;
    struct tombstone_list *known = calloc(1, sizeof *known);
    if (!known)
        return fail(err, ERR_SYSTEM, "no memory for the list of sessions");
    int result = read_both(tombstones->folder, known, err);
    size_t first = known->count > TOMBSTONES_MAX ? known->count - TOMBSTONES_MAX : 0;
    settle(known);
    auto_fd file = result < 0 ? -1 : write_tombstones(tombstones->folder, known, first, err);
    auto_fd other =
        file < 0 ? -1
                 : openat(tombstones->folder, "sessions.more.log",
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (size_t i = first; other >= 0 && i < known->count; i++)
        found(context, &known->list[i]);
    tombstones->lines = (unsigned) (known->count - first);
    free(known);
    if (other < 0)
        return file < 0 ? -1 : fail_os(err, "write the list of sessions");
    tombstones->file = take_fd(&file);
    tombstones->other = take_fd(&other);
    return 0;
}

int tombstones_open(const char *state, tombstone_found *found, void *context,
                    struct tombstones *ret_tombstones, error *err)
{
    *ret_tombstones = (struct tombstones){ .file = -1, .other = -1, .lock = -1, .folder = -1 };
    if (!state)
        return 0;
    ret_tombstones->folder = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret_tombstones->folder < 0)
        return fail_os(err, "open the state folder '%.100s'", state);
    ret_tombstones->lock = openat(ret_tombstones->folder, "sessions.lock",
                                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (ret_tombstones->lock < 0)
        return fail_os(err, "open the lock of the list of sessions");
    int result = tombstones_take_over(ret_tombstones, found, context, err);
    if (result == TOMBSTONES_ELSEWHERE)
        log_event(SESSIONS_SHARED_STATE,
                  TEXT("cause", "another daemon keeps its list of sessions in this state folder"));
    return result < 0 ? -1 : 0;
}

void tombstones_close(struct tombstones *tombstones)
{
    close_fd(&tombstones->file);
    close_fd(&tombstones->other);
    close_fd(&tombstones->lock);
    close_fd(&tombstones->folder);
    *tombstones = (struct tombstones){ .file = -1, .other = -1, .lock = -1, .folder = -1 };
}
