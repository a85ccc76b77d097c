/* files.c - /v1/sessions/{id}/files: translates HTTP into the tasks of session_files.h. A file
 * streams through a window; a client that hangs up ends its task, and an upload that is not whole
 * leaves what was there. */
#include "daemon/session_files.h"

#include "base/clock.h"
#include "base/table.h"
#include "daemon/blobs.h"
#include "daemon/json_writer.h"
#include "daemon/listing.h"
#include "daemon/rest/pass.h"
#include "daemon/rest/range.h"
#include "daemon/rest/rest.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LIST_DEFAULT = 10000,
    AT_ONCE_MOST = 200, /* entries */
    SIGNED_SECONDS_MOST = 7 * 24 * 3600,
    WATCH_CREDIT = 64 * 1024,
};

/* What an exchange holds while its task is under way. */
struct visit {
    struct file_task task;
    struct exchange *exchange;
    struct bytes path, to;
    uint64_t depth, most;
    bool knows_size, streams;
    struct byte_range range;
    struct listing listing;
};

static void on_woken(void *context)
{
    struct visit *visit = context;
    exchange_wake(visit->exchange);
}

static void leave(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    file_task_close(&visit->task);
    listing_done(&visit->listing);
    bytes_done(&visit->path);
    bytes_done(&visit->to);
    free(visit);
}

static struct visit *visit_of(struct exchange *exchange, error *err)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit) {
        (void) fail(err, ERR_SYSTEM, "no memory for a file");
        return NULL;
    }
    visit->exchange = exchange;
    visit->task.woken = on_woken;
    visit->task.context = visit;
    visit->depth = 1;
    visit->most = LIST_DEFAULT;
    exchange->user = visit;
    exchange->closed = leave;
    return visit;
}

static struct session *find_session(struct exchange *exchange, error *err)
{
    const struct door *door = exchange->door;
    struct session *session = NULL;
    int entered =
        sessions_enter(door->sessions, exchange->account, exchange->parameters[0], &session, err);
    return entered == 0 ? session : NULL;
}

static int begin(struct visit *visit, const struct file_order *order, error *err)
{
    struct session *session = find_session(visit->exchange, err);
    if (!session || session_path_check(&visit->path, err) < 0 ||
        session_path_check(&visit->to, err) < 0)
        return -1;
    return file_task_begin(&visit->task, session, order, err);
}

