/* template_view.c - prints the manifest of a template as text or JSON. */
#include "cli/operate/template_view.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "supervisor/install_paths.h"
#include "template/store.h"

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *template_text(struct json_object *manifest, const char *key)
{
    struct json_object *value = json_object_object_get(manifest, key);
    return value ? json_object_get_string(value) : "";
}

static void name_moments(json_object *object)
{
    static const char *const names[] = { "created", "asked", "reviewed", "decided", "approved" };
    char moment[TIMESTAMP_SIZE], answer[16];
    for_each(name, names) {
        int64_t at_ms = timestamp_read(template_text(object, *name));
        if (at_ms == 0)
            continue; /* "approved" is a list as well */
        (void) snprintf(answer, sizeof answer, "%s_at", *name);
        member_set_text(object, answer, timestamp_write(at_ms, moment));
        json_object_object_del(object, *name);
    }
}

static void in_each(json_object *rows, void (*name)(json_object *row))
{
    for (size_t i = 0;
         json_object_is_type(rows, json_type_array) && i < json_object_array_length(rows); i++)
        name(json_object_array_get_idx(rows, i));
}

static void name_with_approved(json_object *object)
{
    name_moments(object);
    in_each(json_object_object_get(object, "approved"), name_moments);
}

void template_name_moments(struct json_object *object)
{
    if (json_object_is_type(object, json_type_array))
        in_each(object, name_with_approved);
    else
        name_with_approved(object);
}

void template_print_json(struct json_object *object)
{
    template_name_moments(object);
    (void) puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
}

void template_print_row(struct json_object *manifest)
{
    (void) printf("%-12s %-19.19s %6" PRId64 " MiB  %.10s  %s\n", template_text(manifest, "name"),
                  template_text(manifest, "digest"),
                  json_object_get_int64(json_object_object_get(manifest, "bytes")) >> 20,
                  template_text(manifest, "created"), template_text(manifest, "description"));
}

static void print_pairs(const char *title, struct json_object *list)
{
    if (!list || json_object_array_length(list) == 0)
        return;
    (void) printf("%s:\n", title);
    for (size_t index = 0; index < json_object_array_length(list); index++) {
        struct json_object *one = json_object_array_get_idx(list, index);
        (void) printf("  %-32s %s\n", template_text(one, "name"), template_text(one, "version"));
    }
}

static void print_words(struct json_object *words, const char *after)
{
    for (size_t index = 0; words && index < json_object_array_length(words); index++)
        (void) printf(" %s", json_object_get_string(json_object_array_get_idx(words, index)));
    (void) fputs(words ? after : "", stdout);
}

static void print_command(const char *name, struct json_object *language)
{
    (void) printf("%-12s %s:", "language", name);
    print_words(json_object_object_get(language, "compile"), " &&");
    print_words(json_object_object_get(language, "command"), "\n");
}

void template_print(struct json_object *manifest)
{
    static const char *const lines[] = { "name", "digest", "description", "created", "source" };
    for_each(line, lines)
        (void) printf("%-12s %s\n", *line, template_text(manifest, *line));
    struct json_object *languages = json_object_object_get(manifest, "languages");
    if (languages) {
        json_object_object_foreach(languages, name, language) print_command(name, language);
    }
    struct json_object *variables = json_object_object_get(manifest, "env");
    if (variables) {
        json_object_object_foreach(variables, name, value)(void)
            printf("%-12s %s=%s\n", "env", name, json_object_get_string(value));
    }
    print_pairs("python", json_object_object_get(manifest, "python"));
    print_pairs("npm", json_object_object_get(manifest, "npm"));
    print_pairs("packages", json_object_object_get(manifest, "packages"));
}

/* Writes ", 41 with what they need, 12 MiB to fetch", or "" if there is no lock file. */
static void describe_lock(const char *path, char *text, size_t size)
{
    unsigned rows = 0;
    long long bytes = 0;
    char line[1024];
    FILE *lock = fopen(path, "re");
    while (lock && fgets(line, sizeof line, lock)) {
        rows += *line != '#' && *line != '\n';
        if (strncmp(line, "# bytes: ", 9) == 0)
            bytes = strtoll(line + 9, NULL, 10);
    }
    if (lock)
        (void) fclose(lock);
    *text = '\0';
    if (rows > 0)
        (void) snprintf(text, size, ", %u with what they need, %lld MiB to fetch", rows,
                        (bytes + (1 << 20) - 1) >> 20);
}

void template_print_cost(struct json_object *recipe, const char *npm_lock)
{
    const char *takes = template_text(recipe, "takes");
    int64_t room = json_object_get_int64(json_object_object_get(recipe, "disk"));
    size_t listed = json_object_array_length(json_object_object_get(recipe, "npm"));
    char packages[160] = "", more[96];
    if (listed > 0) {
        describe_lock(npm_lock, more, sizeof more);
        (void) snprintf(packages, sizeof packages, "%zu packages of npm%s; ", listed, more);
    }
    (void) fprintf(stderr,
                   "glovebox: template %s: %s%s%sneeds %" PRId64 " MiB free while it is built\n",
                   template_text(recipe, "name"), takes, *takes ? "; " : "", packages, room >> 20);
}

/* Prints the templates that come with glovebox and are not built. */
void template_print_unbuilt(int store)
{
    auto_text folder = NULL;
    auto_text pattern = NULL;
    glob_t files;
    error err;
    if (path_of_data("templates", &folder, &err) < 0 ||
        format_text(&pattern, &err, "%s/*.yaml", folder) < 0)
        return;
    if (glob(pattern, 0, NULL, &files) != 0) /* NOLINT(concurrency-mt-unsafe): one thread */
        return;
    for (size_t index = 0; index < files.gl_pathc; index++) {
        char name[NAME_MAX + 1];
        auto_json manifest = NULL;
        (void) snprintf(name, sizeof(name), "%s", strrchr(files.gl_pathv[index], '/') + 1);
        name[strlen(name) - strlen(".yaml")] = '\0';
        if (store < 0 || store_manifest(store, name, &manifest, &err) < 0)
            (void) printf("%-12s not built; glovebox template build %s\n", name, name);
    }
    globfree(&files);
}
