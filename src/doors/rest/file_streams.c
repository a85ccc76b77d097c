/* file_streams.c - the bytes of files, through a window: GET and PUT files/{path}, files:tar,
 * files:watch. An incomplete upload does not change the file. */
#include "doors/rest/file_request.h"

#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static ssize_t read_flow(struct exchange *exchange, char *bytes, size_t size)
{
    const struct file_visit *visit = exchange->user;
    return file_task_take(visit->task, bytes, size);
}

static int begin_read(struct exchange *exchange, uint64_t from, uint64_t size, bool facts_only,
                      error *err)
{
    const struct file_order order = {
        .action = FILE_READ, .from = from, .size = size, .facts_only = facts_only
    };
    return file_visit_begin_at(exchange, exchange->parameters[1], order, err);
}

/* Called when the size is known: orders the part that the client wants. */
static int begin_part(struct exchange *exchange, uint64_t size, error *err)
{
    struct file_visit *visit = exchange->user;
    char text[96];
    int part = range_read(exchange_header(exchange, MHD_HTTP_HEADER_RANGE), size, &visit->range);
    if (part == RANGE_BEYOND) {
        (void) snprintf(text, sizeof text, "bytes */%" PRIu64, size);
        exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_RANGE, text);
        return fail(err, ERR_RANGE, "the file has %" PRIu64 " bytes; the range lies beyond", size);
    }
    visit->knows_size = true;
    if (part == RANGE_WHOLE)
        visit->range = (struct byte_range){ 0, size };
    file_task_free(visit->task);
    visit->task = NULL;
    return begin_read(exchange, visit->range.from, visit->range.size, false, err);
}

static void add_facts(struct exchange *exchange, const struct file_entry *file)
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

static void send_file(struct exchange *exchange, const struct file_entry *file)
{
    struct file_visit *visit = exchange->user;
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
    exchange_stream_as(exchange, status, file_task_media_type(visit->task), visit->range.size,
                       read_flow);
}

/* True if bytes can be sent; else an error was answered, or the exchange waits. */
static bool flow_is_ready(struct exchange *exchange)
{
    const struct file_visit *visit = exchange->user;
    error err;
    int ready = file_task_look(visit->task, &err);
    if (ready < 0)
        exchange_fail(exchange, &err);
    else if (ready == FILE_LATER)
        exchange_wait(exchange);
    return ready == FILE_READY;
}