int exchange_fields(struct exchange *exchange, const struct field *fields, size_t count, error *err)
{
    struct json_object *json = NULL;
    if (exchange->body_bytes > 0 && json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    int read = fields_read(json, fields, count, err);
    json_object_put(json);
    return read;
}

/* --- questions: POST files:stat, :list, :mkdir, :move; DELETE ------------------------------------
 */

static ssize_t read_listing(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    ssize_t got = listing_read(&visit->listing, bytes, size);
    return got > 0 ? got : got == 0 ? STREAM_END : STREAM_BROKEN;
}

/* A short one is an answer with a length. */
static void answer_listing(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    char block[4096];
    struct bytes json = { 0 };
    visit->listing.task = &visit->task;
    visit->listing.path = &visit->path;
    if (visit->task.entry_count > AT_ONCE_MOST) {
        exchange_stream_as(exchange, MHD_HTTP_OK, "application/json", STREAM_OF_ANY_SIZE,
                           read_listing);
        return;
    }
    for (ssize_t got; (got = listing_read(&visit->listing, block, sizeof block)) != 0;)
        if (got > 0)
            bytes_add(&json, block, (size_t) got);
        else
            break;
    json.failed = json.failed || visit->listing.text.failed;
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void answer_question(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
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
    if (task->kind == INSIDE_LIST) {
        answer_listing(exchange);
        return;
    }
    struct bytes json = { 0 };
    if (task->kind == INSIDE_STAT && task->entry_count > 0) {
        file_entry_write(task, &task->entries[0], &json);
    } else {
        json_open(&json, '{');
        file_path_write(visit->path.data ? visit->path.data : "", visit->path.size, &json);
        json_close(&json, '}');
    }
    exchange_answer(exchange, task->kind == INSIDE_MAKE ? MHD_HTTP_CREATED : MHD_HTTP_OK, &json);
}

static int read_question(struct visit *visit, enum inside_kind kind, error *err)
{
    bool is_move = kind == INSIDE_MOVE;
    const struct field fields[] = {
        { is_move ? "from" : "path", FIELD_TEXT, &visit->path, INSIDE_PATH_MOST },
        { is_move ? "from_base64" : "path_base64", FIELD_BASE64, &visit->path, INSIDE_PATH_MOST },
        { "to", FIELD_TEXT, &visit->to, INSIDE_PATH_MOST },
        { "to_base64", FIELD_BASE64, &visit->to, INSIDE_PATH_MOST },
        { "depth", FIELD_COUNT, &visit->depth, 64 },
        { "limit", FIELD_COUNT, &visit->most, FILE_ENTRIES_MOST },
    };
    if (exchange_fields(visit->exchange, fields, COUNT_OF(fields), err) < 0)
        return -1;
    if (is_move ? !visit->path.size || !visit->to.size : visit->to.size > 0)
        return fail(err, ERR_BAD_REQUEST,
                    is_move ? "a move has 'from' and 'to'" : "'to' belongs to a move");
    return 0;
}

static void ask(struct exchange *exchange, enum inside_kind kind)
{
    error err;
    if (exchange->user) {
        answer_question(exchange);
        return;
    }
    struct visit *visit = visit_of(exchange, &err);
    if (!visit || read_question(visit, kind, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct inside_list list = { .depth = (uint32_t) visit->depth, .most = (uint32_t) visit->most };
    bool is_list = kind == INSIDE_LIST;
    const struct file_order order = { .kind = kind,
                                      .head = &list,
                                      .head_size = is_list ? sizeof list : 0,
                                      .path = &visit->path,
                                      .to = kind == INSIDE_MOVE ? &visit->to : NULL };
    if (begin(visit, &order, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_question(exchange);
}

static void post_stat(struct exchange *exchange)
{
    ask(exchange, INSIDE_STAT);
}

static void post_list(struct exchange *exchange)
{
    ask(exchange, INSIDE_LIST);
}

static void post_mkdir(struct exchange *exchange)
{
    ask(exchange, INSIDE_MAKE);
}

static void post_move(struct exchange *exchange)
{
    ask(exchange, INSIDE_MOVE);
}

static void delete_file(struct exchange *exchange)
{
    error err;
    if (exchange->user) {
        answer_question(exchange);
        return;
    }
    struct visit *visit = visit_of(exchange, &err);
    if (!visit) {
        exchange_fail(exchange, &err);
        return;
    }
    bytes_add_text(&visit->path, exchange->parameters[1]);
    const struct file_order order = { .kind = INSIDE_REMOVE, .path = &visit->path };
    if (begin(visit, &order, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_question(exchange);
}

/* --- out: GET files/{path}, files:tar, files:watch -----------------------------------------------
 */

static ssize_t read_flow(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    size_t got = file_task_take(&visit->task, bytes, size);
    if (got > 0)
        return (ssize_t) got;
    if (visit->task.has_ended)
        return STREAM_END;
    return visit->task.is_ended ? STREAM_BROKEN : STREAM_LATER;
}

static int begin_read(struct visit *visit, uint64_t offset, uint64_t length, uint64_t credit,
                      error *err)
{
    struct inside_read read = { .offset = offset, .length = length, .credit = credit };
    const struct file_order order = {
        .kind = INSIDE_READ, .head = &read, .head_size = sizeof read, .path = &visit->path
    };
    return begin(visit, &order, err);
}

/* The size is known now: the part that was asked for is ordered anew. */
static int begin_part(struct exchange *exchange, const struct inside_file *file, error *err)
{
    struct visit *visit = exchange->user;
    char text[96];
    int part =
        range_read(exchange_header(exchange, MHD_HTTP_HEADER_RANGE), file->size, &visit->range);
    struct inside_file kept = *file;
    if (part == RANGE_BEYOND) {
        (void) snprintf(text, sizeof text, "bytes */%" PRIu64, kept.size);
        exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_RANGE, text);
        return fail(err, ERR_RANGE, "the file has %" PRIu64 " bytes; the range lies beyond",
                    kept.size);
    }
    visit->knows_size = true;
    if (part == RANGE_WHOLE)
        visit->range = (struct byte_range){ 0, kept.size };
    file_task_close(&visit->task);
    visit->task = (struct file_task){ .woken = on_woken, .context = visit };
    return begin_read(visit, visit->range.from, visit->range.size, FILE_WINDOW, err);
}

static void add_facts(struct exchange *exchange, const struct inside_file *file)
{
    char text[96];
    struct tm moment;
    time_t seconds = file->mtime_ns / 1000000000;
    if (gmtime_r(&seconds, &moment) &&
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &moment) > 0)
        exchange_add_header(exchange, MHD_HTTP_HEADER_LAST_MODIFIED, text);
    (void) snprintf(text, sizeof text, "\"%" PRIx64 "-%" PRIx64 "\"", file->size,
                    (uint64_t) file->mtime_ns);
    exchange_add_header(exchange, MHD_HTTP_HEADER_ETAG, text);
    exchange_add_header(exchange, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    exchange_add_header(exchange, "Content-Disposition", "attachment");
}

static void send_file(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    const struct inside_file *file = &visit->task.file;
    unsigned status = MHD_HTTP_OK;
    char text[96];
    add_facts(exchange, file);
    if (!visit->knows_size)
        visit->range = (struct byte_range){ 0, file->size };
    if (visit->knows_size && visit->range.size != file->size) {
        (void) snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                        visit->range.from, visit->range.from + visit->range.size - 1, file->size);
        exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_RANGE, text);
        status = MHD_HTTP_PARTIAL_CONTENT;
    }
    visit->streams = true;
    exchange_stream_as(exchange, status, mime_of(bytes_text(&visit->path), NULL, 0),
                       visit->range.size, read_flow);
}

static void get_file(struct exchange *exchange)
{
    error err;
    struct visit *visit = exchange->user;
    bool wants_part = exchange_header(exchange, MHD_HTTP_HEADER_RANGE) != NULL;
    bool wants_head = strcmp(exchange->method, "HEAD") == 0;
    if (!visit) {
        visit = visit_of(exchange, &err);
        if (visit)
            bytes_add_text(&visit->path, exchange->parameters[1]);
        if (!visit || begin_read(visit, 0, UINT64_MAX, wants_part || wants_head ? 0 : FILE_WINDOW,
                                 &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    if (visit->task.stands && wants_part && !visit->knows_size &&
        begin_part(exchange, &visit->task.file, &err) < 0)
        exchange_fail(exchange, &err);
    else if (visit->task.stands)
        send_file(exchange);
    else if (visit->task.is_ended)
        exchange_fail(exchange, &visit->task.failure);
    else
        exchange_wait(exchange);
}

static void flow_out(struct exchange *exchange, const struct file_order *wanted)
{
    error err;
    struct visit *visit = exchange->user;
    if (!visit) {
        const char *path = exchange_query(exchange, "path");
        visit = visit_of(exchange, &err);
        if (visit && path)
            bytes_add_text(&visit->path, path);
        struct file_order order = *wanted;
        if (visit)
            order.path = &visit->path;
        if (!visit || begin(visit, &order, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    if (!visit->task.stands && visit->task.is_ended)
        exchange_fail(exchange, &visit->task.failure);
    else if (!visit->task.stands)
        exchange_wait(exchange);
    else if (visit->task.kind == INSIDE_PACK)
        exchange_stream_as(exchange, MHD_HTTP_OK, "application/x-tar", STREAM_OF_ANY_SIZE,
                           read_flow);
    else
        exchange_stream(exchange, read_flow);
}

static void get_tar(struct exchange *exchange)
{
    const struct inside_flow flow = { .credit = FILE_WINDOW };
    flow_out(exchange,
             &(struct file_order){ .kind = INSIDE_PACK, .head = &flow, .head_size = sizeof flow });
}

static void get_watch(struct exchange *exchange)
{
    const char *deep = exchange_query(exchange, "recursive");
    const struct inside_watch watch = {
        .credit = WATCH_CREDIT,
        .flags =
            deep && strcmp(deep, "0") != 0 && strcmp(deep, "false") != 0 ? INSIDE_WATCH_DEEP : 0,
    };
    flow_out(exchange, &(struct file_order){
                           .kind = INSIDE_WATCH, .head = &watch, .head_size = sizeof watch });
}

/* --- in: PUT files/{path}, files:tar -------------------------------------------------------------
 */

static ssize_t take_upload(struct exchange *exchange, const char *data, size_t size, error *err)
{
    struct visit *visit = exchange->user;
    if (visit->task.is_ended) {
        *err = visit->task.failure;
        if (err->code == ERR_NONE)
            (void) fail(err, ERR_BAD_REQUEST, "bytes follow the end of the tar");
        return -1;
    }
    return (ssize_t) file_task_give(&visit->task, data, size);
}

static int mode_read(const char *octal, uint32_t *ret_mode, error *err)
{
    char *end;
    unsigned long mode = strtoul(octal, &end, 8);
    if (*octal < '0' || *octal > '7' || *end || mode == 0 || mode > 0777)
        return fail(err, ERR_BAD_REQUEST, "mode is octal, from 1 to 777");
    *ret_mode = (uint32_t) mode;
    return 0;
}

static int begin_put(struct exchange *exchange, error *err)
{
    uint32_t mode = 0;
    struct visit *visit = visit_of(exchange, err);
    const char *none = exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *octal = exchange_query(exchange, "mode");
    if (!visit || (octal && mode_read(octal, &mode, err) < 0))
        return -1;
    bytes_add_text(&visit->path, exchange->parameters[1]);
    const struct inside_write write = {
        .mode = mode,
        .flags = none && strcmp(none, "*") == 0 ? INSIDE_WRITE_NEW : 0,
    };
    const struct file_order order = {
        .kind = INSIDE_WRITE, .head = &write, .head_size = sizeof write, .path = &visit->path
    };
    return begin(visit, &order, err);
}

static int begin_put_tar(struct exchange *exchange, error *err)
{
    struct visit *visit = visit_of(exchange, err);
    const char *path = exchange_query(exchange, "path");
    if (!visit)
        return -1;
    if (path)
        bytes_add_text(&visit->path, path);
    const struct file_order order = { .kind = INSIDE_UNPACK, .path = &visit->path };
    return begin(visit, &order, err);
}

static void answer_upload(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    struct file_task *task = &visit->task;
    file_task_end_input(task);
    if (!task->is_ended) {
        exchange_wait(exchange);
        return;
    }
    if (task->failure.code != ERR_NONE) {
        exchange_fail(exchange, &task->failure);
        return;
    }
    struct bytes json = { 0 };
    json_open(&json, '{');
    file_path_write(visit->path.data ? visit->path.data : "", visit->path.size, &json);
    if (task->entry_count > 0) {
        json_count_field(&json, "size", task->entries[0].facts.size);
        json_count_field(&json, "mode", task->entries[0].facts.mode & 07777);
        json_number_field(&json, "modified_ms", task->entries[0].facts.mtime_ns / 1000000);
    }
    if (task->kind == INSIDE_UNPACK) {
        json_key(&json, "skipped");
        json_open(&json, '[');
        for (size_t at = 0; at < task->skipped.size;) {
            size_t size = strnlen(task->skipped.data + at, task->skipped.size - at);
            json_text(&json, task->skipped.data + at, size);
            at += size + 1;
        }
        json_close(&json, ']');
    }
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

/* --- signed URLs: one path, one method, until a moment -------------------------------------------
 */

static void write_url(struct bytes *out, const struct pass *pass)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    char signature[PASS_SIZE];
    pass_sign(pass, signature);
    bytes_print(out, "/v1/signed/%s/", pass->session);
    for (size_t i = 0; i < pass->path->size; i++) {
        char byte = pass->path->data[i];
        if (byte != '\0' && strchr(plain, byte))
            bytes_add(out, &byte, 1);
        else
            bytes_print(out, "%%%02X", (unsigned char) byte);
    }
    bytes_print(out, "?expires=%" PRIu64, pass->expires);
    if (*pass->key)
        bytes_print(out, "&key=%s", pass->key);
    if (*pass->mode)
        bytes_print(out, "&mode=%s", pass->mode);
    bytes_print(out, "&signature=%s", signature);
}

/* What a URL shall be for. */
struct wish {
    struct bytes method, mode;
    uint64_t seconds;
};

static int read_wish(struct exchange *exchange, struct visit *visit, struct wish *wish, error *err)
{
    const struct field fields[] = {
        { "path", FIELD_TEXT, &visit->path, INSIDE_PATH_MOST },
        { "path_base64", FIELD_BASE64, &visit->path, INSIDE_PATH_MOST },
        { "method", FIELD_TEXT, &wish->method, 8 },
        { "mode", FIELD_TEXT, &wish->mode, 4 },
        { "expires_s", FIELD_COUNT, &wish->seconds, SIGNED_SECONDS_MOST },
    };
    uint32_t mode;
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0 ||
        session_path_check(&visit->path, err) < 0)
        return -1;
    const char *method = bytes_text(&wish->method);
    bool is_put = strcmp(method, "PUT") == 0;
    if ((!is_put && *method && strcmp(method, "GET") != 0) || visit->path.size == 0 ||
        wish->seconds == 0 || (wish->mode.size > 0 && !is_put))
        return fail(err, ERR_BAD_REQUEST,
                    "a signed URL is for one 'path', for the 'method' GET or PUT (with the 'mode' "
                    "of the file), and for some seconds");
    return wish->mode.size > 0 ? mode_read(bytes_text(&wish->mode), &mode, err) : 0;
}

static void post_sign(struct exchange *exchange)
{
    error err = { 0 };
    struct wish wish = { .seconds = 300 };
    struct visit *visit = visit_of(exchange, &err);
    const struct session *session = visit ? find_session(exchange, &err) : NULL;
    if (!session || read_wish(exchange, visit, &wish, &err) < 0) {
        bytes_done(&wish.method);
        bytes_done(&wish.mode);
        exchange_fail(exchange, &err);
        return;
    }
    auto_bytes url = { 0 };
    const struct pass pass = { .key = exchange->account->key.id,
                               .session = session_id(session),
                               .deed = wish.method.size > 0 ? bytes_text(&wish.method) : "GET",
                               .mode = bytes_text(&wish.mode),
                               .path = &visit->path,
                               .expires = (uint64_t) wall_clock_ms() / 1000 + wish.seconds };
    write_url(&url, &pass);
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_string_field(&json, "url", bytes_text(&url));
    json_string_field(&json, "method", pass.deed);
    json_count_field(&json, "expires", pass.expires);
    json_close(&json, '}');
    bytes_done(&wish.method);
    bytes_done(&wish.mode);
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const char *query_or_nothing(const struct exchange *exchange, const char *name)
{
    const char *value = exchange_query(exchange, name);
    return value ? value : "";
}

/* Says the same of everything that is wrong with a signature. */
static int check_permit(struct exchange *exchange, error *err)
{
    uint64_t expires;
    if (exchange_query_count(exchange, "expires", UINT32_MAX * UINT64_C(4), 0, &expires, err) < 0)
        return -1;
    auto_bytes path = { 0 };
    bytes_add_text(&path, exchange->parameters[1]);
    const struct pass pass = { .key = query_or_nothing(exchange, "key"),
                               .session = exchange->parameters[0],
                               .deed = strcmp(exchange->method, "PUT") == 0 ? "PUT" : "GET",
                               .mode = query_or_nothing(exchange, "mode"),
                               .path = &path,
                               .expires = expires };
    if (!pass_fits(&pass, exchange_query(exchange, "signature")))
        return fail(err, ERR_UNAUTHORIZED, "the signature does not fit this URL and method");
    if ((uint64_t) wall_clock_ms() / 1000 >= expires)
        return fail(err, ERR_UNAUTHORIZED, "the signature has expired; ask for a new one");
    return pass_use(exchange, &pass, err);
}

static int begin_signed_put(struct exchange *exchange, error *err)
{
    return check_permit(exchange, err) < 0 ? -1 : begin_put(exchange, err);
}

/* clang-format off */
static const struct route rows[] = {
    { "POST",   "/v1/sessions/{id}/files:stat",  BODY_JSON,   post_stat,  "What stands at a path of a session" },
    { "POST",   "/v1/sessions/{id}/files:list",  BODY_JSON,   post_list,  "The entries below a folder, to a depth, sorted by path" },
    { "POST",   "/v1/sessions/{id}/files:mkdir", BODY_JSON,   post_mkdir, "Makes a folder, and those that lead to it", .status = 201 },
    { "POST",   "/v1/sessions/{id}/files:move",  BODY_JSON,   post_move,  "Gives a file or folder another path" },
    { "POST",   "/v1/sessions/{id}/files:sign",  BODY_JSON,   post_sign,  "A URL that needs no key: one path, one method, for some time" },
    { "GET",    "/v1/sessions/{id}/files:watch", BODY_NONE,   get_watch,  "Changes below a folder, as events", .mime = "text/event-stream", .streams = true },
    { "GET",    "/v1/sessions/{id}/files:tar",   BODY_NONE,   get_tar,    "A folder and what is below it as a tar", .mime = "application/x-tar" },
    { "PUT",    "/v1/sessions/{id}/files:tar",   BODY_STREAM, answer_upload, "Unpacks a tar into a folder", .begin = begin_put_tar, .take = take_upload },
    { "GET",    "/v1/sessions/{id}/files/{path}", BODY_NONE,  get_file,   "The bytes of a file; a part by Range", .mime = "*/*" },
    { "PUT",    "/v1/sessions/{id}/files/{path}", BODY_STREAM, answer_upload, "Writes a file whole, in place of what had its name", .begin = begin_put, .take = take_upload },
    { "DELETE", "/v1/sessions/{id}/files/{path}", BODY_NONE,  delete_file, "Removes a file, or a folder with what is in it" },
    { "GET",    "/v1/signed/{id}/{path}",        BODY_NONE,   get_file,   "As GET files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = check_permit, .mime = "*/*" },
    { "PUT",    "/v1/signed/{id}/{path}",        BODY_STREAM, answer_upload, "As PUT files/{path}, by a signed URL", .right = RIGHT_NONE, .begin = begin_signed_put, .take = take_upload },
};
/* clang-format on */
const struct route_table file_routes = { "files", rows, COUNT_OF(rows), RIGHT_SESSIONS };
