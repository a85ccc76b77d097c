/* run_request.c - a reader for each row of run_request.def; any other key is an error. */
#include "engine/run/run_request.h"

#include "base/bytes.h"
#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 32768 };

/* A row of run_request.def. */
struct field {
    const char *name;
    int (*read)(struct run_request *request, const struct field *field, struct json_object *value,
                error *err);
    size_t member; /* of struct run_request, for readers of several fields */
};

static void *member_of(struct run_request *request, const struct field *field)
{
    return (char *) request + field->member;
}

/* A text without NUL. */
static int read_text(struct json_object *value, const char *key, const char **ret_text,
                     size_t *ret_size, error *err)
{
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a text", key);
    const char *text = json_object_get_string(value);
    size_t size = (size_t) json_object_get_string_len(value);
    if (memchr(text, '\0', size))
        return fail(err, ERR_BAD_REQUEST, "'%s' has a NUL byte at %zu; leave it out", key,
                    strlen(text));
    *ret_text = text;
    *ret_size = size;
    return 0;
}

/* A short text: a name, a path, an argument. */
static int read_short_text(struct json_object *value, const char *key, const char **ret_word,
                           error *err)
{
    size_t size = 0;
    if (read_text(value, key, ret_word, &size, err) < 0)
        return -1;
    if (size > TEXT_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' has %zu bytes; %d are allowed", key, size,
                    TEXT_MAX);
    return 0;
}

static int read_path_text(struct json_object *value, const char *key, const char **ret_path,
                          error *err)
{
    size_t size = 0;
    if (read_text(value, key, ret_path, &size, err) < 0)
        return -1;
    return request_check_path(*ret_path, size, err);
}

static int read_path(struct run_request *request, const struct field *field,
                     struct json_object *value, error *err)
{
    return read_path_text(value, field->name, member_of(request, field), err);
}

static int read_word(struct run_request *request, const struct field *field,
                     struct json_object *value, error *err)
{
    return read_short_text(value, field->name, member_of(request, field), err);
}

static int read_bool(struct json_object *value, const char *key, bool *ret_flag, error *err)
{
    if (!json_object_is_type(value, json_type_boolean))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be true or false", key);
    *ret_flag = json_object_get_boolean(value);
    return 0;
}

static int read_flag(struct run_request *request, const struct field *field,
                     struct json_object *value, error *err)
{
    return read_bool(value, field->name, member_of(request, field), err);
}

/* A text that may contain NUL. */
static int read_any_text(struct json_object *value, const char *key, struct payload *content,
                         error *err)
{
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a text", key);
    payload_from_text(content, json_object_get_string(value),
                      (size_t) json_object_get_string_len(value));
    return 0;
}

static int read_base64(struct json_object *value, const char *key, struct payload *content,
                       error *err)
{
    const char *text = NULL;
    size_t size = 0;
    if (read_text(value, key, &text, &size, err) < 0)
        return -1;
    return payload_from_base64(content, text, size, err) < 0 ? under(err, "'%s'", key) : 0;
}

static int read_code(struct run_request *request, const struct field *field,
                     struct json_object *value, error *err)
{
    const char *text = NULL;
    size_t size = 0;
    if (read_text(value, field->name, &text, &size, err) < 0)
        return -1;
    if (size == 0)
        return fail(err, ERR_BAD_REQUEST, "'code' is empty; send the program's text");
    if (size > REQUEST_CODE_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "'code' has %zu bytes, %d are allowed; send data in 'files' instead", size,
                    REQUEST_CODE_MAX);
    payload_from_text(&request->code, text, size);
    request->has_code = true;
    return 0;
}

static int read_mode(struct run_request *request, const struct field *field,
                     struct json_object *value, error *err)
{
    const char *mode;
    if (read_short_text(value, field->name, &mode, err) < 0)
        return -1;
    request->is_cell = strcmp(mode, "cell") == 0;
    if (request->is_cell || strcmp(mode, "script") == 0)
        return 0;
    return fail(err, ERR_BAD_REQUEST, "mode '%.40s' does not exist; use 'script' or 'cell'", mode);
}

static int read_words(struct json_object *value, const char *key, const char **words,
                      size_t *ret_count, error *err)
{
    if (!json_object_is_type(value, json_type_array))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a list of texts", key);
    size_t count = json_object_array_length(value);
    if (count > AGENT_ARGUMENTS_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' has %zu texts; %d are allowed", key, count,
                    AGENT_ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++)
        if (read_short_text(json_object_array_get_idx(value, i), key, &words[i], err) < 0)
            return -1;
    *ret_count = count;
    return 0;
}

