/* files.c - /v1/sessions/{id}/files: translates HTTP into the tasks of files.h. A client
 * that hangs up ends its task. Here are the routes, and what is answered in one piece. */
#include "doors/rest/file_request.h"

#include "base/table.h"
#include "doors/rest/openapi/openapi.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdlib.h>

enum {
    LIST_DEFAULT = 10000,
    AT_ONCE_MAX = 200, /* entries */
};

void file_visit_woken(void *context)
{
    struct file_visit *visit = context;
    exchange_wake(visit->exchange);
}

static void leave(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    file_task_close(&visit->task);
    listing_done(&visit->listing);
    bytes_done(&visit->path);
    bytes_done(&visit->to);
    free(visit);
}

struct file_visit *file_visit_new(struct exchange *exchange, error *err)
{
    struct file_visit *visit = calloc(1, sizeof *visit);
    if (!visit) {
        (void) fail(err, ERR_SYSTEM, "no memory for a file");
        return NULL;
    }
    visit->exchange = exchange;
    visit->task.woken = file_visit_woken;
    visit->task.context = visit;
    visit->depth = 1;
    visit->max = LIST_DEFAULT;
    exchange->user = visit;
    exchange->closed = leave;
    return visit;
}

struct session *file_visit_session(struct exchange *exchange, error *err)
{
    const struct service *service = exchange->service;
    struct session *session = NULL;
    int entered = sessions_enter(service->sessions, exchange->caller.account,
                                 exchange->parameters[0], &session, err);
    return entered == 0 ? session : NULL;
}

int file_visit_begin(struct file_visit *visit, const struct file_order *order, error *err)
{
    struct session *session = file_visit_session(visit->exchange, err);
    if (!session || session_path_check(&visit->path, err) < 0 ||
        session_path_check(&visit->to, err) < 0)
        return -1;
    return file_task_begin(&visit->task, session, order, err);
}

/* --- questions: POST files:stat, :list, :mkdir, :move; DELETE ------------------------------------
 */

static ssize_t read_listing(struct exchange *exchange, char *bytes, size_t size)
{
    struct file_visit *visit = exchange->user;
    ssize_t got = listing_read(&visit->listing, bytes, size);
    return got > 0 ? got : got == 0 ? STREAM_END : STREAM_BROKEN;
}

