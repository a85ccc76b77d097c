/* artifacts.c - /v1/artifacts and artifacts.zip: files that programs made. Their bytes may be
 * hostile: they are always sent as a download, never shown as a page. */
#include "base/cleanup.h"
#include "base/table.h"
#include "doors/rest/rest.h"
#include "doors/rest/run_follow.h"
#include "doors/rest/zip.h"
#include "engine/service/service_artifacts.h"
#include "engine/service/service_observe.h"
#include "json/member.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 32 * 1024 };

/* A request for a file that an earlier daemon stored, until it is hashed. */
struct look {
    struct exchange *exchange;
    struct artifact_check *check; /* NULL: it has ended */
    error failure;
};

static void on_checked(void *user, const error *why)
{
    struct look *look = user;
    look->check = NULL;
    if (why)
        look->failure = *why;
    exchange_wake(look->exchange);
}

static void look_away(struct exchange *exchange)
{
    struct look *look = exchange->user;
    if (look->check)
        artifact_check_await(look->check, NULL, NULL);
    free(look);
}

/* Returns 1 if the request waits for it. */
static int check_first(struct exchange *exchange, const char *name, error *err)
{
    struct look *look = exchange->user;
    if (look && look->failure.code != ERR_NONE) {
        *err = look->failure;
        return -1;
    }
    if (look)
        return look->check != NULL;
    struct artifact_check *check;
    int result = service_artifact_check(exchange->service, &exchange->caller, name, &check, err);
    if (result <= 0)
        return result;
    look = exchange->user = calloc(1, sizeof *look);
    if (!look) {
        artifact_check_await(check, NULL, NULL);
        return fail(err, ERR_SYSTEM, "no memory to wait");
    }
    exchange->closed = look_away;
    *look = (struct look){ .exchange = exchange, .check = check };
    artifact_check_await(check, on_checked, look);
    return 1;
}

