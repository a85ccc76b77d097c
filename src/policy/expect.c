/* expect.c - the field `expect`: one row for each key, as request.c has them. */
#include "policy/expect.h"

#include "base/table.h"
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BYTES_MAX = 1 << 30, NAME_BYTES_MAX = 4095 };

const char *expectation_text(struct json_object *value)
{
    const char *text =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    return strlen(text) == (size_t) json_object_get_string_len(value) ? text : "";
}

/* The expectation of one output: stdout, the result, or an artifact. */
struct wish {
    const char *at; /* "expect.stdout" */
    const char *name, *pattern, *type;
    bool has_schema, says_something;
    int64_t min, max;
};

static int take_schema(struct wish *wish, struct json_object *value, error *err)
{
    char at[80];
    (void) snprintf(at, sizeof at, "%.60s.schema", wish->at);
    wish->has_schema = wish->says_something = true;
    return expectation_check_schema(value, at, err);
}

static int take_type(struct wish *wish, struct json_object *value, error *err)
{
    static const char *const names[] = {
#define TYPE(name, text) name,
#include "policy/output_types.def"
    };
    wish->type = expectation_text(value);
    wish->says_something = true;
    for_each(name, names)
        if (strcmp(*name, wish->type) == 0)
            return 0;
    return fail(
        err, ERR_BAD_REQUEST,
        "%s.type '%.*s' is not known here; docs/reference/output-validation.md lists the types",
        wish->at, text_head(wish->type, 80), wish->type);
}

static int take_size(struct wish *wish, const char *key, struct json_object *value,
                     int64_t *ret_bytes, error *err)
{
    wish->says_something = true;
    *ret_bytes = json_object_get_int64(value);
    return json_object_is_type(value, json_type_int) && *ret_bytes >= 0 && *ret_bytes <= BYTES_MAX
               ? 0
               : fail(err, ERR_BAD_REQUEST, "%s.%s must be a number of bytes, up to %d", wish->at,
                      key, BYTES_MAX);
}

static int take_min(struct wish *wish, struct json_object *value, error *err)
{
    return take_size(wish, "min_bytes", value, &wish->min, err);
}

static int take_max(struct wish *wish, struct json_object *value, error *err)
{
    return take_size(wish, "max_bytes", value, &wish->max, err);
}

