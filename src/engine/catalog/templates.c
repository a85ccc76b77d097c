/* templates.c - reads STATE/templates/NAME/manifest.json, once, at start. */
#include "engine/catalog/templates.h"

#include "base/cleanup.h"
#include "model/languages.h"
#include "policy/policy.h"
#include "json/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANIFEST_MAX = 4 * 1024 * 1024 };

static int read_json(const char *path, struct json_object **ret_value, error *err)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_os(err, "open '%s'", path);
    struct json_reader reader;
    if (json_reader_open(&reader, err) < 0)
        return -1;
    static char piece[65536];
    size_t total = 0;
    ssize_t got;
    while ((got = read(file, piece, sizeof piece)) > 0 && (total += (size_t) got) <= MANIFEST_MAX)
        json_reader_take(&reader, piece, (size_t) got);
    int result = got == 0 ? json_reader_end(&reader, ret_value, err)
                          : fail(err, ERR_UNAVAILABLE, "it cannot be read, or is too long");
    json_reader_close(&reader);
    return result < 0 ? under(err, "'%s'", path) : 0;
}

static const char *text_of(struct json_object *object, const char *key, const char *otherwise)
{
    struct json_object *value;
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_string))
        return otherwise;
    return json_object_get_string(value);
}

static int read_words(struct json_object *object, const char *key, const char **words,
                      size_t *ret_count, error *err)
{
    struct json_object *list;
    *ret_count = 0;
    if (!json_object_object_get_ex(object, key, &list))
        return 0;
    if (!json_object_is_type(list, json_type_array) ||
        json_object_array_length(list) > TEMPLATE_WORDS_MAX)
        return fail(err, ERR_UNAVAILABLE, "'%s' is not a list of at most %d texts", key,
                    TEMPLATE_WORDS_MAX);
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count; i++) {
        struct json_object *word = json_object_array_get_idx(list, i);
        if (!json_object_is_type(word, json_type_string))
            return fail(err, ERR_UNAVAILABLE, "'%s' holds something that is no text", key);
        words[i] = json_object_get_string(word);
    }
    *ret_count = count;
    return 0;
}

static int read_language(struct template *template, const char *name, struct json_object *value,
                         error *err)
{
    if (template->language_count == TEMPLATE_LANGUAGES_MAX)
        return fail(err, ERR_UNAVAILABLE, "more than %d languages", TEMPLATE_LANGUAGES_MAX);
    struct language *language = &template->languages[template->language_count];
    language->name = name;
    language->file = text_of(value, "file", NULL);
    if (read_words(value, "compile", language->compile, &language->compile_count, err) < 0 ||
        read_words(value, "command", language->command, &language->command_count, err) < 0)
        return under(err, "language '%s'", name);
    if (!language->file || strchr(language->file, '/') || language->command_count == 0)
        return fail(err, ERR_UNAVAILABLE, "language '%s' lacks its 'file' or 'command'", name);
    template->language_count++;
    return 0;
}

static int read_manifest(struct template *template, error *err)
{
    struct json_object *manifest = template->manifest;
    if (!json_object_is_type(manifest, json_type_object))
        return fail(err, ERR_UNAVAILABLE, "it is not an object");
    template->digest = text_of(manifest, "digest", NULL);
    template->description = text_of(manifest, "description", "");
    if (!template->digest)
        return fail(err, ERR_UNAVAILABLE, "it has no 'digest'; build the template again");
    struct json_object *object;
    if (json_object_object_get_ex(manifest, "languages", &object) &&
        json_object_is_type(object, json_type_object)) {
        json_object_object_foreach(object, name, value)
        {
            if (read_language(template, name, value, err) < 0)
                return -1;
        }
    }
    if (json_object_object_get_ex(manifest, "zygotes", &object) &&
        json_object_is_type(object, json_type_object)) {
        json_object_object_foreach(object, set_name, modules)
        {
            (void) modules;
            if (template->set_count == TEMPLATE_SETS_MAX)
                break;
            struct import_set *set = &template->sets[template->set_count++];
            set->name = set_name;
            if (read_words(object, set_name, set->modules, &set->module_count, err) < 0)
                return under(err, "zygotes");
        }
    }
    if (json_object_object_get_ex(manifest, "env", &object) &&
        json_object_is_type(object, json_type_object)) {
        json_object_object_foreach(object, name, value)
        {
            if (template->variable_count == TEMPLATE_VARIABLES_MAX ||
                !json_object_is_type(value, json_type_string))
                return fail(err, ERR_UNAVAILABLE, "'env' has more than %d names, or no text",
                            TEMPLATE_VARIABLES_MAX);
            template->variables[template->variable_count] = name;
            template->values[template->variable_count++] = json_object_get_string(value);
        }
    }
    return 0;
}

/* A template that is built anew or removed while it is in use goes away when its last user has let
 * go: the lock says that it is in use (template/store.h). */
static int hold(struct template *template, const char *directory, error *err)
{
    template->held = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (template->held < 0 || flock(template->held, LOCK_SH | LOCK_NB) < 0)
        return fail_os(err, "hold '%s'", directory);
    return 0;
}

/* Of what its packages have put there: no link leads anywhere else. */
static int open_trusted(const struct template *template)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    return (int) syscall(SYS_openat2, template->held, "root/etc/ssl/certs/ca-certificates.crt",
                         &how, sizeof how);
}

int templates_add(struct templates *templates, const char *argument, error *err)
{
    const char *directory = strchr(argument, '=');
    if (!directory || templates->count == SPAWN_TEMPLATES_MAX)
        return fail(err, ERR_BAD_REQUEST, "--template takes NAME=DIRECTORY, at most %d times",
                    SPAWN_TEMPLATES_MAX);
    struct template *template = &templates->list[templates->count];
    auto_text name = strndup(argument, (size_t) (directory - argument));
    auto_text path = NULL;
    if (!name || asprintf(&path, "%s/manifest.json", directory + 1) < 0)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): auto_text frees it */
        return fail(err, ERR_SYSTEM, "no memory for a template");
    if (!policy_name_is_valid(name))
        return fail(err, ERR_BAD_REQUEST, "'%s' is no name for a template; use a-z, 0-9 and '-'",
                    name);
    if (read_json(path, &template->manifest, err) < 0)
        return under(err, "template '%s'", name);
    if (read_manifest(template, err) < 0)
        return under(err, "template '%s': '%s'", name, path);
    if (hold(template, directory + 1, err) < 0)
        return under(err, "template '%s'", name);
    template->trusted = open_trusted(template);
    template->name = take_text(&name);
    templates->count++;
    return 0;
}

void templates_done(struct templates *templates)
{
    for (size_t i = 0; i < templates->count; i++) {
        free((char *) (uintptr_t) templates->list[i].name);
        (void) json_object_put(templates->list[i].manifest);
        (void) close(templates->list[i].held);
        if (templates->list[i].trusted >= 0)
            (void) close(templates->list[i].trusted);
    }
    templates->count = 0;
}

int templates_find(const struct templates *templates, const char *name)
{
    for (size_t i = 0; i < templates->count; i++)
        if (strcmp(templates->list[i].name, name) == 0)
            return (int) i;
    return -1;
}

const struct language *template_language(const struct template *template, const char *name)
{
    for (size_t i = 0; i < template->language_count; i++)
        if (strcmp(template->languages[i].name, name) == 0)
            return &template->languages[i];
    for (size_t i = 0; i < template->language_count; i++)
        if (language_is(template->languages[i].name, name))
            return &template->languages[i];
    return NULL;
}