/* A short one is an answer with a length. */
static void answer_listing(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    char block[4096];
    struct bytes json = { 0 };
    visit->listing.task = &visit->task;
    visit->listing.path = &visit->path;
    if (visit->task.entry_count > AT_ONCE_MAX) {
        exchange_stream_as(exchange, MHD_HTTP_OK, "application/json", STREAM_OF_ANY_SIZE,
                           read_listing);
        return;
    }
    for (ssize_t got; (got = listing_read(&visit->listing, block, sizeof block)) != 0;)
        if (got > 0)
            bytes_add(&json, block, (size_t) got);
        else
            break;
    json.failed = json.failed || visit->listing.pieces.text.failed;
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void answer_question(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    struct file_task *task = &visit->task;
    if (!task->is_ended) {
        exchange_wait(exchange);
        return;
    }
    if (task->names.failed && task->failure.code == ERR_NONE)
        (void) fail(&task->failure, ERR_BUSY,
                    "listings that nobody has read yet hold too much memory; try again");
    if (task->failure.code != ERR_NONE) {
        exchange_fail(exchange, &task->failure);
        return;
    }
    if (task->kind == AGENT_LIST) {
        answer_listing(exchange);
        return;
    }
    struct bytes json = { 0 };
    if (task->kind == AGENT_STAT && task->entry_count > 0) {
        file_entry_write(task, &task->entries[0], &json);
    } else {
        json_open(&json, '{');
        file_path_write(visit->path.data ? visit->path.data : "", visit->path.size, &json);
        json_close(&json, '}');
    }
    exchange_answer(exchange, task->kind == AGENT_MAKE ? MHD_HTTP_CREATED : MHD_HTTP_OK, &json);
}

static int read_question(struct file_visit *visit, enum agent_kind kind, error *err)
{
    bool is_move = kind == AGENT_MOVE;
    const struct field of_list[] = {
        { "path", FIELD_TEXT, &visit->path, AGENT_PATH_MAX },
        { "path_base64", FIELD_BASE64, &visit->path, AGENT_PATH_MAX },
        { "depth", FIELD_COUNT, &visit->depth, 64 },
        { "limit", FIELD_COUNT, &visit->max, FILE_ENTRIES_MAX },
    };
    const struct field of_move[] = {
        { "from", FIELD_TEXT, &visit->path, AGENT_PATH_MAX },
        { "from_base64", FIELD_BASE64, &visit->path, AGENT_PATH_MAX },
        { "to", FIELD_TEXT, &visit->to, AGENT_PATH_MAX },
        { "to_base64", FIELD_BASE64, &visit->to, AGENT_PATH_MAX },
    };
    /* The others have the path alone, which stands first. */
    size_t count = is_move || kind == AGENT_LIST ? COUNT_OF(of_list) : 2;
    if (exchange_fields(visit->exchange, is_move ? of_move : of_list, count, err) < 0)
        return -1;
    if (is_move && (visit->path.size == 0 || visit->to.size == 0))
        return fail(err, ERR_BAD_REQUEST, "a move has 'from' and 'to'");
    if (kind == AGENT_MAKE && visit->path.size == 0)
        return fail(err, ERR_BAD_REQUEST, "a new folder has a 'path'");
    return 0;
}

static void ask(struct exchange *exchange, enum agent_kind kind)
{
    error err;
    if (exchange->user) {
        answer_question(exchange);
        return;
    }
    struct file_visit *visit = file_visit_new(exchange, &err);
    if (!visit || read_question(visit, kind, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct agent_list list = { .depth = (uint32_t) visit->depth, .max = (uint32_t) visit->max };
    bool is_list = kind == AGENT_LIST;
    const struct file_order order = { .kind = kind,
                                      .head = &list,
                                      .head_size = is_list ? sizeof list : 0,
                                      .path = &visit->path,
                                      .to = kind == AGENT_MOVE ? &visit->to : NULL };
    if (file_visit_begin(visit, &order, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_question(exchange);
}

static void post_stat(struct exchange *exchange)
{
    ask(exchange, AGENT_STAT);
}

static void post_list(struct exchange *exchange)
{
    ask(exchange, AGENT_LIST);
}

static void post_mkdir(struct exchange *exchange)
{
    ask(exchange, AGENT_MAKE);
}

static void post_move(struct exchange *exchange)
{
    ask(exchange, AGENT_MOVE);
}

static void delete_file(struct exchange *exchange)
{
    error err;
    if (exchange->user) {
        answer_question(exchange);
        return;
    }
    struct file_visit *visit = file_visit_new(exchange, &err);
    if (!visit) {
        exchange_fail(exchange, &err);
        return;
    }
    bytes_add_text(&visit->path, exchange->parameters[1]);
    const struct file_order order = { .kind = AGENT_REMOVE, .path = &visit->path };
    if (file_visit_begin(visit, &order, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_question(exchange);
}

static const struct parameter folder_query[] = {
    { "path", IN_QUERY, "string", "of the folder; that of the session if it is left out" },
    { 0 },
};
static const struct parameter watch_query[] = {
    { "path", IN_QUERY, "string", "of the folder; that of the session if it is left out" },
    { "recursive", IN_QUERY, "=0,1", "1: folders below it too" },
    { 0 },
};
static const struct parameter get_query[] = {
    { "Range", IN_HEADER, "string", "bytes=from-to, bytes=from- or bytes=-last" },
    { 0 },
};
static const struct parameter put_query[] = {
    { "mode", IN_QUERY, "string", "octal, from 1 to 777" },
    { "If-None-Match", IN_HEADER, "string", "*: only if nothing has this name" },
    { 0 },
};
static const struct parameter signed_query[] = {
    { "signature", IN_QUERY, "string", "as files:sign gave it, with the others" },
    { "expires", IN_QUERY, "count", "" },
    { "key", IN_QUERY, "string", "" },
    { "mode", IN_QUERY, "string", "" },
    { 0 },
};

/* clang-format off */
static const struct route rows[] = {
    { "POST",   "/v1/sessions/{id}/files:stat",   BODY_JSON,   post_stat,          "What stands at a path of a session", .takes = "FileRequest", .may_lack_body = true, .gives = "FileEntry", .is_repeatable = true, .awaits = AWAITS_STANDING },
    { "POST",   "/v1/sessions/{id}/files:list",   BODY_JSON,   post_list,          "The entries below a folder, to a depth, sorted by path", .takes = "FileListRequest", .may_lack_body = true, .gives = "FileListing", .is_repeatable = true, .awaits = AWAITS_STANDING },
    { "POST",   "/v1/sessions/{id}/files:mkdir",  BODY_JSON,   post_mkdir,         "Makes a folder, and those that lead to it", .status = 201, .takes = "FileRequest", .gives = "FilePath", .is_repeatable = true, .awaits = AWAITS_STANDING },
    { "POST",   "/v1/sessions/{id}/files:move",   BODY_JSON,   post_move,          "Gives a file or folder another path", .takes = "FileMoveRequest", .gives = "FilePath", .awaits = AWAITS_STANDING },
    { "POST",   "/v1/sessions/{id}/files:sign",   BODY_JSON,   file_sign,          "A URL that needs no key: one path, one method, for some time", .takes = "FileSignRequest", .gives = "SignedUrl", .is_repeatable = true, .awaits = AWAITS_STANDING },
    { "GET",    "/v1/sessions/{id}/files:watch",  BODY_NONE,   file_get_watch,     "Changes below a folder, as events", .mime = "text/event-stream", .streams = true, .query = watch_query, .awaits = AWAITS_STANDING },
    { "GET",    "/v1/sessions/{id}/files:tar",    BODY_NONE,   file_get_tar,       "A folder and what is below it as a tar", .mime = "application/x-tar", .query = folder_query, .awaits = AWAITS_STANDING },
    { "PUT",    "/v1/sessions/{id}/files:tar",    BODY_STREAM, file_answer_upload, "Unpacks a tar into a folder", .begin = file_begin_put_tar, .take = file_take_upload, .query = folder_query, .gives = "TarUnpacked", .awaits = AWAITS_STANDING },
    { "GET",    "/v1/sessions/{id}/files/{path}", BODY_NONE,   file_get,           "The bytes of a file; a part by Range", .mime = "*/*", .query = get_query, .awaits = AWAITS_STANDING },
    { "PUT",    "/v1/sessions/{id}/files/{path}", BODY_STREAM, file_answer_upload, "Writes a file whole, in place of what had its name", .begin = file_begin_put, .take = file_take_upload, .query = put_query, .gives = "FileWritten", .awaits = AWAITS_STANDING },
    { "DELETE", "/v1/sessions/{id}/files/{path}", BODY_NONE,   delete_file,        "Removes a file, or a folder with what is in it", .gives = "FilePath", .awaits = AWAITS_STANDING },
    { "GET",    "/v1/signed/{id}/{path}",         BODY_NONE,   file_get,           "As GET files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = file_check_permit, .mime = "*/*", .query = signed_query },
    { "PUT",    "/v1/signed/{id}/{path}",         BODY_STREAM, file_answer_upload, "As PUT files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = file_begin_signed_put, .take = file_take_upload, .query = signed_query, .gives = "FileWritten" },
};
/* clang-format on */
const struct route_table file_routes = { "files", rows, COUNT_OF(rows), RIGHT_SESSIONS };
