/* import.c - makes a template of an archive, which may be hostile.
 *
 * tar unpacks it behind the walls of a build, where only the new folder can be written. It lists
 * each entry before it writes it, and is ended at one that is not allowed in a template. The
 * unpacked tree is then checked: it is walked by descriptors, every entry is checked, and its
 * digest must be that of the manifest. */
#include "template/archive.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "template/build.h"
#include "template/recipe.h"
#include "template/store.h"
#include "template/tool.h"
#include "template/tree.h"
#include "template/walls.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1000, MODE_LENGTH = 10 };

/* An import. */
struct import {
    struct build build;
    struct build_request request;
    struct json_object *recipe; /* the keys of a recipe in its manifest */
    int file;
    const struct compression *compression;
    struct tool *tool;       /* the tar that unpacks it */
    uint64_t bytes, entries; /* as tar lists them */
    uint64_t room, block;    /* free bytes and block size of the disk */
    char complaint[512];     /* the first error in an entry; "" if there is none */
    char said[512];          /* the first line of tar that is not an entry; "" if there is none */
};

static int find_compression(struct import *import, error *err)
{
    struct stat status;
    if (fstat(import->file, &status) < 0 || !S_ISREG(status.st_mode))
        return fail(err, ERR_BAD_REQUEST, "it is no file");
    for_each(one, compressions) {
        char magic[MAGIC_SIZE + 1] = "";
        if (pread(import->file, magic, MAGIC_SIZE, one->magic_at) < 0)
            return fail_os(err, "read it");
        if (strncmp(magic, one->magic, strlen(one->magic)) == 0)
            import->compression = one;
    }
    if (!import->compression)
        return fail(
            err, ERR_BAD_REQUEST,
            "it is no archive of tar, as it is or compressed with gzip, zstd or xz; write one "
            "with glovebox template export");
    if (access("/bin/tar", X_OK) < 0 || !tool_exists(import->compression->program))
        return fail(err, ERR_UNAVAILABLE, "this machine has no tar or no %s; install them",
                    import->compression->program);
    return 0;
}

/* True for "a/../b", "..", "../a", "a/..": tar lists names as they are in the archive. */
static bool climbs(const char *name)
{
    for (const char *at = strstr(name, ".."); at; at = strstr(at + 1, ".."))
        if ((at == name || at[-1] == '/') && (at[2] == '/' || at[2] == '\0' || at[2] == ' '))
            return true;
    return false;
}

static const char *fault_of_mode(const char *mode)
{
    static const char *const plain[] = { "drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx" };
    for_each(one, plain)
        if (strcmp(mode, *one) == 0)
            return NULL;
    if (strchr("bc", *mode))
        return "is a device; a template has none";
    if (*mode == 'h')
        return "is a hard link; each file of a template is one of its own";
    if (!strchr("d-l", *mode))
        return "is no file, folder or symbolic link";
    return strpbrk(mode, "sStT") ? "has a set-user-id, set-group-id or sticky bit"
                                 : "has another mode than 755 or 644";
}

/* What is wrong with a name, or NULL. */
static const char *fault_of_name(const char *name)
{
    if (*name == '/')
        return "begins with '/'";
    if (climbs(name))
        return "has a '..' in its name";
    if (strcmp(name, "manifest.json") != 0 && strncmp(name, "root/", 5) != 0)
        return "lies neither in root/ nor is the manifest";
    return NULL;
}

