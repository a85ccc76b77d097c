/* file_streams.c - the bytes of files, through a window: GET and PUT files/{path}, files:tar,
 * files:watch. An upload that is not whole leaves what was there. */
#include "doors/rest/file_request.h"

#include "engine/store/blobs.h"
#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WATCH_CREDIT = 64 * 1024 };

/* --- out ----------------------------------------------------------------------------------------
 */

static ssize_t read_flow(struct exchange *exchange, char *bytes, size_t size)
{
    struct file_visit *visit = exchange->user;
    size_t got = file_task_take(&visit->task, bytes, size);
    if (got > 0)
        return (ssize_t) got;
    if (visit->task.has_ended)
        return STREAM_END;
    return visit->task.is_ended ? STREAM_BROKEN : STREAM_LATER;
}

static int begin_read(struct file_visit *visit, uint64_t offset, uint64_t length, uint64_t credit,
                      error *err)
{
    struct agent_read read = { .offset = offset, .length = length, .credit = credit };
    const struct file_order order = {
        .kind = AGENT_READ, .head = &read, .head_size = sizeof read, .path = &visit->path
    };
    return file_visit_begin(visit, &order, err);
}

/* The size is known now: the part that was asked for is ordered anew. */
static int begin_part(struct exchange *exchange, const struct agent_file *file, error *err)
{
    struct file_visit *visit = exchange->user;
    char text[96];
    int part =
        range_read(exchange_header(exchange, MHD_HTTP_HEADER_RANGE), file->size, &visit->range);
    struct agent_file kept = *file;
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
    visit->task = (struct file_task){ .woken = file_visit_woken, .context = visit };
    return begin_read(visit, visit->range.from, visit->range.size, FILE_WINDOW, err);
}

static void add_facts(struct exchange *exchange, const struct agent_file *file)
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
    struct file_visit *visit = exchange->user;
    const struct agent_file *file = &visit->task.file;
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

void file_get(struct exchange *exchange)
{
    error err;
    struct file_visit *visit = exchange->user;
    bool wants_part = exchange_header(exchange, MHD_HTTP_HEADER_RANGE) != NULL;
    bool wants_head = strcmp(exchange->method, "HEAD") == 0;
    if (!visit) {
        visit = file_visit_new(exchange, &err);
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
    struct file_visit *visit = exchange->user;
    if (!visit) {
        const char *path = exchange_query(exchange, "path");
        visit = file_visit_new(exchange, &err);
        if (visit && path)
            bytes_add_text(&visit->path, path);
        struct file_order order = *wanted;
        if (visit)
            order.path = &visit->path;
        if (!visit || file_visit_begin(visit, &order, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    if (!visit->task.stands && visit->task.is_ended)
        exchange_fail(exchange, &visit->task.failure);
    else if (!visit->task.stands)
        exchange_wait(exchange);
    else if (visit->task.kind == AGENT_PACK)
        exchange_stream_as(exchange, MHD_HTTP_OK, "application/x-tar", STREAM_OF_ANY_SIZE,
                           read_flow);
    else
        exchange_stream(exchange, read_flow);
}

void file_get_tar(struct exchange *exchange)
{
    const struct agent_flow flow = { .credit = FILE_WINDOW };
    flow_out(exchange,
             &(struct file_order){ .kind = AGENT_PACK, .head = &flow, .head_size = sizeof flow });
}

void file_get_watch(struct exchange *exchange)
{
    const char *deep = exchange_query(exchange, "recursive");
    const struct agent_watch watch = {
        .credit = WATCH_CREDIT,
        .flags =
            deep && strcmp(deep, "0") != 0 && strcmp(deep, "false") != 0 ? AGENT_WATCH_DEEP : 0,
    };
    flow_out(exchange, &(struct file_order){
                           .kind = AGENT_WATCH, .head = &watch, .head_size = sizeof watch });
}

/* --- in -----------------------------------------------------------------------------------------
 */

ssize_t file_take_upload(struct exchange *exchange, const char *data, size_t size, error *err)
{
    struct file_visit *visit = exchange->user;
    if (visit->task.is_ended) {
        *err = visit->task.failure;
        if (err->code == ERR_NONE)
            (void) fail(err, ERR_BAD_REQUEST, "bytes follow the end of the tar");
        return -1;
    }
    return (ssize_t) file_task_give(&visit->task, data, size);
}

int file_mode_read(const char *octal, uint32_t *ret_mode, error *err)
{
    char *end;
    unsigned long mode = strtoul(octal, &end, 8);
    if (*octal < '0' || *octal > '7' || *end || mode == 0 || mode > 0777)
        return fail(err, ERR_BAD_REQUEST, "mode is octal, from 1 to 777");
    *ret_mode = (uint32_t) mode;
    return 0;
}

int file_begin_put(struct exchange *exchange, error *err)
{
    uint32_t mode = 0;
    struct file_visit *visit = file_visit_new(exchange, err);
    const char *none = exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *octal = exchange_query(exchange, "mode");
    if (!visit || (octal && file_mode_read(octal, &mode, err) < 0))
        return -1;
    bytes_add_text(&visit->path, exchange->parameters[1]);
    const struct agent_write write = {
        .mode = mode,
        .flags = none && strcmp(none, "*") == 0 ? AGENT_WRITE_NEW : 0,
    };
    const struct file_order order = {
        .kind = AGENT_WRITE, .head = &write, .head_size = sizeof write, .path = &visit->path
    };
    return file_visit_begin(visit, &order, err);
}

int file_begin_put_tar(struct exchange *exchange, error *err)
{
    struct file_visit *visit = file_visit_new(exchange, err);
    const char *path = exchange_query(exchange, "path");
    if (!visit)
        return -1;
    if (path)
        bytes_add_text(&visit->path, path);
    const struct file_order order = { .kind = AGENT_UNPACK, .path = &visit->path };
    return file_visit_begin(visit, &order, err);
}

void file_answer_upload(struct exchange *exchange)
{
    struct file_visit *visit = exchange->user;
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
    if (task->kind == AGENT_UNPACK) {
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