/* Has the path the form of artifact paths? Any other form could never match. */
static bool is_beneath(const char *path)
{
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        bool is_folder =
            (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0);
        if (length == 0 || is_folder)
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

static int take_path(const struct wish *wish, const char *key, struct json_object *value,
                     const char **ret_path, error *err)
{
    const char *path = expectation_text(value);
    *ret_path = path;
    if (strlen(path) > NAME_BYTES_MAX || !is_beneath(path))
        return fail(err, ERR_BAD_REQUEST,
                    "%s.%s must be a path beneath /workspace, such as out/plot.png, without empty, "
                    ". and .. parts",
                    wish->at, key);
    return 0;
}

static int take_name(struct wish *wish, struct json_object *value, error *err)
{
    wish->says_something = true;
    return take_path(wish, "name", value, &wish->name, err);
}

static int take_pattern(struct wish *wish, struct json_object *value, error *err)
{
    wish->says_something = true;
    if (take_path(wish, "pattern", value, &wish->pattern, err) < 0)
        return -1;
    if (strstr(wish->pattern, "**") || strpbrk(wish->pattern, "[]{}\\"))
        return fail(err, ERR_BAD_REQUEST,
                    "%s.pattern has more than * and ?, each within one folder", wish->at);
    return 0;
}

static int take_required(struct wish *wish, struct json_object *value, error *err)
{
    return json_object_is_type(value, json_type_boolean)
               ? 0
               : fail(err, ERR_BAD_REQUEST, "%s.required is true or false", wish->at);
}

enum { OF_STDOUT = 1, OF_RESULT = 2, OF_ARTIFACT = 4, OF_ALL = 7 };

static const struct wish_key {
    const char *name;
    unsigned of;
    int (*take)(struct wish *, struct json_object *, error *);
} wish_keys[] = {
    { "schema", OF_ALL, take_schema },
    { "type", OF_STDOUT | OF_ARTIFACT, take_type },
    { "min_bytes", OF_STDOUT | OF_ARTIFACT, take_min },
    { "max_bytes", OF_STDOUT | OF_ARTIFACT, take_max },
    { "name", OF_ARTIFACT, take_name },
    { "pattern", OF_ARTIFACT, take_pattern },
    { "required", OF_ARTIFACT, take_required },
};

static int read_wish(struct wish *wish, unsigned of, struct json_object *json, error *err)
{
    if (!json_object_is_type(json, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be an object", wish->at);
    wish->max = BYTES_MAX;
    json_object_object_foreach(json, name, value)
    {
        const struct wish_key *found = NULL;
        for_each(key, wish_keys)
            if ((key->of & of) && strcmp(key->name, name) == 0)
                found = key;
        if (!found)
            return fail(err, ERR_BAD_REQUEST, "'%s.%.40s' is unknown; it has schema%s", wish->at,
                        name,
                        of == OF_RESULT   ? ""
                        : of == OF_STDOUT ? ", type, min_bytes, max_bytes"
                                          : ", type, min_bytes, max_bytes, name or pattern, "
                                            "required");
        if (found->take(wish, value, err) < 0)
            return -1;
    }
    if (!wish->says_something)
        return fail(err, ERR_BAD_REQUEST, "'%s' expects nothing; say what, or leave it out",
                    wish->at);
    if (wish->min > wish->max)
        return fail(err, ERR_BAD_REQUEST, "%s.min_bytes is above max_bytes", wish->at);
    return 0;
}

static int take_stdout(struct json_object *value, struct expect_needs *needs, error *err)
{
    struct wish wish = { .at = "expect.stdout" };
    (void) needs;
    return read_wish(&wish, OF_STDOUT, value, err);
}

static int take_result(struct json_object *value, struct expect_needs *needs, error *err)
{
    struct wish wish = { .at = "expect.result" };
    needs->result = true;
    return read_wish(&wish, OF_RESULT, value, err);
}

static int take_artifacts(struct json_object *value, struct expect_needs *needs, error *err)
{
    if (!json_object_is_type(value, json_type_array) ||
        json_object_array_length(value) > EXPECT_ARTIFACTS_MAX)
        return fail(err, ERR_BAD_REQUEST, "'expect.artifacts' must be a list of up to %d objects",
                    EXPECT_ARTIFACTS_MAX);
    needs->artifacts = true;
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        char at[40];
        struct wish wish = { .at = at };
        (void) snprintf(at, sizeof at, "expect.artifacts[%zu]", i);
        if (read_wish(&wish, OF_ARTIFACT, json_object_array_get_idx(value, i), err) < 0)
            return -1;
        if (!wish.name == !wish.pattern)
            return fail(err, ERR_BAD_REQUEST, "'%s' needs 'name' or 'pattern', one of them", at);
        needs->contents |= wish.type || wish.has_schema;
    }
    return 0;
}

static int take_word(const char *key, struct json_object *value, bool *ret_is_forbidden, error *err)
{
    const char *word = expectation_text(value);
    *ret_is_forbidden = strcmp(word, "forbid") == 0;
    return *ret_is_forbidden || strcmp(word, "allow") == 0
               ? 0
               : fail(err, ERR_BAD_REQUEST, "'expect.%s' is \"allow\" or \"forbid\"", key);
}

static int take_others(struct json_object *value, struct expect_needs *needs, error *err)
{
    bool is_forbidden;
    needs->artifacts = true;
    return take_word("others", value, &is_forbidden, err);
}

static int take_secrets(struct json_object *value, struct expect_needs *needs, error *err)
{
    bool is_forbidden;
    int result = take_word("secrets", value, &is_forbidden, err);
    needs->contents |= result == 0 && is_forbidden;
    return result;
}

static const struct key {
    const char *name;
    int (*take)(struct json_object *, struct expect_needs *, error *);
} keys[] = {
    { "stdout", take_stdout }, { "result", take_result },   { "artifacts", take_artifacts },
    { "others", take_others }, { "secrets", take_secrets },
};

static int check_size(struct json_object *json, error *err)
{
    size_t size = 0;
    if (!json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &size))
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    return size <= EXPECT_BYTES_MAX
               ? 0
               : fail(err, ERR_TOO_LARGE, "'expect' has %zu bytes; %d are allowed", size,
                      EXPECT_BYTES_MAX);
}

int expectation_check(struct json_object *json, struct expect_needs *ret_needs, error *err)
{
    struct expect_needs needs = { 0 };
    if (!json_object_is_type(json, json_type_object) || json_object_object_length(json) == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "'expect' must be an object with stdout, result, artifacts, others or secrets");
    json_object_object_foreach(json, name, value)
    {
        const struct key *found = NULL;
        for_each(key, keys)
            if (strcmp(key->name, name) == 0)
                found = key;
        if (!found)
            return fail(err, ERR_BAD_REQUEST,
                        "'expect.%.40s' is unknown; it has stdout, result, artifacts, others, "
                        "secrets",
                        name);
        if (found->take(value, &needs, err) < 0)
            return -1;
    }
    *ret_needs = needs;
    return check_size(json, err);
}
