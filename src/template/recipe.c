/* recipe.c - a table of keys; each has a function that converts its node to JSON or fails. */
#include "template/recipe.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "base/text.h"
#include "model/template_bounds.h"
#include "policy/yaml.h"
#include "template/recipe_words.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct reading {
    const struct yaml *yaml;
    error *err;
};

typedef struct json_object *read_node(struct reading *reading, const struct yaml_node *node);

static struct json_object *wrong(struct reading *reading, const struct yaml_node *node,
                                 const char *format, ...) PRINTF(3, 4);

static struct json_object *wrong(struct reading *reading, const struct yaml_node *node,
                                 const char *format, ...)
{
    char text[200];
    va_list values;
    va_start(values, format);
    (void) vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    (void) yaml_fail(reading->yaml, node, reading->err, "%s", text);
    return NULL;
}

/* Gives the text of a node, or NULL with *err. It is valid as long as `reading`. */
static const char *read_text(struct reading *reading, const struct yaml_node *node,
                             const char *what)
{
    if (node->kind == YAML_TEXT && !node->empty)
        return node->text;
    (void) wrong(reading, node, "%s must be a text", what);
    return NULL;
}

bool recipe_name_is_valid(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && length <= RECIPE_NAME_MAX && name[length] == '\0';
}

static struct json_object *read_name(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "name");
    if (text && !recipe_name_is_valid(text))
        return wrong(reading, node, "name must be 1 to %d of a-z, 0-9 and '-'", RECIPE_NAME_MAX);
    return text ? json_object_new_string(text) : NULL;
}

static struct json_object *read_line(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "this");
    if (text && (strchr(text, '\n') || strlen(text) > 250))
        return wrong(reading, node, "it must be one line of at most 250 bytes");
    return text ? json_object_new_string(text) : NULL;
}

static struct json_object *read_base(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "base");
    if (text && strcmp(text, "debian") != 0 && strcmp(text, "host-copy") != 0)
        return wrong(reading, node, "base must be debian or host-copy, not '%.*s'",
                     text_head(text, 40), text);
    return text ? json_object_new_string(text) : NULL;
}

static struct json_object *read_size(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "disk");
    if (!text)
        return NULL;
    char *end = NULL;
    errno = 0;
    uint64_t value = isdigit((unsigned char) *text) ? strtoull(text, &end, 10) : 0;
    int shift = !end ? -1 : strcmp(end, "MiB") == 0 ? 20 : strcmp(end, "GiB") == 0 ? 30 : -1;
    if (errno != 0 || shift < 0 || value == 0 || value > (UINT64_C(1) << (44 - shift)))
        return wrong(reading, node, "disk must be a size such as 500MiB or 2GiB, not '%.*s'",
                     text_head(text, 40), text);
    return json_object_new_int64((int64_t) (value << shift));
}

/* What gloveboxd does not serve is not built. In a mapping a key and its value count each. */
static bool has_too_many(struct reading *reading, const struct yaml_node *node, const char *what,
                         size_t max)
{
    if (node->children / (node->kind == YAML_MAPPING ? 2 : 1) <= max)
        return false;
    (void) wrong(reading, node, "more than %zu %s", max, what);
    return true;
}

/* Reads a list of texts that each pass `check`; `what` is the name of one in errors. */
static struct json_object *read_list(struct reading *reading, const struct yaml_node *node,
                                     const char *what, bool (*check)(const char *),
                                     const char *rule)
{
    if (node->kind != YAML_SEQUENCE)
        return wrong(reading, node, "here a list is needed, as in [a, b]: each %s is %s", what,
                     rule);
    auto_json list = json_object_new_array();
    const struct yaml_node *item = yaml_first(reading->yaml, node);
    for (; item; item = yaml_next(reading->yaml, item)) {
        const char *text = read_text(reading, item, what);
        if (!text)
            return NULL;
        if (!check(text))
            return wrong(reading, item, "%s '%.*s' is wrong: it must be %s", what,
                         text_head(text, 60), text, rule);
        (void) json_object_array_add(list, json_object_new_string(text));
    }
    return take_json(&list);
}

static struct json_object *read_packages(struct reading *reading, const struct yaml_node *node)
{
    return read_list(reading, node, "package", recipe_is_package, "the name of a Debian package");
}

static struct json_object *read_requirements(struct reading *reading, const struct yaml_node *node)
{
    return read_list(reading, node, "requirement", recipe_is_requirement,
                     "a name in the package index with its versions, as in pandas>=2.2,<3");
}

static struct json_object *read_npm(struct reading *reading, const struct yaml_node *node)
{
    return read_list(
        reading, node, "package of npm", recipe_is_npm,
        "a name in npm's registry with its versions, as in left-pad@^1.3 or @scope/name");
}

/* Names of CRAN, which Debian writes in lower case after r-cran-. */
static struct json_object *read_cran(struct reading *reading, const struct yaml_node *node)
{
    return read_list(reading, node, "R package", recipe_is_cran,
                     "the name of a package of CRAN, as in ggplot2 or data.table");
}