static void get_artifact(struct exchange *exchange)
{
    static const char prefix[] = "sha256:";
    const char *name = exchange->parameters[0];
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    error err;
    struct artifact_file view;
    int result = check_first(exchange, name, &err);
    if (result > 0) {
        exchange_wait(exchange);
        return;
    }
    if (result < 0 ||
        service_artifact_open(exchange->service, &exchange->caller, name, &view, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_DISPOSITION, "attachment");
    exchange_file(exchange, view.fd, view.size, view.mime, name);
}

/* An archive that is being sent. The list is that of the result. */
struct packing {
    struct json_object *list;
    size_t count, next; /* files; `next` is the current one */
    int fd;             /* the open file */
    uint64_t left;      /* of its bytes */
    bool has_ended;
    struct zip zip;
    struct bytes pending; /* zip records between the files' bytes */
    size_t sent;          /* of them */
};

static const char *text_of(const struct packing *packing, size_t index, const char *field)
{
    struct json_object *row = json_object_array_get_idx(packing->list, index);
    const char *text = json_object_get_string(json_object_object_get(row, field));
    return text ? text : "";
}

static uint64_t size_of(const struct packing *packing, size_t index)
{
    struct json_object *row = json_object_array_get_idx(packing->list, index);
    return json_object_get_uint64(json_object_object_get(row, "bytes"));
}

static void packing_free(struct exchange *exchange)
{
    struct packing *packing = exchange->user;
    close_fd(&packing->fd);
    (void) json_object_put(packing->list);
    zip_done(&packing->zip);
    bytes_done(&packing->pending);
    free(packing);
}

static int open_next(struct exchange *exchange, struct packing *packing, error *err)
{
    struct artifact_file view;
    if (service_artifact_open(exchange->service, &exchange->caller,
                              text_of(packing, packing->next, "sha256"), &view, err) < 0)
        return -1;
    packing->fd = view.fd;
    packing->left = view.size;
    if (view.size != size_of(packing, packing->next))
        return fail(err, ERR_SYSTEM, "its size has changed");
    return 0;
}

/* Writes the next zip record, which is between the bytes of two files. */
static int next_record(struct exchange *exchange, struct packing *packing, error *err)
{
    packing->pending.size = packing->sent = 0;
    const char *name = text_of(packing, packing->next, "path");
    if (packing->fd >= 0) {
        zip_file_end(&packing->zip, name, &packing->pending);
        (void) close(packing->fd);
        packing->fd = -1;
        packing->next++;
        return 0;
    }
    if (packing->next < packing->count) {
        zip_file_begin(&packing->zip, name, &packing->pending);
        return open_next(exchange, packing, err);
    }
    zip_end(&packing->zip, &packing->pending);
    packing->has_ended = true;
    return 0;
}

static size_t copy_pending(struct packing *packing, char *bytes, size_t size)
{
    size_t here = packing->pending.size - packing->sent;
    if (here > size)
        here = size;
    if (here > 0)
        memcpy(bytes, packing->pending.data + packing->sent, here);
    packing->sent += here;
    return here;
}

static ssize_t copy_file(struct packing *packing, char *bytes, size_t size)
{
    size_t here = packing->left < size ? (size_t) packing->left : size;
    ssize_t got = read(packing->fd, bytes, here);
    if (got <= 0)
        return -1;
    zip_count(&packing->zip, bytes, (size_t) got);
    packing->left -= (uint64_t) got;
    return got;
}

static ssize_t read_archive(struct exchange *exchange, char *bytes, size_t size)
{
    struct packing *packing = exchange->user;
    error err;
    for (;;) {
        if (packing->pending.failed)
            return STREAM_BROKEN;
        if (packing->sent < packing->pending.size)
            return (ssize_t) copy_pending(packing, bytes, size);
        if (packing->fd >= 0 && packing->left > 0) {
            ssize_t got = copy_file(packing, bytes, size);
            return got > 0 ? got : STREAM_BROKEN;
        }
        if (packing->has_ended)
            return STREAM_END;
        if (next_record(exchange, packing, &err) < 0) {
            service_log_warning(&exchange->caller, LOGGED_ARCHIVE_ABORTED, "file",
                                text_of(packing, packing->next, "path"), err.text);
            return STREAM_BROKEN;
        }
    }
}

static int read_list(struct packing *packing, const struct watch *watch, error *err)
{
    const struct bytes *text = watch_result(watch);
    struct json_tokener *reader = json_tokener_new();
    auto_json result = reader ? json_tokener_parse_ex(reader, text->data, (int) text->size) : NULL;
    if (reader)
        json_tokener_free(reader);
    packing->list = json_object_get(json_member(result, "artifacts")); /* without the rest */
    if (!packing->list)
        return fail(err, ERR_SYSTEM, "no memory to list the artifacts of %s", watch_id(watch));
    packing->count = json_object_array_length(packing->list);
    return 0;
}

static int measure(const struct packing *packing, uint64_t *ret_size, error *err)
{
    struct zip_size size = { 0 };
    for (size_t i = 0; i < packing->count; i++) {
        const char *name = text_of(packing, i, "path");
        if (!zip_name_is_safe(name))
            return fail(err, ERR_CONFLICT,
                        "'%.80s' is not a safe name; fetch the artifacts one by one", name);
        zip_size_add(&size, name, size_of(packing, i));
    }
    *ret_size = zip_size_end(&size);
    return 0;
}

static int check_archive(const struct watch *watch, error *err)
{
    if (watch_is_lost(watch))
        return fail(err, ERR_NOT_FOUND, "%.60s was lost, and its artifacts with it",
                    watch_id(watch));
    if (watch_is_over(watch))
        return 0;
    return fail(err, ERR_CONFLICT, "%s is %s; its artifacts are known when it has ended",
                watch_id(watch), watch_state(watch));
}

static int begin_archive(struct exchange *exchange, const struct watch *watch, uint64_t *ret_size,
                         error *err)
{
    if (check_archive(watch, err) < 0)
        return -1;
    struct packing *packing = calloc(1, sizeof *packing);
    if (!packing)
        return fail(err, ERR_SYSTEM, "no memory to list the artifacts of %s", watch_id(watch));
    packing->fd = -1;
    exchange->user = packing;
    exchange->closed = packing_free;
    return read_list(packing, watch, err) < 0 ? -1 : measure(packing, ret_size, err);
}

static void get_archive(struct exchange *exchange)
{
    const struct watcher watcher = exchange_watcher(exchange, false);
    uint64_t size = 0;
    error err;
    struct watch *watch = service_watch(exchange->service, &exchange->caller,
                                        exchange->parameters[0], &watcher, &err);
    int result = watch ? begin_archive(exchange, watch, &size, &err) : -1;
    if (watch)
        watch_close(watch);
    if (result < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    char value[80];
    (void) snprintf(value, sizeof value, "attachment; filename=\"%s.zip\"",
                    exchange->parameters[0]);
    exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_DISPOSITION, value);
    exchange_stream_as(exchange, MHD_HTTP_OK, "application/zip", size, read_archive);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/runs/{id}/artifacts.zip", BODY_NONE, get_archive,  "All files that a run made, in one archive", .mime = "application/zip", .operation = "readArtifacts" },
    { "GET", "/v1/artifacts/{sha256}",      BODY_NONE, get_artifact, "The bytes of a file that a run made, or a part of them",
      .mime = "*/*", .operation = "readArtifact",
      .query = QUERY({ "Range", IN_HEADER, "string", "bytes=from-to, bytes=from- or bytes=-last" },
                     { "If-None-Match", IN_HEADER, "string", "an ETag: 304 if the file still has it" }) },
    /* clang-format on */
};

const struct route_table artifact_routes = { "artifacts", rows, COUNT_OF(rows), RIGHT_RESULTS,
                                             .text = "Files that runs made" };
