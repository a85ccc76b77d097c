/* files.c - /v1/sessions/{id}/files: translates HTTP into the tasks of service_files.h. A client
 * that hangs up ends its task. This file has the routes, and answers of one piece. */
#include "doors/rest/file_request.h"

#include "base/table.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdlib.h>

enum { AT_ONCE_MAX = 200 /* entries */ };

static void leave(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    file_task_free(visit->task);
    listing_done(&visit->listing);
    bytes_done(&visit->event.text);
    free(visit);
}

/* Begins the task of an exchange, which the task wakes. The session is that of the URL. */
static int file_visit_begin(struct exchange *exchange, const struct file_order *wanted, error *err)
{
    struct file_visit *visit = exchange->user;
    struct file_order order = *wanted;
    if (!visit)
        visit = calloc(1, sizeof *visit);
    if (!visit)
        return fail(err, ERR_SYSTEM, "no memory for a file");
    exchange->user = visit;
    exchange->closed = leave;
    order.session = exchange->parameters[0];
    order.waker = (struct waker){ .woken = exchange_wake, .context = exchange };
    return service_file_begin(exchange->service, &exchange->caller, &order, &visit->task, err);
}

int file_visit_begin_at(struct exchange *exchange, const char *path, struct file_order order,
                        error *err)
{
    auto_bytes text = { 0 };
    bytes_add_text(&text, path ? path : "");
    order.path = &text;
    return file_visit_begin(exchange, &order, err);
}

static ssize_t read_listing(struct exchange *exchange, char *bytes, size_t size)
{
    struct file_visit *visit = exchange->user;
    ssize_t got = listing_read(&visit->listing, bytes, size);
    return got > 0 ? got : got == 0 ? STREAM_END : STREAM_BROKEN;
}