/* Gives the next word after spaces. */
static const char *after_word(const char *at)
{
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

static const char *what_tar_says(const char *line)
{
    if (strstr(line, "from member names"))
        return "tar says of a name that begins with '/' or has a '..' in it";
    return strstr(line, "unrecognized option")
               ? "this machine's tar says; install GNU tar (Alpine: apk add tar)"
               : "tar says of it";
}

/* Checks a line of `tar --extract --verbose --verbose`: mode, owner, size, date, time, and, after
 * one space, the name. */
static void judge_line(void *context, const char *line)
{
    struct import *import = context;
    char mode[12], name[LINE_MAX_BYTES];
    const char *size = after_word(after_word(line)), *time = after_word(after_word(size));
    const char *space = strchr(time, ' ');
    if (strncmp(after_word(line), "Creating directory: ", 20) == 0)
        return; /* not an entry: if it hides one, the count of files will not match */
    if (strcspn(line, " ") != MODE_LENGTH || strlen(line) >= LINE_MAX_BYTES || !space) {
        if (!*import->said) /* the first message names the cause */
            (void) snprintf(import->said, sizeof import->said, "'%.200s' is what %s", line,
                            what_tar_says(line));
        return;
    }
    (void) snprintf(mode, sizeof mode, "%.*s", (int) strcspn(line, " "), line);
    (void) snprintf(name, sizeof name, "%s", space + 1);
    char *arrow = *mode == 'l' ? strstr(name, " -> ") : NULL;
    if (arrow)
        *arrow = '\0';
    unsigned long long bytes =
        strtoull(size, NULL, 10); /* a device has two numbers here, and is refused */
    const char *fault = fault_of_mode(mode);
    if (!fault)
        fault = fault_of_name(name);
    if (bytes > (UINT64_C(1) << 40) || (import->bytes += bytes) >> 30 >= ARCHIVE_GIB_MAX)
        fault = "is more than the 16 GiB that a template may have in all";
    if (++import->entries > ARCHIVE_ENTRIES_MAX)
        fault = "is more than the 500,000 files that a template may have";
    if (!fault && import->bytes + import->entries * import->block > import->room)
        fault =
            "is more than the state directory's disk has room for; make room, or use --state DIR";
    if (fault && !*import->complaint)
        (void) snprintf(import->complaint, sizeof import->complaint, "'%.200s' %s", name, fault);
    import->tool->is_enough = import->tool->is_enough || fault;
}

/* Folder `unpacked` belongs to the user of tar, and to the caller afterwards. */
static int unpack_archive(struct import *import, error *err)
{
    const char *const arguments[] = {
        /* clang-format off */
        "/bin/tar", import->compression->option, "--file=-", "--extract", "--verbose", "--verbose", "--full-time",
        "--numeric-owner", "--utc", "--quoting-style=escape", "--no-same-owner", "--no-same-permissions",
        "--keep-old-files", "--delay-directory-restore", "--directory=/tmp/tree", NULL
        /* clang-format on */
    };
    char place[PATH_MAX];
    if (snprintf(place, sizeof place, "%s/templates/%s/unpacked", import->request.state,
                 import->build.place_name) >= (int) sizeof place)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    const struct walls_bind binds[] = { { place, "tmp/tree", true }, { 0 } };
    const struct walls walls = { .binds = binds, .disk = place };
    struct tool tool = {
        .arguments = (char *const *) (uintptr_t) arguments, /* execvp(3) does not write */
        .variables = archive_variables,
        .walls = &walls,
        .input = import->file,
        .line = judge_line,
        .context = import,
    };
    auto_fd unpacked =
        openat(import->build.place, "unpacked", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (unpacked < 0)
        return fail_os(err, "open the folder to unpack in");
    struct statvfs disk;
    if (fstatvfs(unpacked, &disk) < 0)
        return fail_os(err, "look at the disk");
    import->block = disk.f_frsize;
    import->room = (uint64_t) disk.f_bavail * disk.f_frsize;
    if (lseek(import->file, 0, SEEK_SET) < 0)
        return fail_os(err, "read it");
    import->tool = &tool;
    int result = tool_run(&tool, err);
    import->tool = NULL;
    if (*import->complaint || *import->said)
        return fail(err, ERR_BAD_REQUEST, "%s",
                    *import->complaint ? import->complaint : import->said);
    if (result < 0 || (walls_owner() != geteuid() && tree_give(unpacked, geteuid(), err) < 0))
        return -1;
    if (renameat(unpacked, "root", import->build.place, "root") < 0)
        return fail(err, ERR_BAD_REQUEST, "it has no folder root/");
    import->build.root =
        openat(import->build.place, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return import->build.root < 0 ? fail(err, ERR_BAD_REQUEST, "its root is no folder") : 0;
}

/* An absolute link begins at the template's root. A link leads out if its '..' go above that. */
static bool leads_out(const char *path, const char *target)
{
    long depth = 0;
    for (const char *at = path; *at && *target != '/'; at++)
        depth += *at == '/';
    for (const char *at = target; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && strncmp(at, "..", 2) == 0)
            depth--;
        else if (length > 0 && !(length == 1 && *at == '.'))
            depth++;
        if (depth < 0)
            return true;
        at += length + (at[length] == '/');
    }
    return false;
}

static int judge_entry(void *context, const struct tree_entry *entry, error *err)
{
    struct import *import = context;
    mode_t mode = entry->status.st_mode;
    char target[PATH_MAX];
    if (entry->leaving)
        return TREE_GO_ON;
    import->build.files++;
    if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode))
        return fail(err, ERR_BAD_REQUEST, "'%.200s' is no file, folder or symbolic link",
                    entry->path);
    if (S_ISREG(mode) && entry->status.st_nlink != 1)
        return fail(err, ERR_BAD_REQUEST, "'%.200s' is a hard link", entry->path);
    if (!S_ISLNK(mode) && (mode & 07777) != 0755 && (S_ISDIR(mode) || (mode & 07777) != 0644))
        return fail(err, ERR_BAD_REQUEST, "'%.200s' has mode %o, not 755 or 644", entry->path,
                    mode & 07777);
    if (!S_ISLNK(mode))
        return TREE_GO_ON;
    ssize_t length = readlinkat(entry->directory, entry->name, target, sizeof target - 1);
    if (length < 0)
        return fail_os(err, "read link '%.150s'", entry->path);
    target[length] = '\0';
    return leads_out(entry->path, target)
               ? fail(err, ERR_BAD_REQUEST, "'%.200s' is a link that leads out: '%.200s'",
                      entry->path, target)
               : TREE_GO_ON;
}

