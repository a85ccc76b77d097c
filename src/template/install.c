/* install.c - puts into a new root what people have approved for its template, and nothing that is
 * not byte for byte what they have looked at. */
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

static const char wheels_path[] = "usr/share/glovebox/wheels";

/* Names the approval that does not hold, and the way on. */
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

/* Calls `each` with every approved wheel and the folder that it lies in. */
static int each_wheel(const struct build *build,
                      int (*each)(const struct build *, int, struct json_object *, error *),
                      size_t *ret_count, error *err)
{
    size_t count = 0;
    auto_fd requests = -1;
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        error why = { 0 };
        if (!is_of(row, "pip"))
            continue;
        if (count++ == 0 && (requests = requests_open(build->request->state, false, err)) < 0)
            return -1;
        auto_fd archives = request_archives(requests, approved_text(row, "request"), false, &why);
        if (archives < 0)
            return refuse(build, row, err, "its archive is gone");
        if (each(build, archives, row, err) < 0)
            return -1;
    }
    *ret_count = count;
    return 0;
}

static int check_digest(const struct build *build, int folder, struct json_object *row, error *err)
{
    char digest[DIGEST_SIZE];
    error why = { 0 };
    if (digest_file(folder, approved_text(row, "file"), digest, &why) < 0)
        return refuse(build, row, err, "its archive is gone");
    if (strcmp(digest, approved_text(row, "sha256")) != 0)
        return refuse(build, row, err, "its archive is not the one that was approved");
    return 0;
}

/* The digest that this machine's apt has for a version, from an index whose signature it has
 * checked. Returns false if it knows no such version: the build asks the sources anew. */
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
    return each_wheel(build, check_digest, &count, err);
}

/* The copy is checked again, so that nobody changes it in between. */
static int copy_wheel(const struct build *build, int archives, struct json_object *row, error *err)
{
    char path[256];
    auto_text bytes = NULL;
    size_t size = 0;
    (void) snprintf(path, sizeof path, "%s/%s", wheels_path, approved_text(row, "file"));
    if (tree_make_directory(build->root, wheels_path, err) < 0 ||
        tree_read_file(archives, approved_text(row, "file"), &bytes, &size, err) < 0 ||
        tree_write_file(build->root, path, bytes, size, err) < 0)
        return -1;
    auto_fd wheels = tree_open(build->root, wheels_path, O_RDONLY | O_DIRECTORY);
    return wheels < 0 ? fail_os(err, "open '%s'", wheels_path)
                      : check_digest(build, wheels, row, err);
}

int add_approved(struct build *build, error *err)
{
    static const char *const arguments[] = { "/usr/share/glovebox/wheels", NULL };
    size_t count = 0;
    if (each_wheel(build, copy_wheel, &count, err) < 0)
        return -1;
    if (count == 0)
        return 0;
    if (faccessat(build->root, "usr/bin/python3", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, ERR_CONFLICT,
                    "packages of pip are approved for it, and it has no python3");
    if (build_run_python(build, install_wheels, arguments, NULL, err) < 0)
        return -1;
    auto_fd above = tree_open(build->root, "usr/share/glovebox", O_RDONLY | O_DIRECTORY);
    return above < 0 ? fail_os(err, "open '%s'", wheels_path) : tree_remove(above, "wheels", err);
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