/* A short listing is sent with its length. */
static void answer_listing(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    char block[4096];
    struct bytes json = { 0 };
    visit->listing.task = visit->task;
    if (file_task_entries(visit->task) > AT_ONCE_MAX) {
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

static void answer_path(struct exchange *exchange, unsigned status)
{
    const struct file_visit *visit = exchange->user;
    const struct bytes *path = file_task_path(visit->task);
    struct bytes json = json_begin('{');
    file_path_write(path->data ? path->data : "", path->size, &json);
    json_close(&json, '}');
    exchange_answer(exchange, status, &json);
}

static void answer_stat(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
    struct file_entry entry;
    struct bytes json = { 0 };
    if (!file_task_next_entry(visit->task, &entry)) {
        answer_path(exchange, MHD_HTTP_OK);
        return;
    }
    file_entry_write(&entry, &json);
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void answer_question(struct exchange *exchange, enum file_action action)
{
    const struct file_visit *visit = exchange->user;
    error err;
    int answer = file_task_look(visit->task, &err);
    if (answer < 0)
        exchange_fail(exchange, &err);
    else if (answer == FILE_LATER)
        exchange_wait(exchange);
    else if (action == FILE_LIST)
        answer_listing(exchange);
    else if (action == FILE_STAT)
        answer_stat(exchange);
    else
        answer_path(exchange, action == FILE_MAKE_FOLDER ? MHD_HTTP_CREATED : MHD_HTTP_OK);
}

/* Reads the body into `order`, which has its paths already. */
static int read_question(struct exchange *exchange, struct file_order *order, struct bytes *path,
                         struct bytes *to, error *err)
{
    bool is_move = order->action == FILE_MOVE;
    const struct field of_list[] = {
        { "path", FIELD_TEXT, path, FILE_PATH_MAX },
        { "path_base64", FIELD_BASE64, path, FILE_PATH_MAX },
        { "depth", FIELD_COUNT, &order->depth, FILE_DEPTH_MAX },
        { "limit", FIELD_COUNT, &order->max, FILE_ENTRIES_MAX },
    };
    const struct field of_move[] = {
        { "from", FIELD_TEXT, path, FILE_PATH_MAX },
        { "from_base64", FIELD_BASE64, path, FILE_PATH_MAX },
        { "to", FIELD_TEXT, to, FILE_PATH_MAX },
        { "to_base64", FIELD_BASE64, to, FILE_PATH_MAX },
    };
    /* The others have only a path, the first row. */
    size_t count = is_move || order->action == FILE_LIST ? COUNT_OF(of_list) : 2;
    if (exchange_fields(exchange, is_move ? of_move : of_list, count, err) < 0)
        return -1;
    if (is_move && (path->size == 0 || to->size == 0))
        return fail(err, ERR_BAD_REQUEST, "a move needs 'from' and 'to'");
    if (order->action == FILE_MAKE_FOLDER && path->size == 0)
        return fail(err, ERR_BAD_REQUEST, "a new folder needs a 'path'");
    return 0;
}

static void ask(struct exchange *exchange, enum file_action action)
{
    error err;
    if (!exchange->user) {
        auto_bytes path = { 0 }, to = { 0 };
        struct file_order order = { .action = action,
                                    .path = &path,
                                    .to = action == FILE_MOVE ? &to : NULL,
                                    .depth = 1,
                                    .max = FILE_ENTRIES_DEFAULT };
        if (read_question(exchange, &order, &path, &to, &err) < 0 ||
            file_visit_begin(exchange, &order, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    answer_question(exchange, action);
}

static void post_stat(struct exchange *exchange)
{
    ask(exchange, FILE_STAT);
}

static void post_list(struct exchange *exchange)
{
    ask(exchange, FILE_LIST);
}

static void post_mkdir(struct exchange *exchange)
{
    ask(exchange, FILE_MAKE_FOLDER);
}

static void post_move(struct exchange *exchange)
{
    ask(exchange, FILE_MOVE);
}

static void delete_file(struct exchange *exchange)
{
    error err;
    if (!exchange->user &&
        file_visit_begin_at(exchange, exchange->parameters[1],
                            (struct file_order){ .action = FILE_REMOVE }, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_question(exchange, FILE_REMOVE);
}

static const struct parameter folder_query[] = {
    { "path", IN_QUERY, "string", "of the folder; that of the session if it is left out" },
    { 0 },
};
static const struct parameter signed_query[] = {
    { "signature", IN_QUERY, "string", "as files:sign gave it, with the others" },
    { "expires", IN_QUERY, "count", "until when, in seconds since 1970" },
    { "key", IN_QUERY, "string", "the id of the key that signed" },
    { "mode", IN_QUERY, "string", "of a file that is written, in octal" },
    { 0 },
};

/* clang-format off */
static const struct route rows[] = {
    { "POST",   "/v1/sessions/{id}/files:stat",   BODY_JSON,   post_stat,          "What stands at a path of a session", .takes = "FileRequest", .may_lack_body = true, .gives = "FileEntry", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "statFile" },
    { "POST",   "/v1/sessions/{id}/files:list",   BODY_JSON,   post_list,          "The entries below a folder, to a depth, sorted by path", .takes = "FileListRequest", .may_lack_body = true, .gives = "FileListing", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "listFiles" },
    { "POST",   "/v1/sessions/{id}/files:mkdir",  BODY_JSON,   post_mkdir,         "Makes a folder, and those that lead to it", .status = 201, .takes = "FileRequest", .gives = "FilePath", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "makeFolder" },
    { "POST",   "/v1/sessions/{id}/files:move",   BODY_JSON,   post_move,          "Gives a file or folder another path", .takes = "FileMoveRequest", .gives = "FilePath", .awaits = AWAITS_STANDING, .operation = "moveFile" },
    { "POST",   "/v1/sessions/{id}/files:sign",   BODY_JSON,   file_sign,          "A URL that needs no key: one path, one method, for some time", .takes = "FileSignRequest", .gives = "SignedUrl", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "signFileUrl" },
    { "GET",    "/v1/sessions/{id}/files:watch",  BODY_NONE,   file_get_watch,     "Changes below a folder, as events", .mime = "text/event-stream", .streams = true, .awaits = AWAITS_STANDING, .operation = "watchFiles",
      .query = QUERY({ "path", IN_QUERY, "string", "of the folder; that of the session if it is left out" },
                     { "recursive", IN_QUERY, "=0, 1", "1: folders below it too" }) },
    { "GET",    "/v1/sessions/{id}/files:tar",    BODY_NONE,   file_get_tar,       "A folder and what is below it as a tar", .mime = "application/x-tar", .query = folder_query, .awaits = AWAITS_STANDING, .operation = "readTar" },
    { "PUT",    "/v1/sessions/{id}/files:tar",    BODY_STREAM, file_answer_upload, "Unpacks a tar into a folder", .begin = file_begin_put_tar, .take = file_take_upload, .query = folder_query, .gives = "TarUnpacked", .awaits = AWAITS_STANDING, .operation = "writeTar" },
    { "GET",    "/v1/sessions/{id}/files/{path}", BODY_NONE,   file_get,           "The bytes of a file; a part by Range", .mime = "*/*", .awaits = AWAITS_STANDING, .operation = "readFile",
      .query = QUERY({ "Range", IN_HEADER, "string", "bytes=from-to, bytes=from- or bytes=-last" }) },
    { "PUT",    "/v1/sessions/{id}/files/{path}", BODY_STREAM, file_answer_upload, "Writes a file whole, in place of what had its name", .begin = file_begin_put, .take = file_take_upload, .gives = "FileWritten", .awaits = AWAITS_STANDING, .operation = "writeFile",
      .query = QUERY({ "mode", IN_QUERY, "string", "octal, from 1 to 777" },
                     { "If-None-Match", IN_HEADER, "string", "*: only if nothing has this name" }) },
    { "DELETE", "/v1/sessions/{id}/files/{path}", BODY_NONE,   delete_file,        "Removes a file, or a folder with what is in it", .gives = "FilePath", .awaits = AWAITS_STANDING, .operation = "removeFile" },
    { "GET",    "/v1/signed/{id}/{path}",         BODY_NONE,   file_get,           "As GET files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = file_check_permit, .mime = "*/*", .query = signed_query, .operation = "readSignedFile" },
    { "PUT",    "/v1/signed/{id}/{path}",         BODY_STREAM, file_answer_upload, "As PUT files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = file_begin_signed_put, .take = file_take_upload, .query = signed_query, .gives = "FileWritten", .operation = "writeSignedFile" },
};
/* clang-format on */
const struct route_table file_routes = { "files", rows, COUNT_OF(rows), RIGHT_SESSIONS,
                                         .text = "Files of a session" };
