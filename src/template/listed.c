/* listed.c - fetches and unpacks the packages that a recipe lists: under `pip`, wheels, by the new
 * root's pip; under `npm`, by this machine's npm. A lock file next to the recipe pins version and
 * digest of each; the first build of a list writes it. Archives are kept in STATE/wheels/TEMPLATE
 * and STATE/npm/TEMPLATE. */
#include "template/build.h"

#include "base/cleanup.h"
#include "fetch_npm.h"
#include "fetch_wheels.h"
#include "install_wheels.h"
#include "supervisor/install_paths.h"
#include "template/review_run.h"
#include "template/tree.h"
#include "template/walls.h"
#include "json/member.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { CACHE_PATH_MAX = 1024 };

/* A list of a recipe, and how it is fetched. */
struct list {
    const char *key, *cache; /* of the recipe; folder below the state directory */
    const char *what, *helper, *lock;
    const char *program, *advice; /* needed in the new root, and how to get it */
    bool is_fetched_inside;       /* by programs of the new root */
};

/* STATE/wheels/TEMPLATE: the archives, and the request for the helper. */
struct cache {
    char folder[CACHE_PATH_MAX], archives_path[CACHE_PATH_MAX], request_path[CACHE_PATH_MAX];
    int directory, archives;
};

static void cache_close(struct cache *cache)
{
    close_fd(&cache->archives);
    close_fd(&cache->directory);
}

static int cache_open(const struct build *build, const struct list *list, struct cache *cache,
                      error *err)
{
    *cache = (struct cache){ .directory = -1, .archives = -1 };
    if (snprintf(cache->folder, sizeof cache->folder, "%s/%s/%s", build->request->state,
                 list->cache, build->name) >= (int) sizeof cache->folder - 32)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    (void) snprintf(cache->archives_path, sizeof cache->archives_path, "%.*s/archives",
                    (int) sizeof cache->folder - 32, cache->folder);
    (void) snprintf(cache->request_path, sizeof cache->request_path, "%.*s/request.json",
                    (int) sizeof cache->folder - 32, cache->folder);
    if (make_folder(cache->archives_path, 0755, err) < 0)
        return -1;
    cache->directory = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cache->archives = open(cache->archives_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->directory < 0 || cache->archives < 0)
        return fail_os(err, "open '%s'", cache->folder);
    if (flock(cache->directory, LOCK_EX | LOCK_NB) < 0)
        return fail(err, ERR_CONFLICT, "another build fetches %s for template %s; wait for it",
                    list->what, build->name);
    return 0;
}

/* Gives NULL if there is no lock. */
static int read_lock(const char *path, char **ret_text, error *err)
{
    char folder[PATH_MAX];
    size_t size;
    *ret_text = NULL;
    if (!path || access(path, F_OK) < 0)
        return 0;
    const char *slash = strrchr(path, '/');
    (void) snprintf(folder, sizeof folder, "%.*s", slash ? (int) (slash - path) + 1 : 2,
                    slash ? path : "./");
    auto_fd directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory < 0
               ? fail_os(err, "read '%s'", path)
               : tree_read_file(directory, slash ? slash + 1 : path, ret_text, &size, err);
}

static int write_lock(const char *path, const char *text, error *err)
{
    if (!path || !*text)
        return 0;
    auto_fd file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t size = strlen(text);
    if (file < 0 || write(file, text, size) != (ssize_t) size)
        return fail_os(err, "write the lock '%s', which pins what was fetched", path);
    return 0;
}

static int write_request(const struct build *build, const struct list *list,
                         const struct cache *cache, error *err)
{
    auto_text lock = NULL;
    if (read_lock(list->lock, &lock, err) < 0)
        return -1;
    auto_json request = json_object_new_object();
    (void) json_object_object_add(request, "wanted", json_object_get(build_key(build, list->key)));
    (void) json_object_object_add(request, "leave_out",
                                  json_object_get(build_key(build, "leave_out")));
    (void) json_object_object_add(request, "project", json_object_get(build->request->project));
    member_set_text(request, "lock", lock ? lock : "");
    (void) json_object_object_add(request, "offline",
                                  json_object_new_boolean(build->request->is_offline));
    const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
    return tree_write_file(cache->directory, "request.json", text, strlen(text), err);
}

