/* build.c - the steps from a recipe to a template, in order, and the manifest. */
#include "template/build.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "template/approved.h"
#include "template/store.h"
#include "template/tool.h"
#include "template/tree.h"
#include "json/member.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct json_object *build_key(const struct build *build, const char *key)
{
    return json_object_object_get(build->request->recipe, key);
}

static int check_room(struct build *build, error *err)
{
    uint64_t needed = (uint64_t) json_object_get_int64(build_key(build, "disk"));
    struct statvfs room;
    if (fstatvfs(build->store, &room) < 0)
        return fail_os(err, "look at the disk");
    uint64_t free_bytes = (uint64_t) room.f_bavail * room.f_frsize;
    if (free_bytes < needed)
        return fail(err, ERR_UNAVAILABLE,
                    "needs %" PRIu64 " MiB of disk in '%s' and %" PRIu64
                    " MiB are free; make room, or use --state DIR on another disk",
                    needed >> 20, build->request->state, free_bytes >> 20);
    return 0;
}

static int unpack(struct build *build, error *err)
{
    int result = strcmp(build->base, "debian") == 0 ? unpack_debian(build, err)
                                                    : unpack_host_copy(build, err);
    if (result < 0)
        return -1;
    build->root = openat(build->place, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return build->root < 0 ? fail_os(err, "open the new root") : 0;
}

static void note_package(struct build *build, const char *name, const char *version)
{
    struct json_object *package = json_object_new_object();
    member_set_text(package, "name", name);
    member_set_text(package, "version", version);
    (void) json_object_array_add(build->packages, package);
}

static int by_package_name(const void *left, const void *right)
{
    struct json_object *const *const pair[] = { left, right };
    return strcmp(json_object_get_string(json_object_object_get(*pair[0], "name")),
                  json_object_get_string(json_object_object_get(*pair[1], "name")));
}

/* Lists Debian's packages for the manifest, before dpkg's list is removed. */
static int list_packages(struct build *build, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    if (json_object_array_length(build->packages) > 0)
        return check_approved(build, err);
    if (tree_read_file(build->root, "var/lib/dpkg/status", &text, &size, err) < 0)
        return -1;
    char *rest = text;
    const char *name = NULL;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (strncmp(line, "Package: ", 9) == 0)
            name = line + 9;
        else if (name && strncmp(line, "Version: ", 9) == 0)
            note_package(build, name, line + 9);
        else if (*line == '\0')
            name = NULL;
    }
    json_object_array_sort(build->packages, by_package_name);
    return check_approved(build, err);
}

/* In this order: no program runs in the tree before it is stripped, and times are set last. */
static const struct step {
    const char *name;
    int (*take)(struct build *, error *);
} steps[] = {
    { "check the disk", check_room },
    { "check what is approved", check_archives },
    { "unpack packages", unpack },
    { "list packages", list_packages },
    { "strip", strip_tree },
    { "furnish", furnish_tree },
    { "hand over", hand_over_tree }, /* code of packages runs in the tree from here on */
    { "fetch wheels", fetch_wheels },
    { "unpack wheels", unpack_wheels },
    { "fetch npm's packages", fetch_npm },
    { "unpack npm's packages", unpack_npm },
    { "add approved packages", add_approved },
    { "prepare", prepare_tree },
    { "try imports", try_imports },
    { "settle", settle_tree },
    { "digest", digest_tree },
};

void build_says(void *context, const char *detail)
{
    const struct build *build = context;
    if (build->request->progress)
        build->request->progress(build->request->context, build->step, COUNT_OF(steps),
                                 steps[build->step].name, detail);
}

static int take_steps(struct build *build, error *err)
{
    for (build->step = 0; build->step < COUNT_OF(steps); build->step++) {
        build_says(build, NULL);
        if (tool_interrupted)
            return fail(err, ERR_TIMEOUT, "interrupted");
        if (steps[build->step].take(build, err) < 0)
            return under(err, "%s", steps[build->step].name);
    }
    return 0;
}

