/* service_files.h - files of a session: a question with one answer, or a stream of bytes out of the
 * session or into it. Nothing is kept beyond a window, however large a file is: who does not take
 * is not sent more. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    FILE_PATH_MAX = 4095, /* bytes */
    FILE_DEPTH_MAX = 64,
    FILE_ENTRIES_MAX = 100000, /* of a listing */
    FILE_ENTRIES_DEFAULT = 10000,
};

enum file_action {
    /* questions */
    FILE_STAT,
    FILE_LIST,
    FILE_MAKE_FOLDER,
    FILE_MOVE,
    FILE_REMOVE,
    /* streams out: of a file, of a folder as a tar, of the changes below a folder */
    FILE_READ,
    FILE_PACK,
    FILE_WATCH,
    /* streams in: a file, a tar that is unpacked into a folder */
    FILE_WRITE,
    FILE_UNPACK,
};

struct file_order {
    enum file_action action;
    struct waker waker;       /* called whenever it may have got further */
    const char *session;      /* its id */
    const struct bytes *path; /* as a caller gives it: file_path_check() */
    const struct bytes *to;   /* of MOVE; NULL: no other has one */
    uint64_t depth, max;      /* of LIST */
    uint64_t from, size;      /* of READ: the part; UINT64_MAX: to its end */
    bool facts_only;          /* of READ: no bytes come */
    bool is_new;              /* of WRITE: it fails where something has this name */
    uint32_t mode;            /* of WRITE: permissions; 0: as they were, or 0644 */
    bool is_recursive;        /* of WATCH */
};

/* What stands at a path. The texts are borrowed for as long as the task; none ends with NUL. */
struct file_entry {
    const char *path, *target; /* target: of a link, where it leads */
    size_t path_size, target_size;
    uint64_t size;
    uint32_t mode, target_mode; /* type and permissions, as of stat(2); target_mode 0: nothing */
    int64_t mtime_ns;
};

struct file_change {
    const char *what;        /* "create", "write", "remove", "rename", "mode"; "lost": look again */
    struct file_entry entry; /* mode 0: nothing stands there any more */
};

/* One question or stream that is under way, or its answer. */
struct file_task;

/* Begins one. Counts it, in the log and as use of the session.
 * Fails  as service_session_enter(), and ERR_BAD_REQUEST  a path that is none; ERR_CONFLICT  the
 *        session does not run; ERR_POLICY  its outputs are withheld; ERR_BUSY  too many */
int service_file_begin(const struct service *service, const struct caller *caller,
                       const struct file_order *order, struct file_task **ret_task, error *err);
void file_task_free(struct file_task *task); /* what is under way is given up; NULL is fine */

enum { FILE_LATER = 0, FILE_READY = 1 };

/* FILE_READY: a question is answered, what goes in has been taken whole, what comes out can be
 * taken. Fails  with what came of it. */
int file_task_look(const struct file_task *task, error *err);
const struct bytes *file_task_path(const struct file_task *task); /* as it was looked up */

/* The answer to STAT, LIST and WRITE: entries, sorted by path, each given once. */
bool file_task_next_entry(struct file_task *task, struct file_entry *ret_entry);
size_t file_task_entries(const struct file_task *task); /* that are left */
bool file_task_is_cut(const struct file_task *task);    /* there are more than LIST asked for */
/* What UNPACK left out: paths, each ended by NUL. */
const struct bytes *file_task_skipped(const struct file_task *task);

/* Of READ, once it is ready: size, mode and time of the file, and its media type by its name. */
void file_task_facts(const struct file_task *task, struct file_entry *ret_facts);
const char *file_task_media_type(struct file_task *task);

/* Takes bytes of READ and PACK. Returns how many, or as enum flow_end. */
ssize_t file_task_take(struct file_task *task, char *bytes, size_t size);
/* Takes a change of WATCH. Returns 1, or as enum flow_end. */
int file_task_next_change(struct file_task *task, struct file_change *ret_change);

/* Gives bytes to WRITE or UNPACK. Returns `size`; 0: there is no room now, the waker follows.
 * Fails  with what ended it. */
ssize_t file_task_give(struct file_task *task, const char *bytes, size_t size, error *err);
void file_task_end_input(struct file_task *task);

/* Checks a path as a caller gives it: parts that are names, "/" before it or none. A last "/" is
 * taken away. Fails  ERR_BAD_REQUEST. */
int file_path_check(struct bytes *path, error *err);