void file_get(struct exchange *exchange)
{
    error err;
    bool wants_part = exchange_header(exchange, MHD_HTTP_HEADER_RANGE) != NULL;
    bool wants_head = strcmp(exchange->method, "HEAD") == 0;
    if (!exchange->user &&
        begin_read(exchange, 0, UINT64_MAX, wants_part || wants_head, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    const struct file_visit *visit = exchange->user;
    struct file_entry file;
    if (!flow_is_ready(exchange))
        return;
    file_task_facts(visit->task, &file);
    if (!wants_part || visit->knows_size)
        send_file(exchange, &file);
    else if (begin_part(exchange, file.size, &err) < 0)
        exchange_fail(exchange, &err);
    else
        (void) flow_is_ready(exchange); /* waits for the next turn */
}

static bool flow_out(struct exchange *exchange, const struct file_order *order)
{
    error err;
    if (!exchange->user &&
        file_visit_begin_at(exchange, exchange_query(exchange, "path"), *order, &err) < 0) {
        exchange_fail(exchange, &err);
        return false;
    }
    return flow_is_ready(exchange);
}

void file_get_tar(struct exchange *exchange)
{
    if (flow_out(exchange, &(struct file_order){ .action = FILE_PACK }))
        exchange_stream_as(exchange, MHD_HTTP_OK, "application/x-tar", STREAM_OF_ANY_SIZE,
                           read_flow);
}

static void write_change(const struct file_change *change, struct bytes *out)
{
    const struct file_entry *entry = &change->entry;
    auto_bytes json = json_begin('{');
    file_path_write(entry->path, entry->path_size, &json);
    if (entry->mode != 0) {
        json_string_field(&json, "type", file_type_name(entry->mode));
        file_facts_write(entry, &json);
    }
    json_close(&json, '}');
    bytes_print(out, "event: %s\ndata: ", change->what);
    bytes_add(out, json.data, json.size);
    bytes_add_text(out, "\n\n");
}

/* The event `error`: the folder is gone, or the session has ended. */
static void write_last_event(const struct exchange *exchange, const error *why, struct bytes *out)
{
    auto_bytes json = { 0 };
    (void) exchange_write_error(exchange, why, &json);
    bytes_add_text(out, "event: error\ndata: ");
    bytes_add(out, json.data, json.size);
    bytes_add_text(out, "\n");
}

static ssize_t read_changes(struct exchange *exchange, char *bytes, size_t size)
{
    struct file_visit *visit = exchange->user;
    struct file_change change;
    size_t copied = 0;
    while (copied < size) {
        if (chunked_text_are_taken(&visit->event)) {
            int got =
                visit->is_last_event ? STREAM_END : file_task_next_change(visit->task, &change);
            const error *why = file_task_failure(visit->task);
            bool breaks = got == STREAM_BROKEN && why->code != ERR_NONE;
            if (got <= 0 && !breaks)
                return copied > 0 ? (ssize_t) copied : got;
            chunked_text_forget(&visit->event);
            visit->is_last_event = breaks;
            if (breaks)
                write_last_event(exchange, why, &visit->event.text);
            else
                write_change(&change, &visit->event.text);
        }
        if (visit->event.text.failed)
            return STREAM_BROKEN;
        copied += chunked_text_take(&visit->event, bytes + copied, size - copied);
    }
    return (ssize_t) copied;
}

void file_get_watch(struct exchange *exchange)
{
    const char *deep = exchange_query(exchange, "recursive");
    const struct file_order order = {
        .action = FILE_WATCH,
        .is_recursive = deep && strcmp(deep, "0") != 0 && strcmp(deep, "false") != 0,
    };
    if (flow_out(exchange, &order))
        exchange_stream(exchange, read_changes);
}

ssize_t file_take_upload(struct exchange *exchange, const char *data, size_t size, error *err)
{
    const struct file_visit *visit = exchange->user;
    return file_task_give(visit->task, data, size, err);
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
    const char *none = exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *octal = exchange_query(exchange, "mode");
    struct file_order order = { .action = FILE_WRITE, .is_new = none && strcmp(none, "*") == 0 };
    if (octal && file_mode_read(octal, &order.mode, err) < 0)
        return -1;
    return file_visit_begin_at(exchange, exchange->parameters[1], order, err);
}

int file_begin_put_tar(struct exchange *exchange, error *err)
{
    return file_visit_begin_at(exchange, exchange_query(exchange, "path"),
                               (struct file_order){ .action = FILE_UNPACK }, err);
}

static void answer_written(struct exchange *exchange)
{
    const struct file_visit *visit = exchange->user;
    const struct bytes *path = file_task_path(visit->task);
    struct file_entry entry;
    struct bytes json = json_begin('{');
    file_path_write(path->data ? path->data : "", path->size, &json);
    if (file_task_next_entry(visit->task, &entry))
        file_facts_write(&entry, &json);
    if (exchange->route->begin == file_begin_put_tar) {
        json_key(&json, "skipped");
        json_texts(&json, file_task_skipped(visit->task));
    }
    exchange_end_json(exchange, &json, "}");
}

void file_answer_upload(struct exchange *exchange)
{
    const struct file_visit *visit = exchange->user;
    error err;
    file_task_end_input(visit->task);
    int done = file_task_look(visit->task, &err);
    if (done < 0)
        exchange_fail(exchange, &err);
    else if (done == FILE_LATER)
        exchange_wait(exchange);
    else
        answer_written(exchange);
}
