/* templates.c - reads STATE/templates/NAME/manifest.json, at the start and when the folder
 * changes. */
#include "engine/catalog/templates.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "engine/catalog/import_counts.h"
#include "model/languages.h"
#include "json/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANIFEST_MAX = 4 * 1024 * 1024, NAMES_MAX = 64, RETIRED_MS = 60000 };

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

static int read_json(int directory, const char *name, struct json_object **ret_value, error *err)
{
    auto_fd file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return fail_os(err, "open '%s'", name);
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
    return result < 0 ? under(err, "'%s'", name) : 0;
}

static const char *text_of(struct json_object *object, const char *key, const char *otherwise)
{
    struct json_object *value = json_object_object_get(object, key);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : otherwise;
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
            return fail(err, ERR_UNAVAILABLE, "'%s' must contain only texts", key);
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

/* A shared lock shows that the template is in use (template/store.h): if it is rebuilt or removed,
 * its directory is deleted after its last user. */
static int hold(struct template *template, const char *directory, error *err)
{
    template->held = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (template->held < 0 || flock(template->held, LOCK_SH | LOCK_NB) < 0)
        return fail_os(err, "hold '%s'", directory);
    return 0;
}

/* Opens the certificates that its packages installed, without following links out of it. */
static int open_trusted(const struct template *template)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    return (int) syscall(SYS_openat2, template->held, "root/etc/ssl/certs/ca-certificates.crt",
                         &how, sizeof how);
}

/* Reads all of it by one descriptor, so that what is mounted is what the manifest describes, even
 * if another template takes its name meanwhile. */
static int load(struct template *template, const char *folder, const char *name, error *err)
{
    auto_text directory = NULL;
    if (asprintf(&directory, "%s/%s", folder, name) < 0 || !(template->name = strdup(name)))
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): auto_text frees it */
        return fail(err, ERR_SYSTEM, "no memory for a template");
    if (hold(template, directory, err) < 0 ||
        read_json(template->held, "manifest.json", &template->manifest, err) < 0)
        return under(err, "template '%s'", name);
    if (read_manifest(template, err) < 0)
        return under(err, "template '%s': '%s/manifest.json'", name, directory);
    template->trusted = open_trusted(template);
    template->imports = import_counts_open(template->held);
    return 0;
}

static void template_free(struct template *template)
{
    free((char *) (uintptr_t) template->name);
    (void) json_object_put(template->manifest);
    import_counts_free(template->imports);
    close_fd(&template->held);
    close_fd(&template->trusted);
    free(template);
}

static int add(struct templates *templates, const char *name, error *err)
{
    uint32_t index = 0;
    while (index < SPAWN_TEMPLATES_MAX && templates->list[index])
        index++;
    if (index == SPAWN_TEMPLATES_MAX)
        return fail(err, ERR_UNAVAILABLE,
                    "template '%s': %d can be served; run: glovebox template remove", name,
                    SPAWN_TEMPLATES_MAX);
    struct template *template = calloc(1, sizeof *template);
    if (!template)
        return fail(err, ERR_SYSTEM, "no memory for a template");
    template->index = index;
    template->held = template->trusted = -1;
    if (load(template, templates->folder, name, err) < 0) {
        template_free(template);
        return -1;
    }
    templates->list[index] = template;
    return (int) index;
}

/* A build is in a folder whose name begins with a dot until it is complete. A folder that cannot be
 * examined counts as there: loading it gives the reason. */
