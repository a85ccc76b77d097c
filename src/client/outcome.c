/* outcome.c - reads a result. Texts belong to the parsed JSON, and are valid as long as the
 * outcome.
 */
#include "client/client.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "json/member.h"

#include <stdio.h>
#include <string.h>

enum { SILENCE_MS = 120000, EXIT_NOT_EXPECTED = 65 /* EX_DATAERR of sysexits.h */ };

static const char *const statuses[] = {
    [GLB_STATUS_OK] = "ok",
    [GLB_STATUS_ERROR] = "error",
    [GLB_STATUS_LIMIT] = "limit",
    [GLB_STATUS_DENIED] = "denied",
    [GLB_STATUS_PENDING_APPROVAL] = "pending_approval",
    [GLB_STATUS_CANCELLED] = "cancelled",
    [GLB_STATUS_LOST] = "lost",
};

int outcome_parse(char *text, struct glb_outcome **ret_outcome, error *err)
{
    auto_text owned = text;
    auto_json root = json_tokener_parse(text);
    if (!json_object_object_get_ex(root, "status", NULL))
        return fail(err, ERR_PROTOCOL,
                    "gloveboxd sent a result that is none; are its version and "
                    "that of glovebox the same?");
    struct glb_outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome)
        return fail(err, ERR_INTERNAL, "out of memory");
    outcome->text = take_text(&owned);
    outcome->root = take_json(&root);
    *ret_outcome = outcome;
    return 0;
}

void glb_outcome_free(glb_outcome *outcome)
{
    if (!outcome)
        return;
    json_object_put(outcome->root);
    free(outcome->text);
    free(outcome);
}

const char *glb_outcome_json(const glb_outcome *outcome)
{
    return outcome->text;
}

static const char *text_of(json_object *object, const char *key)
{
    json_object *value = json_member(object, key);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static json_object *row_of(json_object *object, const char *list, size_t index)
{
    json_object *rows = json_member(object, list);
    return json_object_is_type(rows, json_type_array) ? json_object_array_get_idx(rows, index)
                                                      : NULL;
}

static int32_t no_such_row(const char *what)
{
    error err = { 0 };
    (void) fail(&err, ERR_NOT_FOUND, "there is no such %s", what);
    return report(&err);
}

int32_t glb_outcome_status(const glb_outcome *outcome)
{
    const char *name = text_of(outcome->root, "status");
    for_each(status, statuses)
        if (strcmp(*status, name) == 0)
            return (int32_t) (status - statuses);
    return GLB_STATUS_LOST; /* a status of a newer daemon */
}

int32_t glb_outcome_exit_code(const glb_outcome *outcome)
{
    json_object *value = json_member(outcome->root, "exit_code");
    return value ? json_object_get_int(value) : -1;
}

int32_t glb_outcome_signal(const glb_outcome *outcome)
{
    json_object *value = json_member(outcome->root, "signal");
    return value && json_object_is_type(value, json_type_int) ? json_object_get_int(value) : 0;
}

/* There was an expectation of its output, and no check has confirmed it. */
static bool output_check_is_closed(const glb_outcome *outcome)
{
    json_object *output_check = json_member(outcome->root, "gate");
    return output_check && strcmp(text_of(output_check, "verdict"), "passed") != 0;
}

/* The program's end is withheld as well. */
static bool is_withheld(const glb_outcome *outcome)
{
    return *text_of(json_member(outcome->root, "gate"), "withheld");
}

int32_t glb_outcome_exit_status(const glb_outcome *outcome)
{
    int32_t code = glb_outcome_exit_code(outcome), signal = glb_outcome_signal(outcome);
    const char *limit = text_of(json_member(outcome->root, "limit"), "name");
    switch (glb_outcome_status(outcome)) {
    case GLB_STATUS_DENIED:
    case GLB_STATUS_PENDING_APPROVAL:
        return 126;
    case GLB_STATUS_CANCELLED:
        return 130;
    case GLB_STATUS_LOST:
        return 125;
    case GLB_STATUS_LIMIT:
        if (strcmp(limit, "memory") == 0)
            return 137;
        if (strcmp(limit, "wall") == 0 || strcmp(limit, "cpu") == 0 || strcmp(limit, "output") == 0)
            return 124;
        break;
    default:
        break;
    }
    if (is_withheld(outcome) || (code == 0 && output_check_is_closed(outcome)))
        return EXIT_NOT_EXPECTED;
    return code >= 0 ? code : signal > 0 ? 128 + signal : 125;
}

int32_t glb_outcome_output(const glb_outcome *outcome, int32_t stream, const char **ret_data,
                           size_t *ret_length)
{
    json_object *value = json_member(outcome->root, stream == GLB_STDERR ? "stderr" : "stdout");
    if (!value)
        return no_such_row("output");
    *ret_data = json_object_get_string(value);
    *ret_length = (size_t) json_object_get_string_len(value);
    return GLB_OK;
}

int32_t glb_outcome_limit(const glb_outcome *outcome, glb_limit_reached *ret_limit, size_t size)
{
    json_object *limit = json_member(outcome->root, "limit");
    if (!limit)
        return no_such_row("limit");
    glb_limit_reached reached = {
        .name = text_of(limit, "name"),
        .unit = text_of(limit, "unit"),
        .message = text_of(limit, "message"),
        .granted = member_count(limit, "granted"),
        .used = member_count(limit, "used"),
    };
    give_struct(ret_limit, size, &reached, sizeof reached);
    return GLB_OK;
}

int32_t glb_outcome_error(const glb_outcome *outcome, glb_program_error *ret_error, size_t size)
{
    json_object *inner = json_member(outcome->root, "error");
    if (!inner)
        return no_such_row("error");
    glb_program_error told = {
        .name = text_of(inner, "name"),
        .value = text_of(inner, "value"),
        .traceback = text_of(inner, "traceback"),
    };
    give_struct(ret_error, size, &told, sizeof told);
    return GLB_OK;
}

int32_t glb_outcome_limit_hit(const glb_outcome *outcome, size_t index, glb_limit_hit *ret_hit,
                              size_t size)
{
    json_object *row = row_of(outcome->root, "limit_hits", index);
    if (!row)
        return no_such_row("limit");
    glb_limit_hit hit = { .name = text_of(row, "name"), .count = member_count(row, "count") };
    give_struct(ret_hit, size, &hit, sizeof hit);
    return GLB_OK;
}

int32_t glb_outcome_denial(const glb_outcome *outcome, size_t index, glb_denial *ret_denial,
                           size_t size)
{
    json_object *row = row_of(outcome->root, "denials", index);
    if (!row)
        return no_such_row("denial");
    glb_denial denial = {
        .layer = text_of(row, "layer"),
        .target = text_of(row, "target"),
        .message = text_of(row, "message"),
        .count = member_count(row, "count"),
    };
    give_struct(ret_denial, size, &denial, sizeof denial);
    return GLB_OK;
}

int32_t glb_outcome_degraded(const glb_outcome *outcome, size_t index, const char **ret_wall)
{
    json_object *wall = row_of(json_member(outcome->root, "isolation"), "degraded", index);
    if (!wall)
        return no_such_row("wall");
    *ret_wall = json_object_get_string(wall);
    return GLB_OK;
}

int32_t glb_outcome_artifact(const glb_outcome *outcome, size_t index, glb_artifact *ret_artifact,
                             size_t size)
{
    json_object *row = row_of(outcome->root, "artifacts", index);
    if (!row)
        return no_such_row("artifact");
    glb_artifact artifact = {
        .path = text_of(row, "path"),
        .sha256 = text_of(row, "sha256"),
        .mime = text_of(row, "mime"),
        .bytes = member_count(row, "bytes"),
    };
    give_struct(ret_artifact, size, &artifact, sizeof artifact);
    return GLB_OK;
}

/* Checks a URL path that the daemon gave, and that is sent back to it: must begin with `start`. */
static bool is_address(const char *url, const char *start)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789:_-";
    size_t length = strlen(url), at = strlen(start);
    if (length <= at || length > 200 || strncmp(url, start, at) != 0)
        return false;
    while (at < length && strchr(letters, url[at]))
        at++;
    return at == length;
}

