/* store.c - templates by name; locks show which directories are in use. */
#include "template/store.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"
#include "template/recipe.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int store_open(const char *state, bool make, error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/templates", state) >= (int) sizeof(path))
        return fail(err, ERR_BAD_REQUEST, "path '%.100s…' is too long", state);
    if (make && make_folder(path, 0755, err) < 0)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "there is no template in '%s' yet; build one: glovebox template build minimal",
                    state);
    return fd < 0 ? fail_os(err, "open '%s'", path) : fd;
}

static int open_directory(int store, const char *name)
{
    return openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_if_unlocked(int store, const char *name, error *err)
{
    auto_fd fd = open_directory(store, name);
    if (fd < 0 && errno == ENOTDIR && unlinkat(store, name, 0) == 0)
        return 0; /* a link to a folder elsewhere is kept */
    if (fd < 0)
        return errno == ENOENT ? 0 : fail_os(err, "open '%s'", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return 0; /* in use by a command or a sandbox: a later sweep removes it */
    return tree_remove(store, name, err);
}

/* Calls `each` for every name; the order is the directory's. */
static int each_name(int store, int (*each)(int, const char *, void *, error *), void *context,
                     error *err)
{
    int own = openat(store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    if (!directory) {
        close_fd(&own);
        return fail_os(err, "read the templates");
    }
    int result = 0;
    struct dirent *entry;
    while (result == 0 &&
           (entry = readdir(directory))) /* NOLINT(concurrency-mt-unsafe): ours alone */
        result = each(store, entry->d_name, context, err);
    (void) closedir(directory);
    return result;
}

/* Files of a killed build of an ordinary user may belong to other ids of that user's range
 * (debian.c, take_back()): they cannot be removed, and are no reason to fail. */
static int sweep_name(int store, const char *name, void *context, error *err)
{
    (void) context;
    if (strncmp(name, ".building-", 10) != 0 && strncmp(name, ".leaving-", 9) != 0)
        return 0;
    int result = remove_if_unlocked(store, name, err);
    return result < 0 && (err->os == EPERM || err->os == EACCES) ? 0 : result;
}

int store_sweep(int store, error *err)
{
    return each_name(store, sweep_name, NULL, err) < 0 ? under(err, "sweep old work") : 0;
}

static int working_name(const char *kind, const char *template, char *ret_name, size_t size)
{
    unsigned number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return -1;
    return snprintf(ret_name, size, ".%s-%s-%08x", kind, template, number) < (int) size ? 0 : -1;
}

int store_begin(int store, const char *template, char *ret_name, size_t size, error *err)
{
    if (working_name("building", template, ret_name, size) < 0 ||
        mkdirat(store, ret_name, 0700) < 0)
        return fail_os(err, "make a directory to build in");
    auto_fd fd = open_directory(store, ret_name);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return fail_os(err, "lock '%s'", ret_name);
    return take_fd(&fd);
}

static int previous_name(const char *template, char ret_name[NAME_MAX])
{
    return snprintf(ret_name, NAME_MAX, ".previous-%s", template) < NAME_MAX ? 0 : -1;
}

/* Removes a directory; if it is in use, a later sweep does. */
static int let_leave(int store, const char *name, const char *template, error *err)
{
    char leaving[NAME_MAX];
    if (working_name("leaving", template, leaving, sizeof(leaving)) < 0)
        return fail_os(err, "name what leaves");
    if (renameat(store, name, store, leaving) < 0)
        return errno == ENOENT ? 0 : fail_os(err, "remove '%s'", name);
    return remove_if_unlocked(store, leaving, err);
}

int store_publish(int store, int place, const char *working, const char *template, error *err)
{
    /* A shared lock, so that processes can use it as soon as it has its name. */
    if (flock(place, LOCK_SH) < 0)
        return fail_os(err, "share the template");
    if (renameat2(store, working, store, template, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EEXIST)
        return fail_os(err, "put the template in its place");
    char previous[NAME_MAX];
    if (previous_name(template, previous) < 0 ||
        renameat2(store, working, store, template, RENAME_EXCHANGE) < 0)
        return fail_os(err, "put the template in its place");
    if (let_leave(store, previous, template, err) < 0)
        return -1;
    return renameat(store, working, store, previous) < 0
               ? fail_os(err, "keep the template of before")
               : 0;
}

int store_rollback(int store, const char *template, error *err)
{
    char previous[NAME_MAX];
    if (!recipe_name_is_valid(template))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no name of a template", template);
    if (previous_name(template, previous) < 0)
        return fail_os(err, "name the template of before");
    if (renameat2(store, previous, store, template, RENAME_EXCHANGE) == 0)
        return 0;
    struct stat status;
    if (errno == ENOENT && fstatat(store, previous, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        renameat2(store, previous, store, template, RENAME_NOREPLACE) == 0)
        return 0; /* it was removed before */
    return errno == ENOENT
               ? fail(err, ERR_NOT_FOUND,
                      "there is no earlier template '%s': one is kept from the second build on",
                      template)
               : fail_os(err, "bring back template '%s'", template);
}

int store_remove(int store, const char *template, error *err)
{
    char previous[NAME_MAX];
    if (!recipe_name_is_valid(template) || previous_name(template, previous) < 0)
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no name of a template", template);
    if (faccessat(store, template, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, ERR_NOT_FOUND, "there is no template '%s'; see glovebox template list",
                    template);
    return let_leave(store, template, template, err) < 0
               ? -1
               : let_leave(store, previous, template, err);
}

int store_manifest(int store, const char *template, struct json_object **ret_manifest, error *err)
{
    if (!recipe_name_is_valid(template))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no name of a template", template);
    /* It may be a link to a folder elsewhere. */
    auto_fd directory = openat(store, template, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "template '%s' has not been built; build it: glovebox template build %s",
                    template, template);
    if (directory < 0)
        return fail_os(err, "open template '%s'", template);
    auto_text text = NULL;
    size_t size = 0;
    if (tree_read_file(directory, "manifest.json", &text, &size, err) < 0)
        return under(err, "template '%s'", template);
    auto_json manifest = json_tokener_parse(text);
    if (!json_object_is_type(manifest, json_type_object))
        return fail(err, ERR_UNAVAILABLE, "template '%s' is damaged; build it again", template);
    *ret_manifest = take_json(&manifest);
    return 0;
}

static int add_manifest(int store, const char *name, void *context, error *err)
{
    struct json_object *manifest = NULL;
    error ignored; /* incomplete templates are not listed */
    (void) err;
    if (*name != '.' && recipe_name_is_valid(name) &&
        store_manifest(store, name, &manifest, &ignored) == 0)
        (void) json_object_array_add(context, manifest);
    return 0;
}

static const char *name_of(const void *item)
{
    struct json_object *name = json_object_object_get(*(struct json_object *const *) item, "name");
    return name ? json_object_get_string(name) : "";
}

static int by_name(const void *left, const void *right)
{
    return strcmp(name_of(left), name_of(right));
}

int store_list(int store, struct json_object **ret_manifests, error *err)
{
    auto_json manifests = json_object_new_array();
    if (each_name(store, add_manifest, manifests, err) < 0)
        return -1;
    json_object_array_sort(manifests, by_name);
    *ret_manifests = take_json(&manifests);
    return 0;
}
