/* session_tombstones.c - reads the files once, before the daemon is confined; then only adds lines,
 * and now and then writes the other file anew. */
#include "engine/store/session_tombstones.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "engine/observe/log.h"
#include "engine/store/disk_worker.h"
#include "json/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MOST = 4 * GRAVES_MOST };

static bool add_line(int fd, struct bytes *line)
{
    errno = ENOMEM;
    bytes_add_text(line, "\n");
    if (line->failed)
        return false;
    errno = ENOSPC; /* a short write says no more */
    return write(fd, line->data, line->size) == (ssize_t) line->size;
}

static void say_not_noted(void)
{
    log_event(LOG_WARNING, "sessions.not_noted", TEXT("cause", strerrordesc_np(errno)));
}

static void write_grave(const struct grave *grave, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "id", grave->id);
    json_string_field(out, "owner", grave->owner);
    json_number_field(out, "created_ms", grave->created_ms);
    json_number_field(out, "ended_ms", grave->ended_ms);
    json_string_field(out, "end", grave->end);
    json_string_field(out, "why", grave->why.text);
    json_close(out, '}');
}

static bool note(int fd, const struct session *session, bool has_ended)
{
    struct grave grave = { .created_ms = session->created_ms,
                           .ended_ms = has_ended ? session->ended_ms : 0,
                           .why = has_ended ? session->why : (error){ 0 } };
    (void) snprintf(grave.id, sizeof grave.id, "%s", session->id);
    (void) snprintf(grave.owner, sizeof grave.owner, "%s", session->owner);
    (void) snprintf(grave.end, sizeof grave.end, "%s", session_end_name(session->end));
    auto_bytes line = { 0 };
    write_grave(&grave, &line);
    return add_line(fd, &line);
}

/* --- the other file -----------------------------------------------------------------------------
 */

/* The file that was written anew is brought to disk beside the loop; then the old one is emptied.
 */
struct turn_over {
    struct beside_job job;
    struct graveyard *graveyard;
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
    turn->graveyard->is_turning = false;
    if (!turn->is_on_disk || (turn->graveyard->other >= 0 && ftruncate(turn->emptied, 0) < 0))
        say_not_noted();
    close_fd(&turn->fresh);
    close_fd(&turn->emptied);
    free(turn);
}

/* What cannot be begun is left out: then both files say the same. */
static void turn_over(struct graveyard *graveyard, uv_loop_t *loop)
{
    struct turn_over *turn = calloc(1, sizeof *turn);
    if (!turn)
        return;
    *turn = (struct turn_over){ .job = { bring_to_disk, empty_other, turn, NULL },
                                .graveyard = graveyard,
                                .fresh = fcntl(graveyard->file, F_DUPFD_CLOEXEC, 0),
                                .emptied = fcntl(graveyard->other, F_DUPFD_CLOEXEC, 0) };
    graveyard->is_turning = true;
    beside_do(loop, &turn->job);
}

