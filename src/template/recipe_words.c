/* recipe_words.c - checks texts of recipes, and adds values that follow from the lists. */
#include "template/recipe_words.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"
#include "template/recipe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool recipe_is_package(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return length >= 2 && length < 128 && text[length] == '\0' && isalnum((unsigned char) *text);
}

bool recipe_is_cran(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.");
    return length >= 2 && length < 64 && text[length] == '\0' && isalpha((unsigned char) *text);
}

/* pip's own code reads what follows the name (fetch_wheels.py); URLs are refused here. */
bool recipe_is_requirement(const char *text)
{
    return isalnum((unsigned char) *text) && strlen(text) < 200 && !strpbrk(text, "@/\\:|\n");
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Gives the rest after a word that ends with `end`, or NULL. */
static const char *skip_npm_word(const char *text, char end)
{
    size_t length = strspn(text, LETTERS "-_.");
    return isalnum((unsigned char) *text) && length <= 100 && text[length] == end
               ? text + length + 1
               : NULL;
}

bool recipe_is_npm_name(const char *text)
{
    const char *name = *text == '@' ? skip_npm_word(text + 1, '/') : text;
    return name && skip_npm_word(name, '\0');
}

/* A name and, after '@', versions of npm; no alias, URL or folder, which have a ':' or a '/'. */
bool recipe_is_npm(const char *text)
{
    char name[256];
    const char *at = *text ? strchr(text + 1, '@') : NULL;
    size_t length = at ? (size_t) (at - text) : strlen(text);
    if (length >= sizeof name || (at && (at[1] == '\0' || strlen(at) > 100)))
        return false;
    (void) snprintf(name, sizeof name, "%.*s", (int) length, text);
    return recipe_is_npm_name(name) &&
           (!at || at[1 + strspn(at + 1, LETTERS "-_.+~^<>=*| ")] == '\0');
}

bool recipe_is_inner_path(const char *text)
{
    return *text && *text != '/' && strlen(text) < 250 && !strstr(text, "..");
}

bool recipe_is_argument(const char *text)
{
    return strlen(text) < 8192;
}

bool recipe_is_file_name(const char *text)
{
    return *text && *text != '.' && !strchr(text, '/') && strlen(text) < 64;
}

bool recipe_is_language(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+#-");
    return length > 0 && length < 32 && text[length] == '\0';
}

bool recipe_is_variable(const char *text)
{
    if (isdigit((unsigned char) *text) || strncmp(text, "LD_", 3) == 0 ||
        strcmp(text, "GLIBC_TUNABLES") == 0)
        return false;
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < 64 && text[length] == '\0';
}

bool recipe_is_module(const char *text)
{
    size_t length =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
    return length > 0 && length < 128 && text[length] == '\0' && *text != '.';
}

static void add_cran(struct json_object *recipe)
{
    struct json_object *wanted = json_object_object_get(recipe, "r");
    struct json_object *packages = json_object_object_get(recipe, "packages");
    for (size_t i = 0; i < json_object_array_length(wanted); i++) {
        char name[160];
        (void) snprintf(name, sizeof name, "r-cran-%s",
                        json_object_get_string(json_object_array_get_idx(wanted, i)));
        for (size_t k = 0; name[k]; k++)
            if (name[k] >= 'A' && name[k] <= 'Z')
                name[k] += 'a' - 'A';
        (void) json_object_array_add(packages, json_object_new_string(name));
    }
}

/* Appends to a variable of the recipe. */
static void add_to_variable(struct json_object *recipe, const char *name, const char *text)
{
    struct json_object *variables = json_object_object_get(recipe, "env");
    struct json_object *value = json_object_object_get(variables, name);
    const char *before = value ? json_object_get_string(value) : "";
    auto_text whole = NULL;
    error unheard;
    if (strstr(before, text + 1) || format_text(&whole, &unheard, "%s%s", before, text) < 0)
        return;
    member_set_text(variables, name, whole + (*before ? 0 : 1));
}

/* Adds the folder of npm's packages to the paths of `require` and `import`. */
static void add_node_variables(struct json_object *recipe)
{
    if (json_object_array_length(json_object_object_get(recipe, "npm")) == 0)
        return;
    add_to_variable(recipe, "NODE_PATH", ":/usr/local/lib/node_modules");
    add_to_variable(recipe, "NODE_OPTIONS", " --require=/" RECIPE_NODE_START);
}

void recipe_complete(struct json_object *recipe)
{
    add_cran(recipe);
    add_node_variables(recipe);
}