/* Reads the helper's answer: {"lock", "files"}. */
static int take_answer(const struct list *list, const char *text, struct json_object **ret_files,
                       error *err)
{
    auto_json answer = json_tokener_parse(text);
    struct json_object *files = json_member(answer, "files"), *lock = json_member(answer, "lock");
    int result = 0;
    if (!files || !json_object_is_type(lock, json_type_string))
        result = fail(err, ERR_UNAVAILABLE, "there is no list of %s in the answer", list->what);
    else
        result = write_lock(list->lock, json_object_get_string(lock), err);
    if (result == 0)
        *ret_files = json_object_get(files);
    return result;
}

static int fetch(struct build *build, const struct list *list, struct json_object **ret_files,
                 error *err)
{
    struct cache cache;
    auto_text text = NULL;
    if (faccessat(build->root, list->program, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, ERR_BAD_REQUEST, "`%s` needs %s in the template: add %s to `packages`",
                    list->key, list->program, list->advice);
    int result = cache_open(build, list, &cache, err);
    if (result == 0)
        result = write_request(build, list, &cache, err);
    const struct review_run run = {
        .helper = list->helper,
        .manifest = cache.request_path,
        .folder = cache.archives_path,
        .archives = cache.archives,
        .name = "",
        .version = "",
        .root = list->is_fetched_inside ? build->root_path : NULL,
        .line = build_says,
        .context = build,
    };
    if (result == 0)
        result = review_run(&run, &text, err);
    if (result == 0)
        result = take_answer(list, text, ret_files, err);
    cache_close(&cache);
    return result;
}

int fetch_wheels(struct build *build, error *err)
{
    const struct list list = {
        .key = "pip",
        .cache = "wheels",
        .what = "wheels",
        .helper = fetch_wheels_code,
        .lock = build->request->lock,
        .program = "usr/bin/python3",
        .advice = "python3-pip",
        .is_fetched_inside = true,
    };
    bool is_listed =
        build->request->project || json_object_array_length(build_key(build, "pip")) > 0;
    return is_listed ? fetch(build, &list, &build->wheels, err) : 0;
}

int fetch_npm(struct build *build, error *err)
{
    const struct list list = {
        .key = "npm",
        .cache = "npm",
        .what = "packages of npm",
        .helper = fetch_npm_code,
        .lock = build->request->npm_lock,
        .program = "usr/bin/node",
        .advice = "nodejs",
    };
    return json_object_array_length(build_key(build, "npm")) > 0
               ? fetch(build, &list, &build->npm, err)
               : 0;
}

/* Calls `run` with the fetched archives at /tmp/archives. */
static int with_archives(struct build *build, const char *cache,
                         int (*run)(struct build *build, error *err), error *err)
{
    char archives[PATH_MAX];
    if (snprintf(archives, sizeof archives, "%s/%s/%s/archives", build->request->state, cache,
                 build->name) >= (int) sizeof archives)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    const struct walls_bind binds[] = { { archives, "tmp/archives", false }, { 0 } };
    build->binds = binds;
    int result = run(build, err);
    build->binds = NULL;
    return result;
}

/* Each archive is compared with its digest again. */
static int install_wheels(struct build *build, error *err)
{
    auto_json order = json_object_new_object();
    (void) json_object_object_add(order, "files", json_object_get(build->wheels));
    (void) json_object_object_add(order, "leave_out",
                                  json_object_get(build_key(build, "leave_out")));
    const char *const arguments[] = { "/tmp/archives", json_object_to_json_string(order), NULL };
    return build_run_python(build, install_wheels_code, arguments, NULL, err);
}

int unpack_wheels(struct build *build, error *err)
{
    return build->wheels ? with_archives(build, "wheels", install_wheels, err) : 0;
}

/* Unpacks the archive that the helper has written from all packages. */
static int unpack_packages(struct build *build, error *err)
{
    static const char *const words[] = { "/bin/tar", "-C/", "-xkf", "/tmp/archives/packages.tar",
                                         NULL };
    return build_run(build, words, err);
}

int unpack_npm(struct build *build, error *err)
{
    if (!build->npm)
        return 0;
    if (faccessat(build->root, "bin/tar", F_OK, 0) < 0)
        return fail(err, ERR_BAD_REQUEST, "`npm` needs tar in the template: add tar to `packages`");
    return with_archives(build, "npm", unpack_packages, err);
}