static int read_arguments(struct run_request *request, const struct field *field,
                          struct json_object *value, error *err)
{
    return read_words(value, field->name, request->arguments, &request->argument_count, err);
}

static int read_command(struct run_request *request, const struct field *field,
                        struct json_object *value, error *err)
{
    if (read_words(value, field->name, request->command, &request->command_count, err) < 0)
        return -1;
    if (request->command_count == 0 || request->command[0][0] == '\0')
        return fail(err, ERR_BAD_REQUEST, "'command' is empty; name the program first");
    return 0;
}

static int read_variables(struct run_request *request, const struct field *field,
                          struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be an object of texts", field->name);
    if (json_object_object_length(value) > AGENT_ARGUMENTS_MAX / 2)
        return fail(err, ERR_BAD_REQUEST, "'env' has more than %d names", AGENT_ARGUMENTS_MAX / 2);
    json_object_object_foreach(value, name, text)
    {
        struct request_variable *variable = &request->variables[request->variable_count];
        variable->name = name;
        if (read_short_text(text, field->name, &variable->value, err) < 0 ||
            policy_check_variable(name, variable->value, err) < 0)
            return -1;
        request->variable_count++;
    }
    return 0;
}

static int one_stdin(const struct run_request *request, error *err)
{
    if (request->has_stdin)
        return fail(err, ERR_BAD_REQUEST, "give 'stdin' or 'stdin_base64', not both");
    return 0;
}

static int read_stdin(struct run_request *request, const struct field *field,
                      struct json_object *value, error *err)
{
    if (one_stdin(request, err) < 0)
        return -1;
    request->has_stdin = true;
    return read_any_text(value, field->name, &request->stdin_content, err);
}

static int read_stdin_base64(struct run_request *request, const struct field *field,
                             struct json_object *value, error *err)
{
    if (one_stdin(request, err) < 0)
        return -1;
    request->has_stdin = true;
    return read_base64(value, field->name, &request->stdin_content, err);
}

static int read_limit(struct limits_asked *asked, const char *key, struct json_object *value,
                      error *err)
{
    enum limit_id id = limit_find(key);
    if (id >= LIMITS)
        return fail(err, ERR_LIMIT, "no limit is named '%.60s'; GET /v1/limits lists them", key);
    const struct limit_row *row = &limit_rows[id];
    if (strcmp(row->json_name, key) != 0)
        return fail(err, ERR_LIMIT, "no limit is named '%.60s' in JSON; it is '%s'", key,
                    row->json_name);
    double number = json_object_get_double(value);
    if (row->unit == UNIT_MILLI)
        number *= 1000;
    bool is_number =
        json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    if (!is_number || !isfinite(number) || number < 0 || number > 9e15)
        return fail(err, ERR_LIMIT, "limits.%s must be a number from 0 to 9e15", key);
    if (row->unit != UNIT_MILLI && number != floor(number))
        return fail(err, ERR_LIMIT, "limits.%s must be a whole number", key);
    if (number > 0 && number < 1) /* it would be rounded to 0: no limit */
        return fail(err, ERR_LIMIT, "limits.%s must be 0, or at least 0.001", key);
    return limits_ask(asked, id, (uint64_t) (number + 0.5), err);
}

static int read_limits(struct run_request *request, const struct field *field,
                       struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be an object such as {\"wall_ms\": 5000}",
                    field->name);
    json_object_object_foreach(value, key, number)
    {
        if (read_limit(&request->limits, key, number, err) < 0)
            return -1;
    }
    return 0;
}

static int read_expect(struct run_request *request, const struct field *field,
                       struct json_object *value, error *err)
{
    (void) field;
    request->expect = value;
    return expectation_check(value, &request->expect_needs, err);
}

/* Uses the reader of policy files. */
static int read_network(struct run_request *request, const struct field *field,
                        struct json_object *value, error *err)
{
    size_t size = 0;
    if (request->network)
        return fail(err, ERR_BAD_REQUEST, "'%s' is there twice", field->name);
    request->network = calloc(1, sizeof *request->network);
    const char *text = json_object_to_json_string_length(value, JSON_C_TO_STRING_PLAIN, &size);
    if (!request->network || !text)
        return fail(err, ERR_SYSTEM, "no memory for the network of a request");
    return network_wish_read(text, size, request->network, err);
}