static struct json_object *make_manifest(const struct build *build)
{
    char created[TIMESTAMP_SIZE];
    const struct {
        const char *key;
        struct json_object *value; /* NULL: that of the recipe */
    } rows[] = {
        { "name", NULL },
        { "digest", json_object_new_string(build->digest) },
        { "description", NULL },
        { "created", json_object_new_string(timestamp_write(wall_clock_ms(), created)) },
        { "source", json_object_new_string(build->base) },
        { "bytes", json_object_new_int64((int64_t) build->bytes) },
        { "files", json_object_new_int64((int64_t) build->files) },
        { "languages", NULL },
        { "env", NULL },
        { "zygotes", NULL },
        { "leave_out", NULL },
        { "packages", json_object_get(build->packages) },
        { "python", json_object_get(build->distributions) },
        { "npm", build->npm ? json_object_get(build->npm) : json_object_new_array() },
        { "approved", json_object_get(build->approved) },
    };
    struct json_object *manifest = json_object_new_object();
    for_each(row, rows)
        (void) json_object_object_add(manifest, row->key,
                                      row->value ? row->value
                                                 : json_object_get(build_key(build, row->key)));
    return manifest;
}

static int write_papers(const struct build *build, struct json_object *manifest, error *err)
{
    const char *text = json_object_to_json_string_ext(manifest, JSON_C_TO_STRING_PRETTY |
                                                                    JSON_C_TO_STRING_NOSLASHESCAPE);
    char digest[sizeof(build->digest) + 1];
    (void) snprintf(digest, sizeof(digest), "%s\n", build->digest);
    if (tree_write_file(build->place, "manifest.json", text, strlen(text), err) < 0 ||
        tree_write_file(build->place, "digest", digest, strlen(digest), err) < 0)
        return -1;
    if (fchmod(build->place, 0755) < 0 || syncfs(build->place) < 0)
        return fail_os(err, "finish the template");
    return 0;
}

int build_publish(struct build *build, struct json_object **ret_manifest, error *err)
{
    auto_json manifest = make_manifest(build);
    if (write_papers(build, manifest, err) < 0 ||
        store_publish(build->store, build->place, build->place_name, build->name, err) < 0)
        return -1;
    *ret_manifest = take_json(&manifest);
    return 0;
}

static int build_in_place(struct build *build, struct json_object **ret_manifest, error *err)
{
    if (snprintf(build->root_path, sizeof(build->root_path), "%s/templates/%s/root",
                 build->request->state, build->place_name) >= (int) sizeof(build->root_path))
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    return take_steps(build, err) < 0 ? -1 : build_publish(build, ret_manifest, err);
}

int template_build(const struct build_request *request, struct json_object **ret_manifest,
                   error *err)
{
    struct build build = {
        .request = request,
        .name = json_object_get_string(json_object_object_get(request->recipe, "name")),
        .base = request->base,
        .store = -1,
        .place = -1,
        .root = -1,
    };
    if (!build.base)
        build.base = json_object_get_string(build_key(&build, "base"));
    auto_fd store = store_open(request->state, true, err);
    if (store < 0 || store_sweep(store, err) < 0 ||
        approved_read(request->state, build.name, &build.approved, err) < 0)
        return -1;
    build.store = store;
    auto_fd place = store_begin(store, build.name, build.place_name, sizeof(build.place_name), err);
    build.place = place;
    build.packages = json_object_new_array();
    build.distributions = json_object_new_array();
    int result = place < 0 ? -1 : build_in_place(&build, ret_manifest, err);
    close_fd(&build.root);
    error ignored; /* if this fails too, the next sweep removes it */
    if (result < 0 && place >= 0)
        (void) tree_remove(store, build.place_name, &ignored);
    (void) json_object_put(build.packages);
    (void) json_object_put(build.distributions);
    (void) json_object_put(build.approved);
    (void) json_object_put(build.wheels);
    (void) json_object_put(build.npm);
    return result < 0 ? under(err, "build template %s", build.name) : 0;
}