static struct json_object *read_paths(struct reading *reading, const struct yaml_node *node)
{
    return read_list(reading, node, "pattern", recipe_is_inner_path,
                     "a path without a leading '/'");
}

static struct json_object *read_command(struct reading *reading, const struct yaml_node *node)
{
    auto_json list =
        read_list(reading, node, "argument", recipe_is_argument, "a text of at most 8 KiB");
    if (!list)
        return NULL;
    const char *program = json_object_array_length(list) > 0
                              ? json_object_get_string(json_object_array_get_idx(list, 0))
                              : "";
    if (*program == '/')
        return take_json(&list);
    return wrong(reading, node,
                 "a command starts with the whole path of its program, as in /bin/bash");
}

static struct json_object *read_commands(struct reading *reading, const struct yaml_node *node)
{
    if (node->kind != YAML_SEQUENCE)
        return wrong(reading, node, "prepare must be a list of commands");
    auto_json commands = json_object_new_array();
    const struct yaml_node *item = yaml_first(reading->yaml, node);
    for (; item; item = yaml_next(reading->yaml, item)) {
        bool is_long = has_too_many(reading, item, "words", TEMPLATE_PREPARE_MAX);
        struct json_object *command = is_long ? NULL : read_command(reading, item);
        if (!command)
            return NULL;
        (void) json_object_array_add(commands, command);
    }
    return take_json(&commands);
}

/* True, with *err, if the key was there before. */
static bool is_second(struct reading *reading, struct json_object *mapping,
                      const struct yaml_node *node, const char *key)
{
    if (!json_object_object_get_ex(mapping, key, NULL))
        return false;
    (void) wrong(reading, node, "key '%.*s' is given twice", text_head(key, 60), key);
    return true;
}

/* Reads a mapping whose keys pass `check` and whose values `read` converts to JSON. */
static struct json_object *read_mapping(struct reading *reading, const struct yaml_node *node,
                                        bool (*check)(const char *), const char *rule,
                                        read_node *read)
{
    if (node->kind != YAML_MAPPING)
        return wrong(reading, node, "here a mapping is needed, as in {key: value}");
    auto_json mapping = json_object_new_object();
    const struct yaml_node *place = yaml_first(reading->yaml, node);
    for (; place; place = yaml_next(reading->yaml, place)) {
        const char *key = read_text(reading, place, "key");
        struct json_object *value = NULL;
        if (key && !check(key))
            (void) wrong(reading, place, "'%.*s' is wrong: it must be %s", text_head(key, 60), key,
                         rule);
        else if (key && !is_second(reading, mapping, place, key))
            value = read(reading, place = yaml_next(reading->yaml, place));
        if (!value)
            return NULL;
        (void) json_object_object_add(mapping, key, value);
    }
    return take_json(&mapping);
}

static struct json_object *read_file_name(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "file");
    if (text && !recipe_is_file_name(text))
        return wrong(reading, node, "file must be the name of a file, as in main.py");
    return text ? json_object_new_string(text) : NULL;
}

/* A key of a mapping with fixed keys. */
struct key {
    const char *name;
    bool required;
    read_node *read;
    struct json_object *(*empty)(void); /* its value if it is left out; NULL: none */
    size_t max;                         /* how many it may have; 0: any number */
};

static const struct key *find_key(const struct key *keys, size_t count, const char *name)
{
    for (size_t index = 0; index < count; index++)
        if (strcmp(keys[index].name, name) == 0)
            return &keys[index];
    return NULL;
}

static void list_keys(const struct key *keys, size_t count, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t index = 0; index < count; index++) {
        size_t used = strlen(text);
        (void) snprintf(text + used, size - used, "%s%s", index ? ", " : "", keys[index].name);
    }
}

static int read_pairs(struct reading *reading, const struct yaml_node *node, const struct key *keys,
                      size_t count, struct json_object *into)
{
    const struct yaml_node *place = yaml_first(reading->yaml, node);
    for (; place; place = yaml_next(reading->yaml, place)) {
        const char *name = read_text(reading, place, "key");
        if (!name || is_second(reading, into, place, name))
            return -1;
        const struct key *key = find_key(keys, count, name);
        if (!key) {
            char known[120];
            list_keys(keys, count, known, sizeof(known));
            (void) wrong(reading, place, "there is no key '%.*s' here; known: %s",
                         text_head(name, 30), name, known);
            return -1;
        }
        place = yaml_next(reading->yaml, place);
        bool is_full = key->max > 0 && has_too_many(reading, place, name, key->max);
        struct json_object *value = is_full ? NULL : key->read(reading, place);
        if (!value)
            return -1;
        (void) json_object_object_add(into, name, value);
    }
    return 0;
}

static struct json_object *read_known(struct reading *reading, const struct yaml_node *node,
                                      const struct key *keys, size_t count)
{
    if (node->kind != YAML_MAPPING)
        return wrong(reading, node, "here a mapping is needed, as in {key: value}");
    auto_json object = json_object_new_object();
    if (read_pairs(reading, node, keys, count, object) < 0)
        return NULL;
    for (size_t index = 0; index < count; index++) {
        if (json_object_object_get_ex(object, keys[index].name, NULL))
            continue;
        if (keys[index].required)
            return wrong(reading, node, "key '%s' is missing", keys[index].name);
        if (keys[index].empty)
            (void) json_object_object_add(object, keys[index].name, keys[index].empty());
    }
    return take_json(&object);
}