static int read_file_key(struct request_file *file, const char *key, struct json_object *value,
                         error *err)
{
    if (strcmp(key, "path") == 0)
        return read_path_text(value, "files.path", &file->path, err);
    if (strcmp(key, "read_only") == 0)
        return read_bool(value, "files.read_only", &file->read_only, err);
    bool is_text = strcmp(key, "content") == 0;
    if (!is_text && strcmp(key, "content_base64") != 0)
        return fail(
            err, ERR_BAD_REQUEST,
            "'files.%.60s' is unknown; a file has path, content or content_base64, read_only", key);
    if (file->has_content)
        return fail(err, ERR_BAD_REQUEST, "give a file 'content' or 'content_base64', not both");
    file->has_content = true;
    if (!is_text)
        return read_base64(value, "files.content_base64", &file->content, err);
    return read_any_text(value, "files.content", &file->content, err);
}

static int read_file(struct request_file *file, struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return fail(err, ERR_BAD_REQUEST,
                    "'files' must be a list of objects such as {\"path\": …, \"content\": …}");
    json_object_object_foreach(value, key, field)
    {
        if (read_file_key(file, key, field, err) < 0)
            return -1;
    }
    if (!file->path || !file->has_content)
        return fail(err, ERR_BAD_REQUEST, "a file in 'files' lacks its %s",
                    file->path ? "'content'" : "'path'");
    return 0;
}

static int read_files(struct run_request *request, const struct field *field,
                      struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_array))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a list", field->name);
    size_t count = json_object_array_length(value);
    if (count > REQUEST_FILES_MAX)
        return fail(err, ERR_BAD_REQUEST, "'files' has %zu files; %d are allowed", count,
                    REQUEST_FILES_MAX);
    if (count == 0)
        return 0;
    request->files = calloc(count, sizeof *request->files);
    if (!request->files)
        return fail(err, ERR_SYSTEM, "no memory for %zu files", count);
    for (; request->file_count < count; request->file_count++)
        if (read_file(&request->files[request->file_count],
                      json_object_array_get_idx(value, request->file_count), err) < 0)
            return -1;
    return 0;
}

static const struct field fields[] = {
#define RUN_REQUEST(name, member, kind, type, text) \
    { #name, read_##kind, offsetof(struct run_request, member) },
#include "model/run_request.def"
#undef RUN_REQUEST
};

static int fail_unknown(const char *name, error *err)
{
    auto_bytes names = { 0 };
    for_each(field, fields)
        bytes_print(&names, "%s%s", field == fields ? "" : ", ", field->name);
    return fail(err, ERR_BAD_REQUEST, "'%.60s' is unknown; a run has %s", name, bytes_text(&names));
}

int request_read_key(struct run_request *request, const char *name, struct json_object *value,
                     error *err)
{
    for_each(field, fields)
        if (strcmp(field->name, name) == 0) /* null is "not given" */
            return value ? field->read(request, field, value, err) : 0;
    return fail_unknown(name, err);
}

static int check_whole(const struct run_request *request, error *err)
{
    if (!request->has_code && request->command_count == 0)
        return fail(err, ERR_BAD_REQUEST, "the request has neither 'code' nor 'command'; give one");
    if (request->has_code && request->command_count > 0)
        return fail(err, ERR_BAD_REQUEST, "the request has 'code' and 'command'; give one of them");
    if (request->command_count > 0 && (request->argument_count > 0 || request->filename))
        return fail(err, ERR_BAD_REQUEST,
                    "'args' and 'filename' belong to 'code'; a 'command' holds "
                    "its own arguments");
    if (request->expect && request->check_only)
        return fail(err, ERR_BAD_REQUEST,
                    "'expect' is about an output, and 'check_only' runs nothing; leave one out");
    if (request->expect_needs.result && !request->is_cell)
        return fail(err, ERR_BAD_REQUEST,
                    "'expect.result' is about a value, which only \"mode\": \"cell\" has");
    return request_check_places(request, err);
}

struct run_request *request_open(struct json_object *json, error *err)
{
    struct run_request *request = calloc(1, sizeof *request);
    if (!request) {
        (void) json_object_put(json);
        (void) fail(err, ERR_SYSTEM, "no memory for a request");
        return NULL;
    }
    request->json = json;
    if (!json_object_is_type(json, json_type_object)) {
        request_free(request);
        (void) fail(err, ERR_BAD_REQUEST, "the body is not a JSON object");
        return NULL;
    }
    return request;
}

int request_read(struct json_object *json, struct run_request **ret_request, error *err)
{
    struct run_request *request = request_open(json, err);
    if (!request)
        return -1;
    int result = 0;
    json_object_object_foreach(json, name, value)
    {
        result = request_read_key(request, name, value, err);
        if (result < 0)
            break;
    }
    if (result < 0 || check_whole(request, err) < 0) {
        request_free(request);
        return -1;
    }
    *ret_request = request;
    return 0;
}

void request_free(struct run_request *request)
{
    if (!request)
        return;
    (void) json_object_put(request->json);
    free(request->files);
    free(request->network);
    free(request);
}
