/* service_files_internal.h - a file task: service_files.c begins it, file_answers.c takes the
 * answers of init, directory_order.c sorts listings. */
#pragma once

#include "engine/service/service_files.h"
#include "engine/session/session.h"

enum { FILE_WINDOW = 1 << 20 }; /* bytes that wait here to be read */

struct listed_entry {
    struct agent_entry facts;
    size_t path, path_size; /* in file_task.names; the target of a link follows */
    size_t target_size;
};

struct file_task {
    struct session *session; /* NULL after its end */
    struct session_operation operation;
    struct waker waker;
    enum file_action action;
    struct bytes path;

    bool stands;    /* OPENED or FILE has come */
    bool is_ended;  /* DONE has come, or the session has ended: see `failure` */
    bool is_cut;    /* the listing had more entries than were requested */
    bool has_ended; /* of a stream out: END has come */
    bool input_has_ended;
    error failure; /* code ERR_NONE: no failure */

    struct agent_file file;       /* of READ */
    struct listed_entry *entries; /* of STAT, LIST, WRITE */
    size_t entry_count, entry_room;
    struct bytes names;
    size_t listed_bytes;         /* memory of this listing, within the bound for all listings */
    struct listing_share *share; /* the account's share of that bound; NULL: none */
    struct bytes skipped;        /* by UNPACK: paths, each ended by NUL */

    struct bytes bytes; /* DATA not read yet; of WATCH: CHANGE frames, each after its size */
    size_t taken;       /* of them */
    uint64_t owed;      /* credit to give back to init */
    bool loses_changes; /* changes were dropped, since the reader is slow */
};

/* file_answers.c */
void file_answers_begin(struct file_task *task);
void file_answers_done(struct file_task *task);
void file_task_end(struct file_task *task); /* init sends nothing more */

/* directory_order.c: sorts the entry that was added last into the others; takes the first by path.
 * The taken one is moved behind those that are left. */
void directory_order_last(struct file_task *task);
const struct listed_entry *directory_take_first(struct file_task *task);
