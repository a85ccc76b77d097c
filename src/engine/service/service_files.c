/* service_files.c - begins, feeds and ends questions and streams about files of a session. */
#include "engine/service/service_files_internal.h"

#include "engine/service/service_sessions.h"
#include "engine/session/session_registry.h"
#include "engine/store/blobs.h"
#include "policy/policy_permits.h"

#include <stdlib.h>
#include <string.h>

enum { WATCH_CREDIT = 64 * 1024 };

_Static_assert((int) FILE_PATH_MAX == (int) AGENT_PATH_MAX, "paths that init takes");

int file_path_check(struct bytes *path, error *err)
{
    if (path->size > 1 && path->data[path->size - 1] == '/')
        path->size--;
    if (path->size == 1 && path->data[0] == '.') /* the folder of the session itself */
        path->size = 0;
    const char *at = path->data;
    const char *end = at + path->size;
    if (path->size > AGENT_PATH_MAX)
        return fail(err, ERR_BAD_REQUEST, "a path has %zu bytes, %d are allowed", path->size,
                    AGENT_PATH_MAX);
    if (path->size > 0 && memchr(at, '\0', path->size))
        return fail(err, ERR_BAD_REQUEST, "a path has a NUL byte in it");
    if (at < end && *at == '/')
        at++;
    for (bool is_more = at < end; is_more;) {
        const char *slash = memchr(at, '/', (size_t) (end - at));
        size_t size = (size_t) ((slash ? slash : end) - at);
        if (size == 0 || (size == 1 && *at == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
            return fail(err, ERR_BAD_REQUEST,
                        "a path must be names separated by one '/', without '.' and '..'");
        is_more = slash != NULL;
        at += size + 1;
    }
    return 0;
}

/* The frame for init, and the count, of each action. */
static const struct {
    enum agent_kind kind;
    bool named; /* the path must not be /workspace itself */
    bool tells; /* tells something about the session's files */
    enum session_deed count;
} actions[] = {
    [FILE_STAT] = { AGENT_STAT, false, true, TRANSFERS },
    [FILE_LIST] = { AGENT_LIST, false, true, TRANSFERS },
    [FILE_MAKE_FOLDER] = { AGENT_MAKE, true, false, TRANSFER_CHANGES },
    [FILE_MOVE] = { AGENT_MOVE, true, true, TRANSFER_CHANGES },
    [FILE_REMOVE] = { AGENT_REMOVE, true, true, TRANSFER_CHANGES },
    [FILE_READ] = { AGENT_READ, true, true, TRANSFER_FILES_OUT },
    [FILE_PACK] = { AGENT_PACK, false, true, TRANSFER_FILES_OUT },
    [FILE_WATCH] = { AGENT_WATCH, false, true, TRANSFERS },
    [FILE_WRITE] = { AGENT_WRITE, true, false, TRANSFER_FILES_IN },
    [FILE_UNPACK] = { AGENT_UNPACK, false, false, TRANSFER_FILES_IN },
};

/* The fixed part of a frame, before the paths. */
union order_head {
    struct agent_list list;
    struct agent_read read;
    struct agent_flow flow;
    struct agent_watch watch;
    struct agent_write write;
};

static size_t write_head(const struct file_order *order, union order_head *head)
{
    uint32_t deep = order->is_recursive ? AGENT_WATCH_DEEP : 0;
    uint32_t new = order->is_new ? AGENT_WRITE_NEW : 0;
    switch (order->action) {
    case FILE_LIST:
        head->list = (struct agent_list){ (uint32_t) order->depth, (uint32_t) order->max };
        return sizeof head->list;
    case FILE_READ:
        head->read =
            (struct agent_read){ order->from, order->size, order->facts_only ? 0 : FILE_WINDOW };
        return sizeof head->read;
    case FILE_PACK:
        head->flow = (struct agent_flow){ FILE_WINDOW };
        return sizeof head->flow;
    case FILE_WATCH:
        head->watch = (struct agent_watch){ .credit = WATCH_CREDIT, .flags = deep };
        return sizeof head->watch;
    case FILE_WRITE:
        head->write = (struct agent_write){ .mode = order->mode, .flags = new };
        return sizeof head->write;
    case FILE_STAT:
    case FILE_MAKE_FOLDER:
    case FILE_MOVE:
    case FILE_REMOVE:
    case FILE_UNPACK:
        break;
    }
    return 0;
}

static int read_paths(const struct file_order *order, struct file_task *task, struct bytes *paths,
                      error *err)
{
    auto_bytes to = { 0 };
    bytes_add(&task->path, order->path->data, order->path->size);
    if (order->to)
        bytes_add(&to, order->to->data, order->to->size);
    if (!task->path.failed && !to.failed &&
        (file_path_check(&task->path, err) < 0 || file_path_check(&to, err) < 0))
        return -1;
    if (actions[order->action].named && (task->path.size == 0 || (order->to && to.size == 0)))
        return fail(err, ERR_BAD_REQUEST, "the path is empty; give one, such as data.csv");
    bytes_add(paths, task->path.data, task->path.size);
    if (order->to) {
        bytes_add(paths, "", 1);
        bytes_add(paths, to.data, to.size);
        struct bytes from = task->path;
        task->path = to; /* the path after the move */
        to = from;
    }
    return task->path.failed || to.failed || paths->failed
               ? fail(err, ERR_SYSTEM, "no memory for a path")
               : 0;
}

static int begin_task(struct file_task *task, struct session *session,
                      const struct file_order *order, error *err)
{
    auto_bytes paths = { 0 };
    union order_head head = { 0 };
    size_t head_size = write_head(order, &head);
    if (read_paths(order, task, &paths, err) < 0 ||
        (actions[order->action].tells &&
         policy_permits_uncompared(session_plan(session)->policy, "files", err) < 0) ||
        session_begin(session, &task->operation, err) < 0)
        return -1;
    session_hold(session);
    if (actions[order->action].count != TRANSFERS)
        session_count(session, actions[order->action].count, 1);
    task->session = session;
    struct iovec parts[2] = { { &head, head_size }, { paths.data, paths.size } };
    session_send(session, &task->operation, actions[order->action].kind,
                 head_size > 0 ? parts : parts + 1, head_size > 0 ? 2 : 1);
    session_flush(session);
    return 0;
}

int service_file_begin(const struct service *service, const struct caller *caller,
                       const struct file_order *order, struct file_task **ret_task, error *err)
{
    struct session *session = NULL;
    if (service_session_enter(service, caller, order->session, &session, err) < 0)
        return -1;
    struct file_task *task = calloc(1, sizeof *task);
    if (!task)
        return fail(err, ERR_SYSTEM, "no memory for a file");
    task->waker = order->waker;
    task->action = order->action;
    file_answers_begin(task);
    if (begin_task(task, session, order, err) < 0) {
        file_task_free(task);
        return -1;
    }
    *ret_task = task;
    return 0;
}

void file_task_free(struct file_task *task)
{
    if (!task)
        return;
    if (task->session) {
        session_order(task->session, &task->operation, AGENT_CANCEL, NULL, 0);
        file_task_end(task);
    }
    file_answers_done(task);
    bytes_done(&task->path);
    free(task);
}

int file_task_look(const struct file_task *task, error *err)
{
    bool flows_out =
        task->action == FILE_READ || task->action == FILE_PACK || task->action == FILE_WATCH;
    bool lists = task->action == FILE_STAT || task->action == FILE_LIST;
    if (flows_out && task->stands)
        return FILE_READY;
    if (!task->is_ended)
        return FILE_LATER;
    if (task->failure.code != ERR_NONE) {
        *err = task->failure;
        return -1;
    }
    if (flows_out)
        return fail(err, ERR_PROTOCOL, "glovebox-init ended a stream before it began");
    if (lists && task->names.failed)
        return fail(err, ERR_BUSY,
                    "listings that were not read yet hold too much memory; try again");
    return FILE_READY;
}

const error *file_task_failure(const struct file_task *task)
{
    return &task->failure;
}

const struct bytes *file_task_path(const struct file_task *task)
{
    return &task->path;
}

size_t file_task_entries(const struct file_task *task)
{
    return task->entry_count;
}

bool file_task_is_cut(const struct file_task *task)
{
    return task->is_cut;
}

const struct bytes *file_task_skipped(const struct file_task *task)
{
    return &task->skipped;
}

void file_task_facts(const struct file_task *task, struct file_entry *ret_facts)
{
    *ret_facts = (struct file_entry){ .path = task->path.data,
                                      .path_size = task->path.size,
                                      .size = task->file.size,
                                      .mode = task->file.mode,
                                      .mtime_ns = task->file.mtime_ns };
}

const char *file_task_media_type(struct file_task *task)
{
    return mime_of(bytes_text(&task->path), NULL, 0);
}

ssize_t file_task_give(struct file_task *task, const char *bytes, size_t size, error *err)
{
    size_t given = 0;
    if (task->is_ended) {
        *err = task->failure;
        return err->code != ERR_NONE
                   ? -1
                   : fail(err, ERR_BAD_REQUEST, "bytes follow the end of the tar");
    }
    if (!task->session || !session_has_room(task->session))
        return 0;
    while (given < size) {
        size_t part = size - given < AGENT_PAYLOAD_MAX ? size - given : AGENT_PAYLOAD_MAX;
        struct iovec piece = { (void *) (uintptr_t) (bytes + given), part };
        session_send(task->session, &task->operation, AGENT_DATA, &piece, 1);
        given += part;
    }
    session_count(task->session, TRANSFER_FILE_BYTES_IN, given);
    session_flush(task->session); /* may end the task */
    return (ssize_t) given;
}

void file_task_end_input(struct file_task *task)
{
    if (task->input_has_ended || !task->session)
        return;
    task->input_has_ended = true;
    session_order(task->session, &task->operation, AGENT_END, NULL, 0);
}