static bool is_whole(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return policy_name_is_valid(name) &&
           snprintf(path, sizeof path, "%s/%s/manifest.json", folder, name) < (int) sizeof path &&
           (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

/* Names in order, so that the numbers of templates do not depend on the file system. */
static int list_names(const char *folder, char (*names)[POLICY_NAME_SIZE], error *err)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return fail_os(err, "open folder '%s'", folder);
    int count = 0;
    const struct dirent *entry;
    while (errno = 0, count < NAMES_MAX && (entry = readdir(entries))) /* NOLINT(concurrency-*) */
        if (is_whole(folder, entry->d_name))
            (void) snprintf(names[count++], sizeof *names, "%.63s", entry->d_name);
    if (errno != 0)
        count = fail_os(err, "list folder '%s'", folder);
    (void) closedir(entries);
    if (count > 0)
        qsort(names, (size_t) count, sizeof *names, compare_names);
    return count;
}

const struct template_fault *templates_fault(const struct templates *templates, const char *name)
{
    for_each(fault, templates->faults)
        if (strncmp(fault->name, name, sizeof fault->name - 1) == 0)
            return fault;
    return NULL;
}

/* A fault that an earlier look reported with the same cause is not reported again. */
static void refuse(struct templates *templates, const char *name, const error *cause)
{
    const struct template_fault *known = templates_fault(templates, name);
    if (!known)
        known = templates_fault(templates, "");
    if (known) {
        struct template_fault *fault = &templates->faults[known - templates->faults];
        bool is_new = strcmp(fault->cause.text, cause->text) != 0;
        (void) snprintf(fault->name, sizeof fault->name, "%s", name);
        fault->cause = *cause;
        fault->is_found = true;
        if (!is_new)
            return;
    }
    templates->changed(templates->context, -1, name, cause);
}

int templates_open(struct templates *templates, const char *folder, const char *first, error *err)
{
    static char names[NAMES_MAX + 1][POLICY_NAME_SIZE];
    bool serves_any = false, any_failed = false;
    templates->folder = folder;
    int count = list_names(folder, names + 1, err);
    if (count < 0)
        return -1;
    if (first && is_whole(folder, first))
        (void) snprintf(names[0], sizeof *names, "%s", first);
    for (int i = names[0][0] ? 0 : 1; i <= count; i++) {
        if (templates_find(templates, names[i]) >= 0 || (i > 0 && strcmp(names[i], names[0]) == 0))
            continue;
        bool is_added = add(templates, names[i], err) >= 0;
        serves_any |= is_added;
        any_failed |= !is_added;
        if (!is_added)
            refuse(templates, names[i], err);
    }
    return any_failed && !serves_any ? -1 : 0;
}

static void tell_added(struct templates *templates, int index, const char *name, const error *cause)
{
    if (index < 0)
        refuse(templates, name, cause);
    else
        templates->changed(templates->context, index, name, NULL);
}

/* True if its directory still has its name. */
static bool is_in_place(const struct template *template, int folder)
{
    struct stat held, named;
    return fstat(template->held, &held) == 0 && fstatat(folder, template->name, &named, 0) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void templates_look(struct templates *templates)
{
    static char names[NAMES_MAX][POLICY_NAME_SIZE];
    error err;
    auto_fd folder = open(templates->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int count = folder < 0 ? fail_os(&err, "open folder '%s'", templates->folder)
                           : list_names(templates->folder, names, &err);
    if (count < 0) {
        refuse(templates, templates->folder, &err);
        return;
    }
    for_each(fault, templates->faults)
        fault->is_found = false;
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++) {
        struct template *template = templates->list[i];
        if (!template_is_served(template) || is_in_place(template, folder))
            continue;
        bool is_replaced = is_whole(templates->folder, template->name);
        template->is_retired = true;
        if (is_replaced) {
            int index = add(templates, template->name, &err);
            tell_added(templates, index, template->name, &err);
            if (index < 0 || !templates->list[index]) {
                template->is_retired = false; /* it is served until its replacement can be */
                continue;
            }
        }
        template->rests_until = deadline_in(RETIRED_MS);
        templates->changes++;
        templates->changed(templates->context, (int) template->index, template->name, NULL);
    }
    for (int i = 0; i < count; i++) {
        if (templates_find(templates, names[i]) >= 0)
            continue;
        int index = add(templates, names[i], &err);
        templates->changes += index >= 0;
        tell_added(templates, index, names[i], &err);
    }
    for_each(fault, templates->faults)
        if (!fault->is_found)
            *fault = (struct template_fault){ 0 };
}

void templates_done(struct templates *templates)
{
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        if (templates->list[i])
            templates_drop(templates, i);
}

/* The template of a plan is const, except for the count of its users. */
static struct template *of_plan(const struct template *template)
{
    return (struct template *) (uintptr_t) template;
}

const struct template *template_use(const struct template *template)
{
    of_plan(template)->users++;
    return template;
}

void template_release(const struct template *template)
{
    if (template && template->users > 0 && --of_plan(template)->users == 0 &&
        template->index == SPAWN_TEMPLATES_MAX)
        template_free(of_plan(template));
}

void templates_drop(struct templates *templates, uint32_t index)
{
    struct template *template = templates->list[index];
    templates->list[index] = NULL;
    template->index = SPAWN_TEMPLATES_MAX;
    close_fd(&template->held);
    close_fd(&template->trusted);
    template->held = template->trusted = -1;
    if (template->users == 0)
        template_free(template);
}

int templates_find(const struct templates *templates, const char *name)
{
    for (int i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        if (template_is_served(templates->list[i]) && strcmp(templates->list[i]->name, name) == 0)
            return i;
    return -1;
}

int template_modules(const struct template *template, error *err)
{
    char text[SPAWN_MODULES_MAX];
    size_t used = 0;
    for (size_t set = 0; set < template->set_count; set++) {
        const struct import_set *imports = &template->sets[set];
        for (size_t i = 0; i < imports->module_count && used < sizeof text; i++)
            used += (size_t) snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "," : "",
                                      imports->modules[i]);
        if (used >= sizeof text)
            return fail(err, ERR_UNAVAILABLE,
                        "template '%s': the modules of its zygotes have more than %d bytes",
                        template->name, SPAWN_MODULES_MAX);
        text[used++] = '\0';
    }
    auto_fd memory = memfd_create("modules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0 || write(memory, text, used) != (ssize_t) used ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return fail_os(err, "write the modules of template '%s'", template->name);
    return take_fd(&memory);
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
