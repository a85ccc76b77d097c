/* install.c - installs approved packages into a new root, if they are those reviewed. */
#include "template/build.h"

#include "base/cleanup.h"
#include "install_wheels.h"
#include "template/approved.h"
#include "template/requests.h"
#include "template/tool.h"
#include "template/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char archives_path[] = "usr/share/glovebox/archives";

/* Fails with the approval that does not apply any more, and what to do. */
static int refuse(const struct build *build, struct json_object *row, error *err, const char *cause)
{
    return fail(err, ERR_CONFLICT,
                "approved package %.60s %.40s: %s; ask for it and review it again, or take it out "
                "of libs/%s.approved.yaml",
                approved_text(row, "name"), approved_text(row, "version"), cause, build->name);
}

static bool is_of(struct json_object *row, const char *manager)
{
    return strcmp(approved_text(row, "manager"), manager) == 0;
}

typedef int take_archive(struct build *build, int archives, struct json_object *row, error *err);

/* Calls `take` with every approved archive of this manager, and its folder. */
static int each_archive(struct build *build, const char *manager, take_archive *take,
                        size_t *ret_count, error *err)
{
    size_t count = 0;
    auto_fd requests = -1;
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        error why = { 0 };
        if (!is_of(row, manager))
            continue;
        if (count++ == 0 && (requests = requests_open(build->request->state, false, err)) < 0)
            return -1;
        auto_fd archives = request_archives(requests, approved_text(row, "request"), false, &why);
        if (archives < 0)
            return refuse(build, row, err, "its archive is gone");
        if (take(build, archives, row, err) < 0)
            return -1;
    }
    *ret_count = count;
    return 0;
}

static int check_digest(struct build *build, int folder, struct json_object *row, error *err)
{
    char digest[DIGEST_SIZE];
    error why = { 0 };
    if (digest_file(folder, approved_text(row, "file"), digest, &why) < 0)
        return refuse(build, row, err, "its archive is gone");
    if (strcmp(digest, approved_text(row, "sha256")) != 0)
        return refuse(build, row, err, "its archive is not the one that was approved");
    return 0;
}

/* Reads the digest of a version from this machine's apt, whose index is signed. Returns false if it
 * does not know the version: the build will ask the sources again. */
static bool read_index(struct json_object *row, char digest[DIGEST_SIZE])
{
    static const char field[] = "\nSHA256: ";
    char program[] = "apt-cache", verb[] = "show", option[] = "--no-all-versions";
    char wanted[256];
    auto_text text = NULL;
    error unheard;
    (void) snprintf(wanted, sizeof wanted, "%s=%s", approved_text(row, "name"),
                    approved_text(row, "version"));
    if (!tool_exists(program))
        return false;
    char *arguments[] = { program, verb, option, wanted, NULL };
    struct tool tool = { .arguments = arguments };
    const char *found = tool_read(&tool, &text, &unheard) == 0 ? strstr(text, field) : NULL;
    if (!found)
        return false;
    (void) snprintf(digest, DIGEST_SIZE, "%s", found + sizeof field - 1);
    return true;
}

static int check_indexes(const struct build *build, error *err)
{
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        char digest[DIGEST_SIZE];
        if (is_of(row, "apt") && read_index(row, digest) &&
            strcmp(digest, approved_text(row, "sha256")) != 0)
            return refuse(build, row, err, "the index of packages has another archive under it");
    }
    return 0;
}

/* Before anything is fetched or unpacked. */
int check_archives(struct build *build, error *err)
{
    size_t count;
    if (strcmp(build->base, "debian") == 0 && check_indexes(build, err) < 0)
        return -1;
    return each_archive(build, "pip", check_digest, &count, err) < 0
               ? -1
               : each_archive(build, "npm", check_digest, &count, err);
}

