/* expect_schema.c - checks that a schema has only supported keywords: a row of schema_keywords.def
 * for each, and a function for each shape of value. */
#include "policy/expect.h"

#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 32, SCHEMAS_MAX = 5000, PLACE_MAX = 120 };
#define NUMBER_MAX 9007199254740992.0 /* 2^53: beyond it a double does not hold every integer */

struct walk {
    struct json_object *root;
    unsigned schemas;
    char place[PLACE_MAX + 64]; /* "expect.stdout.schema/properties/x", cut if it is too long */
    error *err;
};

static int wrong(const struct walk *walk, const char *why)
{
    return fail(walk->err, ERR_BAD_REQUEST, "%s: %s", walk->place, why);
}

static int check(struct walk *walk, struct json_object *schema, unsigned depth);

/* Adds a part to the place; returns the value for leave(). */
static size_t enter(struct walk *walk, const char *part)
{
    size_t before = strlen(walk->place);
    if (before < PLACE_MAX)
        (void) snprintf(walk->place + before, sizeof walk->place - before, "/%.40s", part);
    return before;
}

static void leave(struct walk *walk, size_t before)
{
    walk->place[before] = '\0';
}

/* --- plain values ----------------------------------------------------------------------------- */

static bool is_number(struct json_object *value)
{
    if (json_object_is_type(value, json_type_int)) { /* json-c limits larger ones */
        int64_t number = json_object_get_int64(value);
        return number <= (int64_t) NUMBER_MAX && number >= -(int64_t) NUMBER_MAX;
    }
    return json_object_is_type(value, json_type_double) &&
           fabs(json_object_get_double(value)) <= NUMBER_MAX;
}

/* NOLINTNEXTLINE(misc-no-recursion): the reader of requests bounds the depth */
static bool has_sound_numbers(struct json_object *value)
{
    if (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double))
        return is_number(value);
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            if (!has_sound_numbers(json_object_array_get_idx(value, i)))
                return false;
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            (void) key;
            if (!has_sound_numbers(member))
                return false;
        }
    }
    return true;
}

static int take_any(struct walk *walk, struct json_object *value)
{
    return has_sound_numbers(value) ? 0 : wrong(walk, "has a number beyond 2^53");
}

static int take_values(struct walk *walk, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) == 0)
        return wrong(walk, "must be a list of values");
    return take_any(walk, value);
}

static int take_count(struct walk *walk, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_int) || !is_number(value) ||
        json_object_get_int64(value) < 0)
        return wrong(walk, "must be a whole number from 0");
    return 0;
}

static int take_number(struct walk *walk, struct json_object *value)
{
    return is_number(value) ? 0 : wrong(walk, "must be a number, up to 2^53");
}

static int take_positive(struct walk *walk, struct json_object *value)
{
    return is_number(value) && json_object_get_double(value) > 0
               ? 0
               : wrong(walk, "must be a number above 0");
}

static int take_flag(struct walk *walk, struct json_object *value)
{
    return json_object_is_type(value, json_type_boolean) ? 0 : wrong(walk, "must be true or false");
}

static int take_note(struct walk *walk, struct json_object *value)
{
    (void) walk;
    (void) value;
    return 0;
}

static int take_draft(struct walk *walk, struct json_object *value)
{
    static const char draft[] = "https://json-schema.org/draft/2020-12/schema";
    const char *text = expectation_text(value);
    return strncmp(text, draft, sizeof draft - 1) == 0 &&
                   strcmp(text + sizeof draft - 1, text[sizeof draft - 1] ? "#" : "") == 0
               ? 0
               : wrong(walk, "only draft 2020-12 is understood: "
                             "https://json-schema.org/draft/2020-12/schema");
}

static int take_words(struct walk *walk, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_array))
        return wrong(walk, "must be a list of texts");
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_string))
            return wrong(walk, "must be a list of texts");
    return 0;
}

static int take_lists(struct walk *walk, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_object))
        return wrong(walk, "must be an object of lists of texts");
    json_object_object_foreach(value, key, words)
    {
        (void) key;
        if (take_words(walk, words) < 0)
            return -1;
    }
    return 0;
}

static bool is_type_name(struct json_object *value)
{
    static const char *const names[] = { "null",   "boolean", "object", "array",
                                         "number", "integer", "string" };
    for_each(name, names)
        if (strcmp(*name, expectation_text(value)) == 0)
            return true;
    return false;
}

static int take_types(struct walk *walk, struct json_object *value)
{
    static const char why[] = "must be one or a list of null, boolean, object, array, number, "
                              "integer, string";
    if (!json_object_is_type(value, json_type_array))
        return is_type_name(value) ? 0 : wrong(walk, why);
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!is_type_name(json_object_array_get_idx(value, i)))
            return wrong(walk, why);
    return json_object_array_length(value) > 0 ? 0 : wrong(walk, why);
}

static int take_pattern_text(struct walk *walk, const char *text, size_t size)
{
    error why;
    return expectation_check_pattern(text, size, &why) < 0 ? wrong(walk, why.text) : 0;
}

static int take_pattern(struct walk *walk, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return wrong(walk, "must be a text");
    return take_pattern_text(walk, json_object_get_string(value),
                             (size_t) json_object_get_string_len(value));
}

