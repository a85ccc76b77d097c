/* approved.c - reads and writes the file of approved packages. Every text in it is quoted as in
 * JSON, which is valid YAML. */
#include "template/approved.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "policy/yaml.h"
#include "template/recipe_words.h"
#include "template/requests.h"
#include "template/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_MAX = 1000 };

static bool is_word(const char *text, const char *letters, size_t max)
{
    size_t length = strspn(text, letters);
    return length > 0 && length <= max && text[length] == '\0' && *text != '.' && *text != '-';
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"

static bool is_name(const char *text)
{
    return is_word(text, NAME_LETTERS, 120);
}

static bool is_version(const char *text)
{
    return is_word(text, NAME_LETTERS "~:!", 120);
}

static bool is_package(const char *text)
{
    return is_name(text) || recipe_is_npm_name(text);
}

/* Is it a path of packages only: "left", "left/node_modules/@scope/pad"? */
static bool is_place(const char *text)
{
    static const char between[] = "/node_modules/";
    char package[256];
    if (strlen(text) > PLACE_MAX)
        return false;
    for (const char *next = text; next; text = next + sizeof between - 1) {
        next = strstr(text, between);
        size_t length = next ? (size_t) (next - text) : strlen(text);
        if (length >= sizeof package)
            return false;
        (void) snprintf(package, sizeof package, "%.*s", (int) length, text);
        if (!is_package(package))
            return false;
    }
    return true;
}

static bool is_manager(const char *text)
{
    return strcmp(text, "pip") == 0 || strcmp(text, "apt") == 0 || strcmp(text, "npm") == 0;
}

static bool is_digest(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool is_line(const char *text)
{
    return strlen(text) <= 1000 && !strchr(text, '\n');
}

/* The keys of a row, in the order in which they are written. */
static const struct {
    const char *name;
    bool (*check)(const char *text);
    bool required;
} keys[] = {
    { "name", is_package, true },
    { "version", is_version, true },
    { "manager", is_manager, true },
    { "file", is_name, true },
    { "place", is_place, false },
    { "sha256", is_digest, true },
    { "request", request_id_is_valid, true },
    { "with", is_package, false },
    { "asked_by", is_line, false },
    { "approved_by", is_line, false },
    { "approved", is_line, false },
    { "reason", is_line, false },
};

const char *approved_text(struct json_object *row, const char *name)
{
    struct json_object *value = json_member(row, name);
    return value ? json_object_get_string(value) : "";
}

static int take_pair(const struct yaml *yaml, const struct yaml_node *key,
                     const struct yaml_node *value, struct json_object *row, error *err)
{
    for_each(known, keys) {
        if (key->kind != YAML_TEXT || strcmp(key->text, known->name) != 0)
            continue;
        if (value->kind != YAML_TEXT || !known->check(value->text))
            return yaml_fail(yaml, value, err, "this is no %s as glovebox libs approve writes it",
                             known->name);
        (void) json_object_object_add(row, known->name, json_object_new_string(value->text));
        return 0;
    }
    return yaml_fail(yaml, key, err, "there is no such key in an approved package");
}

static int take_row(const struct yaml *yaml, const struct yaml_node *node, struct json_object *rows,
                    error *err)
{
    if (node->kind != YAML_MAPPING)
        return yaml_fail(yaml, node, err, "an approved package is a mapping");
    struct json_object *row = json_object_new_object();
    (void) json_object_array_add(rows, row);
    for (const struct yaml_node *key = yaml_first(yaml, node); key;) {
        const struct yaml_node *value = yaml_next(yaml, key);
        if (take_pair(yaml, key, value, row, err) < 0)
            return -1;
        key = yaml_next(yaml, value);
    }
    for_each(known, keys) {
        if (known->required && !*approved_text(row, known->name))
            return yaml_fail(yaml, node, err, "an approved package needs its %s", known->name);
    }
    return 0;
}

static int take_rows(const struct yaml *yaml, struct json_object *rows, error *err)
{
    const struct yaml_node *key = yaml_first(yaml, &yaml->nodes[0]);
    const struct yaml_node *list = key ? yaml_next(yaml, key) : NULL;
    bool is_ours = yaml->nodes[0].kind == YAML_MAPPING && list && key->kind == YAML_TEXT &&
                   strcmp(key->text, "packages") == 0 && !yaml_next(yaml, list);
    if (is_ours && list->kind == YAML_TEXT && list->empty)
        return 0;
    if (!is_ours || list->kind != YAML_SEQUENCE)
        return yaml_fail(yaml, &yaml->nodes[0], err, "this file is `packages:` and a list");
    if (list->children > APPROVED_MAX)
        return yaml_fail(yaml, list, err, "more than %d packages", APPROVED_MAX);
    for (const struct yaml_node *row = yaml_first(yaml, list); row; row = yaml_next(yaml, row))
        if (take_row(yaml, row, rows, err) < 0)
            return -1;
    return 0;
}

int approved_read(const char *state, const char *template, struct json_object **ret_rows,
                  error *err)
{
    char name[96];
    auto_text text = NULL;
    size_t size = 0;
    auto_json rows = json_object_new_array();
    auto_fd folder = requests_open(state, false, err);
    (void) snprintf(name, sizeof name, "%.63s.approved.yaml", template);
    if (folder < 0 && err->code != ERR_NOT_FOUND)
        return -1;
    if (folder < 0 || faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        *ret_rows = take_json(&rows);
        return 0;
    }
    auto_yaml yaml = { 0 };
    if (tree_read_file(folder, name, &text, &size, err) < 0 ||
        yaml_init(&yaml, name, text, size, err) < 0 || take_rows(&yaml, rows, err) < 0)
        return -1;
    *ret_rows = take_json(&rows);
    return 0;
}

static void write_row(FILE *out, struct json_object *row)
{
    const char *before = "- ";
    for_each(known, keys) {
        struct json_object *value = NULL;
        if (!json_object_object_get_ex(row, known->name, &value) || !*json_object_get_string(value))
            continue;
        (void) fprintf(out, "  %s%s: %s\n", before, known->name,
                       json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE));
        before = "  ";
    }
}

int approved_write(int requests, const char *template, struct json_object *rows, error *err)
{
    char name[96];
    auto_text text = NULL;
    size_t size = 0;
    if (json_object_array_length(rows) > APPROVED_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "template %s would have more than %d approved packages; write a recipe of your "
                    "own: docs/templates.md",
                    template, APPROVED_MAX);
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fail_os(err, "write what is approved");
    (void) fprintf(
        out,
        "# Packages that were reviewed and approved for the template %s, written by\n"
        "# `glovebox libs approve`. `glovebox template build %s` installs these versions "
        "and\n# refuses others; what is taken out of this list is no longer installed.\n"
        "packages:\n",
        template, template);
    for (size_t index = 0; index < json_object_array_length(rows); index++)
        write_row(out, json_object_array_get_idx(rows, index));
    bool is_whole = fclose(out) == 0;
    (void) snprintf(name, sizeof name, "%.63s.approved.yaml", template);
    return is_whole ? tree_replace_file(requests, name, text, size, err)
                    : fail_os(err, "write what is approved");
}
