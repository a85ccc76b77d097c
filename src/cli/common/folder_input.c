/* folder_input.c - see folder_input.h. */
#include "cli/common/folder_input.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/common/inputs.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int folder_entry(const char *folder, const char **ret_name, error *err)
{
    static const char *const names[] = { "__main__.py", "main.py", "index.js",
                                         "main.js",     "main.sh", "main.R",
                                         "main.cpp",    "main.c",  "main.pl" };
    for_each(name, names) {
        auto_text path = NULL;
        struct stat status;
        if (format_text(&path, err, "%s/%s", folder, *name) < 0)
            return -1;
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
            *ret_name = *name;
            return 0;
        }
    }
    return fail(
        err, ERR_NOT_FOUND,
        "'%.80s' is a folder without main.py, index.js or main.sh; name the file to run, and "
        "give the folder with --file",
        folder);
}

static bool is_left_out(const FTSENT *entry)
{
    static const char *const names[] = { "__pycache__", "node_modules", "venv" };
    for_each(name, names)
        if (strcmp(entry->fts_name, *name) == 0)
            return true;
    return entry->fts_name[0] == '.';
}

static int by_name(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static int add(const struct folder_input *input, const FTSENT *entry, glb_file *ret_file,
               error *err)
{
    auto_text path = NULL;
    auto_text content = NULL;
    size_t size = 0;
    const char *below = entry->fts_path + strlen(input->folder);
    below += strspn(below, "/");
    if (input->without && strcmp(below, input->without) == 0)
        return 0;
    if (format_text(&path, err, "%s%s%s", input->target, *input->target ? "/" : "", below) < 0 ||
        read_input_file(entry->fts_path, &content, &size, err) < 0)
        return -1;
    *ret_file = (glb_file){ .path = take_text(&path),
                            .content = take_text(&content),
                            .length = size,
                            .read_only = input->read_only };
    return 1;
}

/* Where the files go. */
struct file_list {
    glb_file *files;
    size_t room, count;
};

static int add_all(const struct folder_input *input, FTS *walk, struct file_list *list, error *err)
{
    for (FTSENT *entry; (errno = 0, entry = fts_read(walk)) != NULL;) {
        if (entry->fts_level > 0 && entry->fts_info != FTS_DP && is_left_out(entry)) {
            (void) fts_set(walk, entry, FTS_SKIP);
            continue;
        }
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
            return fail(err, ERR_NOT_FOUND, "cannot read '%.100s': %s", entry->fts_path,
                        strerrordesc_np(entry->fts_errno));
        if (entry->fts_info != FTS_F)
            continue;
        if (list->count == list->room)
            return fail(err, ERR_BAD_REQUEST,
                        "'%.80s' makes it more than %zu files; give an archive", input->folder,
                        list->room);
        int added = add(input, entry, &list->files[list->count], err);
        if (added < 0)
            return -1;
        list->count += (size_t) added;
    }
    return errno == 0 ? 0 : fail_os(err, "cannot read '%.100s'", input->folder);
}

int folder_read(const struct folder_input *input, glb_file *files, size_t room, size_t *count,
                error *err)
{
    char *paths[] = { (char *) (uintptr_t) input->folder, NULL };
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    if (!walk)
        return fail_os(err, "cannot read '%.100s'", input->folder);
    struct file_list list = { .files = files, .room = room, .count = *count };
    int result = add_all(input, walk, &list, err);
    *count = list.count; /* also after a failure: the caller frees what was read */
    (void) fts_close(walk);
    return result;
}
