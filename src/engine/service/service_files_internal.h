/* service_files_internal.h - a task about files: service_files.c begins it, file_answers.c takes
 * the answers of init, directory_order.c has the order of a listing. */
#pragma once

#include "engine/service/service_files.h"
#include "engine/session/session.h"

enum { FILE_WINDOW = 1 << 20 }; /* bytes that lie here and have not been taken */

struct listed_entry {
    struct agent_entry facts;
    size_t path, path_size; /* in file_task.names; the target of a link follows it */
    size_t target_size;
};

struct file_task {
    struct session *session; /* NULL once it has ended */
    struct session_operation operation;
    struct waker waker;
    enum file_action action;
    struct bytes path;

    bool stands;    /* OPENED or FILE has come */
    bool is_ended;  /* DONE has come, or the session has ended: `failure` says how */
    bool is_cut;    /* a listing had more entries than were asked for */
    bool has_ended; /* of what flows out: END has come */
    bool input_has_ended;
    error failure; /* code ERR_NONE: well */

    struct agent_file file;       /* of READ */
    struct listed_entry *entries; /* of STAT, LIST, WRITE */
    size_t entry_count, entry_room;
    struct bytes names;
    size_t listed_bytes;         /* of this listing, among those that all listings may hold */
    struct listing_share *share; /* that they count for; NULL: it has none */
    struct bytes skipped;        /* paths, each ended by NUL, that a tar left out */

    struct bytes bytes; /* DATA that was not taken yet; of WATCH: CHANGE frames, size before */
    size_t taken;       /* of them */
    uint64_t owed;      /* credit that init has not been given back */
    bool loses_changes; /* more of them have come than are kept for the reader */
};

/* file_answers.c */
void file_answers_begin(struct file_task *task);
void file_answers_done(struct file_task *task);
void file_task_end(struct file_task *task); /* nothing more comes */

/* directory_order.c: orders the entry that was added last among the others; takes the first by
 * path, which goes to the end, behind those that are left. */
void directory_order_last(struct file_task *task);
const struct listed_entry *directory_take_first(struct file_task *task);
