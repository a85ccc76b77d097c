/* run_request.c - one row for each key of a request; what no row names is an error. */
#include "engine/run/run_request.h"

#include "base/table.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART_MAX = 255, DEPTH_MAX = 64, TEXT_MAX = 32768 };

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
static int read_word(struct json_object *value, const char *key, const char **ret_word, error *err)
{
    size_t size = 0;
    if (read_text(value, key, ret_word, &size, err) < 0)
        return -1;
    if (size > TEXT_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' has %zu bytes; %d are allowed", key, size,
                    TEXT_MAX);
    return 0;
}

static int check_part(const char *path, const char *part, size_t size, error *err)
{
    if (size == 0 || size > PART_MAX || (size == 1 && part[0] == '.') ||
        (size == 2 && part[0] == '.' && part[1] == '.'))
        return fail(err, ERR_BAD_REQUEST,
                    "path '%.100s' is not plain: use names of 1 to %d bytes with '/' between, "
                    "relative to /workspace, without '.' and '..'",
                    path, PART_MAX);
    if (memchr(part, '\t', size) || memchr(part, '\n', size))
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' has a tab or line end", path);
    return 0;
}

int request_check_path(const char *path, size_t size, error *err)
{
    static const char workspace[] = "/workspace/";
    if (size > AGENT_PATH_MAX || text_find_unclean(path, size) < size)
        return fail(err, ERR_BAD_REQUEST, "path '%.*s' is longer than %d bytes or no plain text",
                    text_head(path, 80), path, AGENT_PATH_MAX);
    if (path[0] == '/')
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' is absolute; %s", path,
                    strncmp(path, workspace, sizeof workspace - 1) == 0
                        ? "leave out '/workspace/'"
                        : "name it below /workspace");
    size_t parts = 0;
    for (const char *part = path;; parts++) {
        const char *slash = memchr(part, '/', size - (size_t) (part - path));
        size_t length = slash ? (size_t) (slash - part) : size - (size_t) (part - path);
        if (check_part(path, part, length, err) < 0)
            return -1;
        if (!slash)
            break;
        part = slash + 1;
    }
    if (parts > DEPTH_MAX)
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' is deeper than %d folders", path,
                    DEPTH_MAX);
    return 0;
}