/* Sandboxes mount file systems on these folders, so none may be a link. */
static int judge_tree(struct import *import, error *err)
{
    static const char *const folders[] = { "dev",  "etc",       "home/user",
                                           "proc", "run",       "tmp",
                                           "usr",  "workspace", "usr/lib/glovebox" };
    import->build.files = 0;
    if (tree_walk(import->build.root, judge_entry, import, err) < 0)
        return -1;
    if (import->build.files + 2 != import->entries) /* 2: root/ and the manifest */
        return fail(err, ERR_BAD_REQUEST,
                    "it has %" PRIu64 " names and %" PRIu64
                    " files; each must be there once, with its folder",
                    import->entries, import->build.files + 2);
    for_each(folder, folders) {
        auto_fd found = tree_open(import->build.root, *folder, O_PATH | O_DIRECTORY);
        if (found < 0)
            return fail(err, ERR_BAD_REQUEST, "'%s' is missing in it, or is no folder", *folder);
    }
    return 0;
}

/* Lists of packages are shown to people: short texts without control characters. */
static int judge_rows(struct json_object *manifest, const char *key, struct json_object **ret_rows,
                      error *err)
{
    struct json_object *rows = json_object_object_get(manifest, key);
    bool is_list = rows && json_object_is_type(rows, json_type_array);
    for (size_t index = 0; is_list && index < json_object_array_length(rows); index++) {
        struct json_object *row = json_object_array_get_idx(rows, index);
        is_list = row && json_object_is_type(row, json_type_object);
        if (!is_list)
            break;
        json_object_object_foreach(row, name, value)
        {
            const char *text =
                json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
            size_t length = text ? strlen(text) : 0;
            if (!text || length > 1000 || text_find_unclean(text, length) < length ||
                strlen(name) > 32)
                is_list = false;
        }
    }
    if (!is_list)
        return fail(err, ERR_BAD_REQUEST, "'%s' of its manifest is no list of packages", key);
    *ret_rows = json_object_get(rows);
    return 0;
}

/* The manifest's keys from the recipe are checked like a recipe, since gloveboxd relies on them. */
static int read_recipe(struct import *import, struct json_object *manifest, error *err)
{
    static const char *const keys[] = { "name", "description", "languages",
                                        "env",  "zygotes",     "leave_out" };
    auto_json recipe = json_object_new_object();
    struct json_object *base = json_object_object_get(manifest, "source");
    for_each(key, keys) {
        struct json_object *value = json_object_object_get(manifest, *key);
        if (value && !(json_object_is_type(value, json_type_string) &&
                       json_object_get_string_len(value) == 0))
            (void) json_object_object_add(recipe, *key, json_object_get(value));
    }
    (void) json_object_object_add(recipe, "base",
                                  base ? json_object_get(base) : json_object_new_string("debian"));
    (void) json_object_object_add(recipe, "packages", json_object_new_array());
    const char *text = json_object_to_json_string_ext(recipe, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE);
    return recipe_parse("manifest.json", text, strlen(text), &import->recipe, err);
}