/* A reference to the whole schema, or to one of its own definitions: nothing is ever fetched. */
static int take_reference(struct walk *walk, struct json_object *value)
{
    static const char prefix[] = "#/$defs/";
    struct json_object *definitions = NULL;
    const char *text = expectation_text(value);
    if (strcmp(text, "#") == 0)
        return 0;
    if (strncmp(text, prefix, sizeof prefix - 1) != 0 || strpbrk(text + sizeof prefix - 1, "/~%"))
        return wrong(walk, "only '#' and '#/$defs/NAME' are understood; nothing is fetched");
    if (!json_object_object_get_ex(walk->root, "$defs", &definitions) ||
        !json_object_object_get_ex(definitions, text + sizeof prefix - 1, NULL))
        return wrong(walk, "names what is not in the $defs of the whole schema");
    return 0;
}

/* --- schemas in schemas ----------------------------------------------------------------------- */

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int take_schemas(struct walk *walk, struct json_object *value, unsigned depth)
{
    char number[24];
    if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) == 0)
        return wrong(walk, "must be a list of schemas");
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        (void) snprintf(number, sizeof number, "%zu", i);
        size_t before = enter(walk, number);
        if (check(walk, json_object_array_get_idx(value, i), depth + 1) < 0)
            return -1;
        leave(walk, before);
    }
    return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int take_named(struct walk *walk, struct json_object *value, bool are_patterns,
                      unsigned depth)
{
    if (!json_object_is_type(value, json_type_object))
        return wrong(walk, "must be an object of schemas");
    json_object_object_foreach(value, key, schema)
    {
        size_t before = enter(walk, key);
        if ((are_patterns && take_pattern_text(walk, key, strlen(key)) < 0) ||
            check(walk, schema, depth + 1) < 0)
            return -1;
        leave(walk, before);
    }
    return 0;
}

/* Shapes before SHAPE_PLAIN contain no schemas. */
enum shape {
    /* clang-format off */
    SHAPE_DRAFT, SHAPE_REFERENCE, SHAPE_NOTE, SHAPE_TYPES, SHAPE_VALUES, SHAPE_ANY, SHAPE_WORDS, SHAPE_LISTS,
    SHAPE_COUNT, SHAPE_FLAG, SHAPE_PATTERN, SHAPE_NUMBER, SHAPE_POSITIVE, SHAPE_PLAIN, SHAPE_SCHEMA, SHAPE_SCHEMAS,
    SHAPE_NAMED, SHAPE_PATTERNED
    /* clang-format on */
};

static int (*const plain[SHAPE_PLAIN])(struct walk *, struct json_object *) = {
    /* clang-format off */
    [SHAPE_DRAFT]    = take_draft,    [SHAPE_REFERENCE] = take_reference, [SHAPE_NOTE]    = take_note,
    [SHAPE_TYPES]    = take_types,    [SHAPE_VALUES]    = take_values,    [SHAPE_ANY]     = take_any,
    [SHAPE_WORDS]    = take_words,    [SHAPE_LISTS]     = take_lists,     [SHAPE_COUNT]   = take_count,
    [SHAPE_FLAG]     = take_flag,     [SHAPE_PATTERN]   = take_pattern,   [SHAPE_NUMBER]  = take_number,
    [SHAPE_POSITIVE] = take_positive,
    /* clang-format on */
};

static const struct keyword {
    const char *name;
    enum shape shape;
} keywords[] = {
#define KEYWORD(name, shape) { name, SHAPE_##shape },
#include "policy/schema_keywords.def"
};

static const struct keyword *find_keyword(const char *name)
{
    for_each(keyword, keywords)
        if (strcmp(keyword->name, name) == 0)
            return keyword;
    return NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int check_keyword(struct walk *walk, const struct keyword *keyword,
                         struct json_object *value, unsigned depth)
{
    if (keyword->shape < SHAPE_PLAIN)
        return plain[keyword->shape](walk, value);
    if (keyword->shape == SHAPE_SCHEMA)
        return check(walk, value, depth + 1);
    if (keyword->shape == SHAPE_SCHEMAS)
        return take_schemas(walk, value, depth);
    return take_named(walk, value, keyword->shape == SHAPE_PATTERNED, depth);
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int check(struct walk *walk, struct json_object *schema, unsigned depth)
{
    if (depth > DEPTH_MAX || ++walk->schemas > SCHEMAS_MAX)
        return wrong(walk, "is nested deeper than 32 schemas, or there are more than 5000");
    if (json_object_is_type(schema, json_type_boolean))
        return 0;
    if (!json_object_is_type(schema, json_type_object))
        return wrong(walk, "must be a schema: an object, true or false");
    json_object_object_foreach(schema, name, value)
    {
        const struct keyword *keyword = find_keyword(name);
        size_t before = enter(walk, name);
        if (!keyword)
            return wrong(walk, "this keyword is not understood here, and would hold nothing; "
                               "docs/reference/output-validation.md lists those that are");
        if (strcmp(name, "$defs") == 0 && schema != walk->root)
            return wrong(walk, "belongs to the whole schema, at its top");
        if (check_keyword(walk, keyword, value, depth) < 0)
            return -1;
        leave(walk, before);
    }
    return 0;
}

int expectation_check_schema(struct json_object *schema, const char *at, error *err)
{
    struct walk walk = { .root = schema, .err = err };
    (void) snprintf(walk.place, sizeof walk.place, "%.80s", at);
    return check(&walk, schema, 0);
}