/* Gives  *ret_lines. False: the disk has no room; the file that there is goes on. */
static bool write_other(int file, const struct sessions *sessions, unsigned *ret_lines)
{
    unsigned left_out = sessions->ended > GRAVES_MOST ? sessions->ended - GRAVES_MOST : 0;
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

/* If we are killed on the way, both files say the same of whatever is in both. */
static void begin_anew(struct graveyard *graveyard, const struct sessions *sessions)
{
    unsigned lines;
    if (graveyard->is_turning)
        return;
    if (!write_other(graveyard->other, sessions, &lines)) {
        say_not_noted();
        graveyard->lines = LINES_MOST / 2; /* tried again after so many */
        return;
    }
    int emptied = graveyard->file;
    graveyard->file = graveyard->other;
    graveyard->other = emptied;
    graveyard->lines = lines;
    turn_over(graveyard, sessions->loop);
}

static void note_next(struct graveyard *graveyard, const struct session *session, bool has_ended)
{
    if (graveyard->file < 0)
        return;
    if (!note(graveyard->file, session, has_ended))
        say_not_noted();
    if (++graveyard->lines >= LINES_MOST)
        begin_anew(graveyard, session->sessions);
}

void graveyard_note_begin(struct graveyard *graveyard, const struct session *session)
{
    note_next(graveyard, session, false);
}

void graveyard_note_end(struct graveyard *graveyard, const struct session *session)
{
    note_next(graveyard, session, true);
}

static void read_word(struct json_object *line, const char *key, char *text, size_t size)
{
    struct json_object *value = NULL;
    (void) json_object_object_get_ex(line, key, &value);
    const char *found =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    (void) snprintf(text, size, "%s", found);
}

static int64_t read_count(struct json_object *line, const char *key)
{
    struct json_object *value = NULL;
    (void) json_object_object_get_ex(line, key, &value);
    return json_object_get_int64(value);
}

/* A line that cannot be read, such as the last one of a daemon that was killed, is left out. */
static bool read_grave(const char *text, struct grave *grave)
{
    struct json_object *line = json_tokener_parse(text);
    *grave = (struct grave){ 0 };
    if (json_object_is_type(line, json_type_object)) {
        read_word(line, "id", grave->id, sizeof grave->id);
        read_word(line, "owner", grave->owner, sizeof grave->owner);
        read_word(line, "end", grave->end, sizeof grave->end);
        read_word(line, "why", grave->why.text, sizeof grave->why.text);
        grave->created_ms = read_count(line, "created_ms");
        grave->ended_ms = read_count(line, "ended_ms");
    }
    (void) json_object_put(line);
    return grave->id[0] != '\0';
}

struct graves {
    size_t count;
    struct grave list[2 * GRAVES_MOST];
};

static void keep_grave(struct graves *graves, const struct grave *grave)
{
    for (size_t i = graves->count; i-- > 0;)
        if (strcmp(graves->list[i].id, grave->id) == 0) {
            if (graves->list[i].ended_ms == 0)
                graves->list[i] = *grave;
            return;
        }
    if (graves->count == COUNT_OF(graves->list)) {
        memmove(graves->list, graves->list + GRAVES_MOST, GRAVES_MOST * sizeof *graves->list);
        graves->count = GRAVES_MOST;
    }
    graves->list[graves->count++] = *grave;
}

static void read_graves(int folder, const char *name, struct graves *graves)
{
    char *line = NULL;
    size_t room = 0;
    struct grave grave;
    auto_fd old = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file = old < 0 ? NULL : fdopen(old, "r");
    if (!file)
        return;
    (void) take_fd(&old);
    while (getline(&line, &room, file) > 0)
        if (read_grave(line, &grave))
            keep_grave(graves, &grave);
    free(line);
    (void) fclose(file);
}

/* The one that was written last has what is new: it is read last. */
static void read_both(int folder, struct graves *graves)
{
    static const char *const names[] = { "sessions.log", "sessions.more.log" };
    struct stat first = { 0 }, more = { 0 };
    (void) fstatat(folder, names[0], &first, AT_SYMLINK_NOFOLLOW);
    (void) fstatat(folder, names[1], &more, AT_SYMLINK_NOFOLLOW);
    bool is_turned = first.st_mtim.tv_sec != more.st_mtim.tv_sec
                         ? first.st_mtim.tv_sec > more.st_mtim.tv_sec
                         : first.st_mtim.tv_nsec > more.st_mtim.tv_nsec;
    read_graves(folder, names[is_turned], graves);
    read_graves(folder, names[!is_turned], graves);
}

/* What was read goes into a file that takes the old one's place, whole and on disk. */
static int write_graves(int folder, const struct graves *graves, size_t first, error *err)
{
    auto_fd file = openat(folder, "sessions.log.new",
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return fail_os(err, "write the list of sessions");
    for (size_t i = first; i < graves->count; i++) {
        auto_bytes line = { 0 };
        write_grave(&graves->list[i], &line);
        if (!add_line(file, &line))
            return fail_os(err, "write the list of sessions");
    }
    if (fsync(file) < 0 || renameat(folder, "sessions.log.new", folder, "sessions.log") < 0 ||
        fsync(folder) < 0)
        return fail_os(err, "write the list of sessions");
    return take_fd(&file);
}

/* Those that their daemon has not told the end of. */
static void settle(struct graves *graves)
{
    for (size_t i = 0; i < graves->count; i++) {
        struct grave *grave = &graves->list[i];
        if (grave->ended_ms != 0)
            continue;
        grave->ended_ms = wall_clock_ms();
        (void) snprintf(grave->end, sizeof grave->end, "%s", session_end_name(END_DAEMON));
        (void) fail(&grave->why, ERR_UNAVAILABLE,
                    "the glovebox that served it ended without ending its sessions");
    }
}

int graveyard_take_over(struct graveyard *graveyard, grave_found *found, void *context, error *err)
{
    if (graveyard->folder < 0 || graveyard->file >= 0)
        return 0;
    if (flock(graveyard->lock, LOCK_EX | LOCK_NB) < 0)
        return GRAVEYARD_ELSEWHERE;
    struct graves *graves = calloc(1, sizeof *graves);
    if (!graves)
        return fail(err, ERR_SYSTEM, "no memory for the list of sessions");
    read_both(graveyard->folder, graves);
    size_t first = graves->count > GRAVES_MOST ? graves->count - GRAVES_MOST : 0;
    settle(graves);
    auto_fd file = write_graves(graveyard->folder, graves, first, err);
    auto_fd other =
        file < 0 ? -1
                 : openat(graveyard->folder, "sessions.more.log",
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (size_t i = first; other >= 0 && i < graves->count; i++)
        found(context, &graves->list[i]);
    graveyard->lines = (unsigned) (graves->count - first);
    free(graves);
    if (other < 0)
        return file < 0 ? -1 : fail_os(err, "write the list of sessions");
    graveyard->file = take_fd(&file);
    graveyard->other = take_fd(&other);
    return 0;
}

int graveyard_open(const char *state, grave_found *found, void *context,
                   struct graveyard *ret_graveyard, error *err)
{
    *ret_graveyard = (struct graveyard){ .file = -1, .other = -1, .lock = -1, .folder = -1 };
    if (!state)
        return 0;
    ret_graveyard->folder = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret_graveyard->folder < 0)
        return fail_os(err, "open the state folder '%.100s'", state);
    ret_graveyard->lock = openat(ret_graveyard->folder, "sessions.lock",
                                 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (ret_graveyard->lock < 0)
        return fail_os(err, "open the lock of the list of sessions");
    int result = graveyard_take_over(ret_graveyard, found, context, err);
    if (result == GRAVEYARD_ELSEWHERE)
        log_event(LOG_NOTICE, "sessions.shared_state",
                  TEXT("cause", "another daemon notes its sessions in this state folder"));
    return result < 0 ? -1 : 0;
}

void graveyard_close(struct graveyard *graveyard)
{
    close_fd(&graveyard->file);
    close_fd(&graveyard->other);
    close_fd(&graveyard->lock);
    close_fd(&graveyard->folder);
    *graveyard = (struct graveyard){ .file = -1, .other = -1, .lock = -1, .folder = -1 };
}
