/* service_files.h - files of a session: questions with one answer, and streams of bytes from or to
 * the session. No more than a window of a file is in memory: a slow receiver is sent no more. */
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
    /* streams out: a file, a folder as a tar, changes below a folder */
    FILE_READ,
    FILE_PACK,
    FILE_WATCH,
    /* streams in: a file, a tar that is unpacked into a folder */
    FILE_WRITE,
    FILE_UNPACK,
};

struct file_order {
    enum file_action action;
    struct waker waker;       /* called when there may be progress */
    const char *session;      /* its id */
    const struct bytes *path; /* checked by file_path_check() */
    const struct bytes *to;   /* of MOVE; else NULL */
    uint64_t depth, max;      /* of LIST */
    uint64_t from, size;      /* of READ: the part; UINT64_MAX: to its end */
    bool facts_only;          /* of READ: no bytes are sent */
    bool is_new;              /* of WRITE: fails if the path exists */
    uint32_t mode;            /* of WRITE: permissions; 0: unchanged, or 0644 */
    bool is_recursive;        /* of WATCH */
};

/* What exists at a path. The texts are valid while the task is; none ends with NUL. */
struct file_entry {
    const char *path, *target; /* target: of a symbolic link */
    size_t path_size, target_size;
    uint64_t size;
    uint32_t mode, target_mode; /* as in stat(2); target_mode 0: no target */
    int64_t mtime_ns;
};

struct file_change {
    const char
        *what; /* "create", "write", "remove", "rename", "mode"; "lost": read the folder again */
    struct file_entry entry; /* mode 0: the path does not exist any more */
};

/* A question or a stream, and its answer. */
struct file_task;

/* Begins a task, logs it, and counts it as use of the session. Fails  as service_session_enter(),
 * and ERR_BAD_REQUEST  invalid path; ERR_CONFLICT  the session does not run; ERR_POLICY  its output
 * is withheld; ERR_BUSY  too many tasks */
int service_file_begin(const struct service *service, const struct caller *caller,
                       const struct file_order *order, struct file_task **ret_task, error *err);
void file_task_free(struct file_task *task); /* cancels it if it has not ended; NULL is accepted */

enum { FILE_LATER = 0, FILE_READY = 1 };

/* FILE_READY: a question is answered, a stream in was taken whole, a stream out can be read. Fails
 * with the failure of the task. */
int file_task_look(const struct file_task *task, error *err);
const struct bytes *file_task_path(const struct file_task *task); /* the resolved path */

/* Takes the next entry of STAT, LIST or WRITE; they are sorted by path. */
bool file_task_next_entry(struct file_task *task, struct file_entry *ret_entry);
size_t file_task_entries(const struct file_task *task); /* not taken yet */
bool file_task_is_cut(const struct file_task *task);    /* LIST found more than it asked for */
/* What UNPACK skipped: paths, each ended by NUL. */
const struct bytes *file_task_skipped(const struct file_task *task);

/* Of READ, when it is ready: size, mode and time of the file; its media type, from its name. */
void file_task_facts(const struct file_task *task, struct file_entry *ret_facts);
const char *file_task_media_type(struct file_task *task);

/* Reads bytes of READ or PACK. Returns how many, or enum flow_end. */
ssize_t file_task_take(struct file_task *task, char *bytes, size_t size);
/* Reads a change of WATCH. Returns 1, or enum flow_end. */
int file_task_next_change(struct file_task *task, struct file_change *ret_change);

/* Why a stream is broken; code ERR_NONE: there was no memory. */
const error *file_task_failure(const struct file_task *task);

/* Writes bytes to WRITE or UNPACK. Returns `size`; 0: no room now, the waker will be called. Fails
 * with the failure of the task. */
ssize_t file_task_give(struct file_task *task, const char *bytes, size_t size, error *err);
void file_task_end_input(struct file_task *task);

/* Checks a caller's path, whose parts must be names; a first "/" is optional, a last one is
 * removed. Fails  ERR_BAD_REQUEST. */
int file_path_check(struct bytes *path, error *err);