int client_fetch(struct glb_client *client, const char *path, int fd, error *err)
{
    struct http *http = NULL;
    struct http_request request = { .method = "GET", .path = path, .accept = "*/*" };
    if (client_connection(client, &http, err) < 0)
        return -1;
    http->until = deadline_in(SILENCE_MS);
    if (http_send(http, &request, err) < 0)
        return -1;
    int outcome = http_receive(http, err);
    if (outcome == 0 && http->status != 200) {
        auto_text body = NULL;
        size_t size = 0;
        outcome = http_read_all(http, 65536, &body, &size, err);
        if (outcome == 0)
            return answer_failed(http->status, body, err);
    }
    while (outcome == 0) {
        char block[8192];
        size_t got = 0;
        http->until = deadline_in(SILENCE_MS);
        outcome = http_read(http, block, sizeof block, &got, err);
        if (outcome != 0 || got == 0)
            break;
        for (size_t done = 0; done < got;) { /* a signal may end it: not write_whole() */
            ssize_t written = write(fd, block + done, got - done);
            if (written < 0)
                return fail_os(err, "write what gloveboxd sent");
            done += (size_t) written;
        }
    }
    if (outcome == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    return outcome == HTTP_CLOSED ? client_lost(client, err) : outcome;
}

int32_t glb_artifact_write(glb_client *client, const glb_outcome *outcome, size_t index, int fd)
{
    json_object *row = row_of(outcome->root, "artifacts", index);
    if (!row)
        return no_such_row("artifact");
    error err = { 0 };
    const char *url = text_of(row, "url");
    int result = is_address(url, "/v1/artifacts/")
                     ? client_fetch(client, url, fd, &err)
                     : fail(&err, ERR_PROTOCOL, "gloveboxd sent an address that is none");
    return result < 0 ? report(&err) : GLB_OK;
}

const char *glb_outcome_receipt(const glb_outcome *outcome)
{
    return text_of(outcome->root, "receipt");
}

int32_t glb_receipt_write(glb_client *client, const glb_outcome *outcome, int fd)
{
    error err = { 0 };
    char url[128];
    const char *id = glb_outcome_receipt(outcome);
    if (!*id)
        return no_such_row("receipt");
    (void) snprintf(url, sizeof url, "/v1/receipts/%s", id);
    int result = is_address(url, "/v1/receipts/")
                     ? client_fetch(client, url, fd, &err)
                     : fail(&err, ERR_PROTOCOL, "gloveboxd sent a receipt's id that is none");
    return result < 0 ? report(&err) : GLB_OK;
}