static struct json_object *read_language(struct reading *reading, const struct yaml_node *node)
{
    static const struct key keys[] = {
        { "command", true, read_command, NULL, TEMPLATE_WORDS_MAX },
        { "file", true, read_file_name, NULL, 0 },
        { "compile", false, read_command, NULL, TEMPLATE_WORDS_MAX },
    };
    return read_known(reading, node, keys, COUNT_OF(keys));
}

static struct json_object *read_languages(struct reading *reading, const struct yaml_node *node)
{
    return read_mapping(reading, node, recipe_is_language,
                        "the name of a language in small letters", read_language);
}

static struct json_object *read_value(struct reading *reading, const struct yaml_node *node)
{
    const char *text = read_text(reading, node, "value");
    return text ? json_object_new_string(text) : NULL;
}

static struct json_object *read_variables(struct reading *reading, const struct yaml_node *node)
{
    return read_mapping(reading, node, recipe_is_variable,
                        "[A-Za-z_][A-Za-z0-9_]*, and not one that steers the loader", read_value);
}

static struct json_object *read_imports(struct reading *reading, const struct yaml_node *node)
{
    if (has_too_many(reading, node, "modules", TEMPLATE_WORDS_MAX))
        return NULL;
    return read_list(reading, node, "import", recipe_is_module, "the name of a Python module");
}

static struct json_object *read_zygotes(struct reading *reading, const struct yaml_node *node)
{
    auto_json sets = read_mapping(reading, node, recipe_name_is_valid, "a name of a-z, 0-9 and '-'",
                                  read_imports);
    if (!sets || strlen(json_object_to_json_string(sets)) <= TEMPLATE_MODULES_MAX)
        return take_json(&sets);
    return wrong(reading, node, "the modules of all zygotes have more than %d bytes",
                 TEMPLATE_MODULES_MAX);
}

static struct json_object *no_text(void)
{
    return json_object_new_string("");
}

static struct json_object *usual_disk(void)
{
    return json_object_new_int64(INT64_C(2) << 30);
}

static const struct key recipe_keys[] = {
    { "name", true, read_name, NULL, 0 },
    { "description", false, read_line, no_text, 0 },
    { "base", true, read_base, NULL, 0 },
    { "disk", false, read_size, usual_disk, 0 },
    { "takes", false, read_line, no_text, 0 },
    { "packages", true, read_packages, NULL, 0 },
    { "pip", false, read_requirements, json_object_new_array, 0 },
    { "npm", false, read_npm, json_object_new_array, 0 },
    { "r", false, read_cran, json_object_new_array, 0 },
    { "leave_out", false, read_paths, json_object_new_array, 0 },
    { "languages", true, read_languages, NULL, TEMPLATE_LANGUAGES_MAX },
    { "env", false, read_variables, json_object_new_object,
      TEMPLATE_VARIABLES_MAX - TEMPLATE_NPM_VARIABLES },
    { "zygotes", false, read_zygotes, json_object_new_object, TEMPLATE_SETS_MAX },
    { "prepare", false, read_commands, json_object_new_array, 0 },
};

int recipe_read_text(const char *file, size_t most, char **ret_text, size_t *ret_size, error *err)
{
    struct stat status;
    auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND, "there is no file '%s'", file);
    if (fd < 0 || fstat(fd, &status) < 0)
        return fail_os(err, "read '%s'", file);
    if (!S_ISREG(status.st_mode) || (uint64_t) status.st_size > most)
        return fail(err, ERR_BAD_REQUEST, "'%s' is no file of at most %zu bytes", file, most);
    auto_text text = calloc(1, most + 1);
    ssize_t got = text ? read_at(fd, text, most, 0) : -1;
    if (got < 0)
        return fail_os(err, "read '%s'", file);
    *ret_size = (size_t) got;
    *ret_text = take_text(&text);
    return 0;
}

int recipe_read(const char *file, struct json_object **ret_recipe, error *err)
{
    auto_text text = NULL;
    size_t length = 0;
    return recipe_read_text(file, RECIPE_FILE_MAX, &text, &length, err) < 0
               ? -1
               : recipe_parse(file, text, length, ret_recipe, err);
}

int recipe_parse(const char *label, const char *text, size_t length,
                 struct json_object **ret_recipe, error *err)
{
    auto_yaml yaml = { 0 };
    if (yaml_init(&yaml, label, text, length, err) < 0)
        return -1;
    struct reading reading = { .yaml = &yaml, .err = err };
    struct json_object *recipe =
        read_known(&reading, &yaml.nodes[0], recipe_keys, COUNT_OF(recipe_keys));
    if (!recipe)
        return -1;
    recipe_complete(recipe);
    *ret_recipe = recipe;
    return 0;
}