/* Checks the copy, so that the archive cannot be changed between check and use. */
static int copy_archive(struct build *build, int archives, struct json_object *row, error *err)
{
    char path[256];
    auto_text bytes = NULL;
    size_t size = 0;
    (void) snprintf(path, sizeof path, "%s/%s", archives_path, approved_text(row, "file"));
    if (tree_make_directory(build->root, archives_path, err) < 0 ||
        tree_read_file(archives, approved_text(row, "file"), &bytes, &size, err) < 0 ||
        tree_write_file(build->root, path, bytes, size, err) < 0)
        return -1;
    auto_fd copies = tree_open(build->root, archives_path, O_RDONLY | O_DIRECTORY);
    return copies < 0 ? fail_os(err, "open '%s'", archives_path)
                      : check_digest(build, copies, row, err);
}

static int add_wheels(struct build *build, error *err)
{
    static const char *const arguments[] = { "/usr/share/glovebox/archives", NULL };
    size_t count = 0;
    if (each_archive(build, "pip", copy_archive, &count, err) < 0)
        return -1;
    if (count == 0)
        return 0;
    if (faccessat(build->root, "usr/bin/python3", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, ERR_CONFLICT,
                    "packages of pip are approved for it, and it has no python3");
    return build_run_python(build, install_wheels_code, arguments, NULL, err);
}

/* Unpacks into NODE_PATH; not /node_modules, which would make "/" the project of npm. approved.c
 * has checked the names of `row`. The archive was written by the review, so it only has the files
 * and folders that were reviewed. */
static int unpack_package(struct build *build, int archives, struct json_object *row, error *err)
{
    char place[1200], package_json[1300], archive[256];
    const char *const unpack[] = { "/bin/tar",
                                   "--extract",
                                   "--gzip",
                                   "--strip-components=1",
                                   "--no-same-owner",
                                   "--no-same-permissions",
                                   "--keep-old-files",
                                   "--directory",
                                   place,
                                   "--file",
                                   archive,
                                   NULL };
    (void) snprintf(place, sizeof place, "/usr/local/lib/node_modules/%s",
                    approved_text(row, "place"));
    (void) snprintf(archive, sizeof archive, "/%s/%s", archives_path, approved_text(row, "file"));
    (void) snprintf(package_json, sizeof package_json, "%s/package.json", place + 1);
    if (!*approved_text(row, "place"))
        return refuse(build, row, err, "it has no place");
    auto_fd other = tree_open(build->root, package_json, O_PATH);
    if (other >= 0)
        return fail(err, ERR_CONFLICT,
                    "approved package %.60s %.40s: `npm` of the recipe brings one to its place; "
                    "take its row out of libs/%s.approved.yaml, or that one out of the recipe",
                    approved_text(row, "name"), approved_text(row, "version"), build->name);
    const char *const make[] = { "/bin/mkdir", "--parents", place, NULL };
    if (copy_archive(build, archives, row, err) < 0)
        return -1;
    return build_run(build, make, err) < 0 || build_run(build, unpack, err) < 0
               ? under(err, "unpack %s", approved_text(row, "name"))
               : 0;
}

int add_approved(struct build *build, error *err)
{
    size_t count;
    if (add_wheels(build, err) < 0 || each_archive(build, "npm", unpack_package, &count, err) < 0)
        return -1;
    auto_fd above = tree_open(build->root, "usr/share/glovebox", O_RDONLY | O_DIRECTORY);
    if (above < 0 || faccessat(above, "archives", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return tree_remove(above, "archives", err);
}

static const char *version_inside(const struct build *build, const char *name)
{
    for (size_t index = 0; index < json_object_array_length(build->packages); index++) {
        struct json_object *package = json_object_array_get_idx(build->packages, index);
        if (strcmp(approved_text(package, "name"), name) == 0)
            return approved_text(package, "version");
    }
    return "";
}

int check_approved(struct build *build, error *err)
{
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        const char *inside = version_inside(build, approved_text(row, "name"));
        if (is_of(row, "apt") && strcmp(inside, approved_text(row, "version")) != 0)
            return refuse(build, row, err, "its sources have another version now");
    }
    return 0;
}