static int read_path(struct json_object *value, const char *key, const char **ret_path, error *err)
{
    size_t size = 0;
    if (read_text(value, key, ret_path, &size, err) < 0)
        return -1;
    return request_check_path(*ret_path, size, err);
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

static int read_code(struct run_request *request, struct json_object *value, error *err)
{
    const char *text = NULL;
    size_t size = 0;
    if (read_text(value, "code", &text, &size, err) < 0)
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

static int read_language(struct run_request *request, struct json_object *value, error *err)
{
    return read_word(value, "language", &request->language, err);
}

static int read_policy(struct run_request *request, struct json_object *value, error *err)
{
    return read_word(value, "policy", &request->policy, err);
}

static int read_template(struct run_request *request, struct json_object *value, error *err)
{
    return read_word(value, "template", &request->template, err);
}

static int read_filename(struct run_request *request, struct json_object *value, error *err)
{
    return read_path(value, "filename", &request->filename, err);
}

static int read_mode(struct run_request *request, struct json_object *value, error *err)
{
    const char *mode;
    if (read_word(value, "mode", &mode, err) < 0)
        return -1;
    request->is_cell = strcmp(mode, "cell") == 0;
    if (request->is_cell || strcmp(mode, "script") == 0)
        return 0;
    return fail(err, ERR_BAD_REQUEST, "mode '%.40s' does not exist; use 'script' or 'cell'", mode);
}

static int read_flag(struct json_object *value, const char *key, bool *ret_flag, error *err)
{
    if (!json_object_is_type(value, json_type_boolean))
        return fail(err, ERR_BAD_REQUEST, "'%s' is true or false", key);
    *ret_flag = json_object_get_boolean(value);
    return 0;
}

static int read_cold(struct run_request *request, struct json_object *value, error *err)
{
    return read_flag(value, "cold", &request->is_cold, err);
}

static int read_check_only(struct run_request *request, struct json_object *value, error *err)
{
    return read_flag(value, "check_only", &request->check_only, err);
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
        if (read_word(json_object_array_get_idx(value, i), key, &words[i], err) < 0)
            return -1;
    *ret_count = count;
    return 0;
}

static int read_arguments(struct run_request *request, struct json_object *value, error *err)
{
    return read_words(value, "args", request->arguments, &request->argument_count, err);
}

static int read_command(struct run_request *request, struct json_object *value, error *err)
{
    if (read_words(value, "command", request->command, &request->command_count, err) < 0)
        return -1;
    if (request->command_count == 0 || request->command[0][0] == '\0')
        return fail(err, ERR_BAD_REQUEST, "'command' is empty; name the program first");
    return 0;
}

static int read_variables(struct run_request *request, struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'env' must be an object of texts");
    if (json_object_object_length(value) > AGENT_ARGUMENTS_MAX / 2)
        return fail(err, ERR_BAD_REQUEST, "'env' has more than %d names", AGENT_ARGUMENTS_MAX / 2);
    json_object_object_foreach(value, name, text)
    {
        struct request_variable *variable = &request->variables[request->variable_count];
        variable->name = name;
        if (read_word(text, "env", &variable->value, err) < 0 ||
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

static int read_stdin(struct run_request *request, struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'stdin' must be a text");
    if (one_stdin(request, err) < 0)
        return -1;
    payload_from_text(&request->stdin_content, json_object_get_string(value),
                      (size_t) json_object_get_string_len(value));
    request->has_stdin = true;
    return 0;
}

static int read_stdin_base64(struct run_request *request, struct json_object *value, error *err)
{
    if (one_stdin(request, err) < 0)
        return -1;
    request->has_stdin = true;
    return read_base64(value, "stdin_base64", &request->stdin_content, err);
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
    if (number > 0 && number < 1) /* it would become 0, which lifts the limit */
        return fail(err, ERR_LIMIT, "limits.%s must be 0, or at least 0.001", key);
    return limits_ask(asked, id, (uint64_t) (number + 0.5), err);
}

static int read_approval(struct run_request *request, struct json_object *value, error *err)
{
    return read_word(value, "approval", &request->approval, err);
}

static int read_limits(struct run_request *request, struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'limits' must be an object such as {\"wall_ms\": 5000}");
    json_object_object_foreach(value, key, number)
    {
        if (read_limit(&request->limits, key, number, err) < 0)
            return -1;
    }
    return 0;
}

static int read_expect(struct run_request *request, struct json_object *value, error *err)
{
    request->expect = value;
    return expectation_check(value, &request->expect_needs, err);
}

/* As policy files have it: one reader for both. */
static int read_network(struct run_request *request, struct json_object *value, error *err)
{
    size_t size = 0;
    if (request->network)
        return fail(err, ERR_BAD_REQUEST, "'network' is there twice");
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
        return read_path(value, "files.path", &file->path, err);
    if (strcmp(key, "read_only") == 0) {
        if (!json_object_is_type(value, json_type_boolean))
            return fail(err, ERR_BAD_REQUEST, "'files.read_only' must be true or false");
        file->read_only = json_object_get_boolean(value);
        return 0;
    }
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
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'files.content' must be a text");
    payload_from_text(&file->content, json_object_get_string(value),
                      (size_t) json_object_get_string_len(value));
    return 0;
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

static int read_files(struct run_request *request, struct json_object *value, error *err)
{
    if (!json_object_is_type(value, json_type_array))
        return fail(err, ERR_BAD_REQUEST, "'files' must be a list");
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

/* Every key that a request may have. */
static const struct key {
    const char *name;
    int (*read)(struct run_request *, struct json_object *, error *);
} keys[] = {
    /* clang-format off */
    { "code",         read_code },
    { "language",     read_language },
    { "filename",     read_filename },
    { "mode",         read_mode },
    { "cold",         read_cold },
    { "check_only",   read_check_only },
    { "args",         read_arguments },
    { "command",      read_command },
    { "policy",       read_policy },
    { "template",     read_template },
    { "limits",       read_limits },
    { "network",      read_network },
    { "env",          read_variables },
    { "stdin",        read_stdin },
    { "stdin_base64", read_stdin_base64 },
    { "files",        read_files },
    { "approval",     read_approval },
    { "expect",       read_expect },
    /* clang-format on */
};

int request_read_key(struct run_request *request, const char *name, struct json_object *value,
                     error *err)
{
    for_each(key, keys)
        if (strcmp(key->name, name) == 0)
            return value ? key->read(request, value, err) : 0; /* null is "not given" */
    return fail(
        err, ERR_BAD_REQUEST,
        "'%.60s' is unknown; a run has code, language, filename, mode, check_only, "
        "args, command, policy, template, limits, network, env, stdin, stdin_base64, files, "
        "approval, expect",
        name);
}

/* By parts: '/' before every other byte, so that a folder stands right before what lies in it. */
static int compare_paths(const void *one, const void *other)
{
    const char *left = *(const char *const *) one;
    const char *right = *(const char *const *) other;
    for (; *left && *left == *right; left++, right++)
        ;
    int first = *left == '/' ? 1 : (unsigned char) *left + (*left ? 1 : 0);
    int second = *right == '/' ? 1 : (unsigned char) *right + (*right ? 1 : 0);
    return first - second;
}

/* Each input has a place of its own: no path is given twice, none lies in one that is a file. */
static int check_places(const struct run_request *request, error *err)
{
    const char *paths[REQUEST_FILES_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < request->file_count; i++)
        paths[count++] = request->files[i].path;
    if (request->has_code && request->filename)
        paths[count++] = request->filename;
    qsort(paths, count, sizeof *paths, compare_paths);
    for (size_t i = 1; i < count; i++) {
        size_t length = strlen(paths[i - 1]);
        if (strcmp(paths[i - 1], paths[i]) == 0)
            return fail(err, ERR_BAD_REQUEST,
                        "path '%.*s' is given twice in 'files' and 'filename'; give each file a "
                        "path of its own",
                        text_head(paths[i], 80), paths[i]);
        if (strncmp(paths[i - 1], paths[i], length) == 0 && paths[i][length] == '/')
            return fail(err, ERR_BAD_REQUEST,
                        "path '%.*s' is a file, and '%.*s' would lie in it; rename one of them",
                        text_head(paths[i - 1], 60), paths[i - 1], text_head(paths[i], 60),
                        paths[i]);
    }
    return 0;
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
    return check_places(request, err);
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
