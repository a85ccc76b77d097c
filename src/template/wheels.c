/* wheels.c - the Python packages that a recipe lists under `pip`: fetched as wheels by the new
 * root's own pip, and unpacked. A lock file beside the recipe pins version and digest of each; the
 * first build of a list writes it. What was fetched stays in STATE/wheels/TEMPLATE. */
#include "template/build.h"

#include "base/cleanup.h"
#include "fetch_wheels.h"
#include "install_wheels.h"
#include "supervisor/install_paths.h"
#include "template/review_run.h"
#include "template/tree.h"
#include "template/walls.h"
#include "json/member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { WHEELS_PATH_MAX = 1024 };

/* STATE/wheels/TEMPLATE: the archives, and what the helper is asked. */
struct wheel_cache {
    char folder[WHEELS_PATH_MAX], archives_path[WHEELS_PATH_MAX], request_path[WHEELS_PATH_MAX];
    int directory, archives;
};

static void cache_close(struct wheel_cache *cache)
{
    close_fd(&cache->archives);
    close_fd(&cache->directory);
}

static int cache_open(const struct build *build, struct wheel_cache *cache, error *err)
{
    *cache = (struct wheel_cache){ .directory = -1, .archives = -1 };
    if (snprintf(cache->folder, sizeof cache->folder, "%s/wheels/%s", build->request->state,
                 build->name) >= (int) sizeof cache->folder - 32)
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
        return fail(err, ERR_CONFLICT, "another build fetches wheels for template %s; wait for it",
                    build->name);
    return 0;
}

/* A lock that is not there is NULL. */
static int read_lock(const struct build *build, char **ret_text, error *err)
{
    const char *path = build->request->lock;
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

static int write_lock(const struct build *build, const char *text, error *err)
{
    const char *path = build->request->lock;
    if (!path || !*text)
        return 0;
    auto_fd file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t size = strlen(text);
    if (file < 0 || write(file, text, size) != (ssize_t) size)
        return fail_os(err, "write the lock '%s', which pins what was fetched", path);
    return 0;
}

static int write_request(const struct build *build, const struct wheel_cache *cache, error *err)
{
    auto_text lock = NULL;
    if (read_lock(build, &lock, err) < 0)
        return -1;
    struct json_object *request = json_object_new_object();
    (void) json_object_object_add(request, "wanted", json_object_get(build_key(build, "pip")));
    (void) json_object_object_add(request, "project", json_object_get(build->request->project));
    (void) json_object_object_add(request, "lock", json_object_new_string(lock ? lock : ""));
    (void) json_object_object_add(request, "offline",
                                  json_object_new_boolean(build->request->is_offline));
    const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
    int result = tree_write_file(cache->directory, "request.json", text, strlen(text), err);
    (void) json_object_put(request);
    return result;
}

/* What the helper answers: {"lock", "files"}. */
static int take_answer(struct build *build, const char *text, error *err)
{
    struct json_object *answer = json_tokener_parse(text);
    struct json_object *files = json_member(answer, "files"), *lock = json_member(answer, "lock");
    int result = 0;
    if (!json_object_is_type(files, json_type_object) ||
        !json_object_is_type(lock, json_type_string))
        result = fail(err, ERR_UNAVAILABLE, "pip in the new root gave no list of wheels");
    else
        result = write_lock(build, json_object_get_string(lock), err);
    if (result == 0)
        build->wheels = json_object_get(files);
    (void) json_object_put(answer);
    return result;
}

static bool lists_wheels(const struct build *build)
{
    return build->request->project || json_object_array_length(build_key(build, "pip")) > 0;
}

int fetch_wheels(struct build *build, error *err)
{
    struct wheel_cache cache;
    auto_text text = NULL;
    if (!lists_wheels(build))
        return 0;
    if (faccessat(build->root, "usr/bin/python3", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "`pip` needs python3 and its pip in the template: add python3-pip to "
                    "`packages`");
    int result = cache_open(build, &cache, err);
    if (result == 0)
        result = write_request(build, &cache, err);
    const struct review_run run = {
        .helper = fetch_wheels_code,
        .manifest = cache.request_path,
        .folder = cache.archives_path,
        .archives = cache.archives,
        .name = "",
        .version = "",
        .root = build->root_path,
        .line = build_says,
        .context = build,
    };
    if (result == 0)
        result = review_run(&run, &text, err);
    if (result == 0)
        result = take_answer(build, text, err);
    cache_close(&cache);
    return result;
}

/* Each archive is compared with its digest again where it is unpacked. */
int unpack_wheels(struct build *build, error *err)
{
    char archives[PATH_MAX];
    if (!build->wheels)
        return 0;
    if (snprintf(archives, sizeof archives, "%s/wheels/%s/archives", build->request->state,
                 build->name) >= (int) sizeof archives)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    struct json_object *order = json_object_new_object();
    (void) json_object_object_add(order, "files", json_object_get(build->wheels));
    (void) json_object_object_add(order, "leave_out",
                                  json_object_get(build_key(build, "leave_out")));
    const struct walls_bind binds[] = { { archives, "tmp/archives", false }, { 0 } };
    const char *const arguments[] = { "/tmp/archives", json_object_to_json_string(order), NULL };
    build->binds = binds;
    int result = build_run_python(build, install_wheels_code, arguments, NULL, err);
    build->binds = NULL;
    (void) json_object_put(order);
    return result;
}
