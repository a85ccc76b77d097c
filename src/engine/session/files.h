/* files.h - files of a session: one task is one question to the sandbox's init, or one
 * stream from it or to it. Nothing is kept beyond a window of FILE_WINDOW bytes, however large a
 * file is: who does not take is not sent more. */
#pragma once

#include "base/bytes.h"
#include "engine/session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FILE_WINDOW = 1 << 20, FILE_ENTRIES_MAX = 100000 };

struct file_entry {
    struct agent_entry facts;
    size_t path, path_size; /* in file_task.names; the target of a link follows it */
    size_t target_size;
};

struct file_task {
    struct session *session; /* NULL once it has ended */
    struct session_operation operation;
    void (*woken)(void *context); /* something came, or may go */
    void *context;
    enum agent_kind kind;

    bool stands;    /* OPENED or FILE has come */
    bool is_ended;  /* DONE has come, or the session has ended: `failure` says how */
    bool is_cut;    /* a listing had more entries than were asked for */
    bool has_ended; /* of what flows out: END has come */
    bool input_has_ended;
    error failure; /* code ERR_NONE: well */

    struct agent_file file;     /* of READ */
    struct file_entry *entries; /* of STAT, LIST, WRITE */
    size_t entry_count, entry_room;
    struct bytes names;
    size_t listed_bytes;  /* of this listing, among those that all listings may hold */
    struct bytes skipped; /* paths, each ended by NUL, that a tar left out */

    struct bytes bytes; /* DATA that nobody has taken yet; of a watch: events as text */
    size_t taken;       /* of them */
    uint64_t owed;      /* credit that init has not been given back */
    uint64_t change_bytes;
    bool loses_changes; /* more of them have come than are kept for whoever reads */
};

/* What is asked: the order's own struct, a path, and a second one for MOVE. */
struct file_order {
    enum agent_kind kind;
    const void *head;
    size_t head_size;
    const struct bytes *path, *to;
};

/* Begins a task; `woken` and `context` have been set, the rest is zero.
 * Fails  ERR_BAD_REQUEST  a path that is none; else as session_begin(). */
int file_task_begin(struct file_task *task, struct session *session, const struct file_order *order,
                    error *err);

/* Forgets it; what is under way is given up. */
void file_task_close(struct file_task *task);

/* Takes at most `size` bytes of what has come. Returns how many; 0: none now. */
size_t file_task_take(struct file_task *task, char *bytes, size_t size);

/* Gives bytes to a WRITE or UNPACK. Returns `size`; 0: there is no room now, `woken` follows. */
size_t file_task_give(struct file_task *task, const char *bytes, size_t size);
void file_task_end_input(struct file_task *task);

/* Checks a path as a client gives it: parts that are names, "/" before it or none. A last "/" is
 * taken away. Fails  ERR_BAD_REQUEST. */
int session_path_check(struct bytes *path, error *err);

/* One entry as JSON: {"path", "name", "type", "size", "mode", "modified", …}. */
void file_entry_write(const struct file_task *task, const struct file_entry *entry,
                      struct bytes *out);
/* "path", and "path_base64" if it is not UTF-8. */
void file_path_write(const char *path, size_t size, struct bytes *out);

/* directory_order.c: orders the entry that was added last among the others; takes the first by
 * path, which goes to the end, behind those that are left. */
void directory_order_last(struct file_task *task);
const struct file_entry *directory_take_first(struct file_task *task);