static int read_manifest(struct import *import, struct json_object **ret_manifest, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    auto_fd unpacked =
        openat(import->build.place, "unpacked", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (unpacked < 0)
        return fail_os(err, "open the folder to unpack in");
    if (tree_read_file(unpacked, "manifest.json", &text, &size, err) < 0)
        return -1;
    if (size > ARCHIVE_MANIFEST_MAX)
        return fail(err, ERR_BAD_REQUEST, "its manifest is larger than 1 MiB");
    struct json_object *manifest = strlen(text) == size ? json_tokener_parse(text) : NULL;
    *ret_manifest = manifest;
    return manifest && json_object_is_type(manifest, json_type_object)
               ? 0
               : fail(err, ERR_BAD_REQUEST, "its manifest is no JSON object");
}

static int check_manifest(struct import *import, struct json_object *manifest, error *err)
{
    struct build *build = &import->build;
    if (read_recipe(import, manifest, err) < 0 ||
        judge_rows(manifest, "packages", &build->packages, err) < 0 ||
        judge_rows(manifest, "python", &build->distributions, err) < 0 ||
        (json_object_object_get(manifest, "npm") &&
         judge_rows(manifest, "npm", &build->npm, err) < 0) ||
        judge_rows(manifest, "approved", &build->approved, err) < 0)
        return -1;
    import->request.recipe = import->recipe;
    build->name = json_object_get_string(build_key(build, "name"));
    build->base = json_object_get_string(build_key(build, "base"));
    build->files = 0;
    if (settle_tree(build, err) < 0 || digest_tree(build, err) < 0)
        return -1;
    struct json_object *digest = json_object_object_get(manifest, "digest");
    if (!digest || strcmp(json_object_get_string(digest), build->digest) != 0)
        return fail(err, ERR_BAD_REQUEST,
                    "its files are not those of its manifest: digest %.19s…, and not %.19s…",
                    build->digest, digest ? json_object_get_string(digest) : "");
    return 0;
}

static int import_in_place(struct import *import, struct json_object **ret_manifest, error *err)
{
    struct build *build = &import->build;
    auto_json manifest = NULL;
    uid_t owner = walls_owner();
    if (mkdirat(build->place, "unpacked", 0755) < 0 ||
        (owner != geteuid() &&
         fchownat(build->place, "unpacked", owner, owner, AT_SYMLINK_NOFOLLOW) < 0))
        return fail_os(err, "make a folder to unpack in");
    int result = -1;
    if (unpack_archive(import, err) == 0 && judge_tree(import, err) == 0)
        result = read_manifest(import, &manifest, err);
    if (result == 0)
        result = check_manifest(import, manifest, err);
    if (result == 0)
        result = tree_remove(build->place, "unpacked", err);
    return result < 0 ? -1 : build_publish(build, ret_manifest, err);
}

int template_import(const char *state, int file, struct json_object **ret_manifest, error *err)
{
    struct import import = { .request = { .state = state }, .file = file };
    struct build *build = &import.build;
    *build = (struct build){ .request = &import.request, .place = -1, .root = -1 };
    if (find_compression(&import, err) < 0)
        return -1;
    auto_fd store = store_open(state, true, err);
    if (store < 0 || store_sweep(store, err) < 0)
        return -1;
    build->store = store;
    auto_fd place = store_begin(store, "import", build->place_name, sizeof build->place_name, err);
    build->place = place;
    int result = place < 0 ? -1 : import_in_place(&import, ret_manifest, err);
    close_fd(&build->root);
    error ignored; /* if this fails too, the next sweep removes it */
    if (result < 0 && place >= 0)
        (void) tree_remove(store, build->place_name, &ignored);
    (void) json_object_put(build->packages);
    (void) json_object_put(build->distributions);
    (void) json_object_put(build->approved);
    (void) json_object_put(import.recipe);
    return result;
}
