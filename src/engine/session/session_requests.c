/* session_requests.c - the keys of requests for sessions, contexts and cells, a row each. Keys that
 * runs also have are read by run_request.c. */
#include "engine/session/session_internal.h"

#include "base/table.h"

#include <math.h>
#include <string.h>

enum { FOLDER_MAX = 1024, SECONDS_MAX = 366 * 24 * 3600 };

static int read_seconds(struct json_object *value, const char *key, uint64_t *ret_ms, error *err)
{
    double seconds = json_object_get_double(value);
    bool is_number =
        json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    if (!is_number || !(seconds >= 0.001) || seconds > SECONDS_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a number of seconds from 0.001 to %d", key,
                    SECONDS_MAX);
    *ret_ms = (uint64_t) llround(seconds * 1000);
    return 0;
}

static int read_folder(struct json_object *value, const char **ret_folder, error *err)
{
    const char *text = json_object_get_string(value);
    size_t size = (size_t) json_object_get_string_len(value);
    if (!json_object_is_type(value, json_type_string) || size == 0 || size > FOLDER_MAX ||
        strlen(text) != size || text[0] != '/')
        return fail(err, ERR_BAD_REQUEST,
                    "'cwd' must be an absolute path of at most %d bytes, such as /workspace",
                    FOLDER_MAX);
    *ret_folder = text;
    return 0;
}

static int check_metadata(struct json_object *metadata, error *err)
{
    if (!json_object_is_type(metadata, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'metadata' must be an object of texts");
    size_t bytes = 0;
    int count = 0;
    json_object_object_foreach(metadata, key, value)
    {
        if (!json_object_is_type(value, json_type_string))
            return fail(err, ERR_BAD_REQUEST, "'metadata.%.60s' must be a text", key);
        bytes += strlen(key) + (size_t) json_object_get_string_len(value);
        count++;
    }
    if (count > METADATA_MAX || bytes > METADATA_BYTES_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "'metadata' has %d texts of %zu bytes; %d of %d are allowed", count, bytes,
                    METADATA_MAX, METADATA_BYTES_MAX);
    return 0;
}

static int read_idle(struct session_request *request, struct json_object *value, error *err)
{
    request->has_idle = true;
    return read_seconds(value, "idle_seconds", &request->idle_ms, err);
}

static int read_ttl(struct session_request *request, struct json_object *value, error *err)
{
    request->has_ttl = true;
    return read_seconds(value, "ttl_seconds", &request->ttl_ms, err);
}

static int read_metadata(struct session_request *request, struct json_object *value, error *err)
{
    request->metadata = value;
    return check_metadata(value, err);
}

static int read_session_folder(struct session_request *request, struct json_object *value,
                               error *err)
{
    return read_folder(value, &request->folder, err);
}

/* `read` NULL: runs have this key too. */
static const struct key {
    const char *name;
    bool may_change;
    int (*read)(struct session_request *, struct json_object *, error *);
} keys[] = {
    /* clang-format off */
    { "policy",       false, NULL },
    { "template",     false, NULL },
    { "limits",       false, NULL },
    { "network",      false, NULL },
    { "env",          false, NULL },
    { "cwd",          false, read_session_folder },
    { "metadata",     true,  read_metadata },
    { "idle_seconds", true,  read_idle },
    { "ttl_seconds",  true,  read_ttl },
    /* clang-format on */
};

static int read_key(struct session_request *request, bool is_new, const char *name,
                    struct json_object *value, error *err)
{
    for_each(key, keys) {
        if (strcmp(key->name, name) != 0 || (!is_new && !key->may_change))
            continue;
        if (!value)
            return 0;
        return key->read ? key->read(request, value, err)
                         : request_read_key(request->place, name, value, err);
    }
    if (!is_new)
        return fail(
            err, ERR_BAD_REQUEST,
            "'%.60s' is unknown or cannot be changed; metadata, idle_seconds, ttl_seconds can; a "
            "branch takes context or checkpoint as well",
            name);
    return fail(
        err, ERR_BAD_REQUEST,
        "'%.60s' is unknown; a session has policy, template, limits, network, env, cwd, metadata, "
        "idle_seconds, ttl_seconds",
        name);
}

int session_request_read(struct json_object *json, bool is_new, struct session_request *ret_request,
                         error *err)
{
    struct session_request request = { .place = request_open(json, err) };
    if (!request.place)
        return -1;
    json_object_object_foreach(json, name, value)
    {
        if (read_key(&request, is_new, name, value, err) < 0) {
            session_request_done(&request);
            return -1;
        }
    }
    *ret_request = request;
    return 0;
}

void session_request_done(struct session_request *request)
{
    request_free(request->place);
    *request = (struct session_request){ 0 };
}

int context_request_read(struct json_object *json, bool is_cell,
                         struct context_request *ret_request, error *err)
{
    static const char *const of_context[] = { "language", "env" };
    static const char *const of_cell[] = { "code", "limits", "approval", "expect" };
    struct context_request request = { .given = request_open(json, err) };
    if (!request.given)
        return -1;
    const char *const *names = is_cell ? of_cell : of_context;
    size_t count = is_cell ? COUNT_OF(of_cell) : COUNT_OF(of_context);
    int result = 0;
    json_object_object_foreach(json, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(names[i], name) != 0)
            i++;
        if (!is_cell && strcmp(name, "cwd") == 0)
            result = value ? read_folder(value, &request.folder, err) : 0;
        else if (is_cell && strcmp(name, "env") == 0)
            result = fail(err, ERR_BAD_REQUEST,
                          "a cell has no 'env': its interpreter has one already; give it "
                          "to the session or the context, or set it in the code");
        else if (i < count)
            result = request_read_key(request.given, name, value, err);
        else
            result = fail(err, ERR_BAD_REQUEST, "'%.60s' is unknown; a %s has %s", name,
                          is_cell ? "cell" : "context",
                          is_cell ? "code, limits, approval, expect" : "language, cwd, env");
        if (result < 0)
            break;
    }
    if (result == 0 && is_cell && request.given && !request.given->has_code)
        result = fail(err, ERR_BAD_REQUEST, "the cell has no 'code'; send its text");
    if (result == 0 && request.given->expect_needs.artifacts)
        result = fail(err, ERR_BAD_REQUEST,
                      "a cell has no artifacts, its files stay in the session; expect stdout, "
                      "result and secrets");
    if (result < 0) {
        context_request_done(&request);
        return -1;
    }
    *ret_request = request;
    return 0;
}

void context_request_done(struct context_request *request)
{
    request_free(request->given);
    *request = (struct context_request){ 0 };
}
