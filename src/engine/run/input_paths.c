/* input_paths.c - checks the paths below /workspace in a request: well-formed, and each only
 * once. */
#include "engine/run/run_request.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { PART_MAX = 255, DEPTH_MAX = 64 };

static int check_part(const char *path, const char *part, size_t size, error *err)
{
    if (size == 0 || size > PART_MAX || (size == 1 && part[0] == '.') ||
        (size == 2 && part[0] == '.' && part[1] == '.'))
        return fail(err, ERR_BAD_REQUEST,
                    "path '%.100s' is not plain: use names of 1 to %d bytes with '/' between, "
                    "relative to /workspace, without '.' and '..'",
                    path, PART_MAX);
    if (memchr(part, '\t', size) || memchr(part, '\n', size))
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' has a tab or line end", path);
    return 0;
}

int request_check_path(const char *path, size_t size, error *err)
{
    static const char workspace[] = "/workspace/";
    if (size > AGENT_PATH_MAX || text_find_unclean(path, size) < size)
        return fail(err, ERR_BAD_REQUEST, "path '%.*s' is longer than %d bytes or no plain text",
                    text_head(path, 80), path, AGENT_PATH_MAX);
    if (path[0] == '/')
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' is absolute; %s", path,
                    strncmp(path, workspace, sizeof workspace - 1) == 0
                        ? "leave out '/workspace/'"
                        : "name it below /workspace");
    size_t parts = 0;
    for (const char *part = path;; parts++) {
        const char *slash = memchr(part, '/', size - (size_t) (part - path));
        size_t length = slash ? (size_t) (slash - part) : size - (size_t) (part - path);
        if (check_part(path, part, length, err) < 0)
            return -1;
        if (!slash)
            break;
        part = slash + 1;
    }
    if (parts > DEPTH_MAX)
        return fail(err, ERR_BAD_REQUEST, "path '%.100s' is deeper than %d folders", path,
                    DEPTH_MAX);
    return 0;
}

/* Compares parts: '/' sorts before all other bytes, so that a folder comes right before its
 * contents. */
static int compare_paths(const void *one, const void *other)
{
    const char *left = *(const char *const *) one;
    const char *right = *(const char *const *) other;
    for (; *left && *left == *right; left++, right++)
        ;
    int first = *left == '/' ? 1 : (unsigned char) *left + (*left ? 1 : 0);
    int second = *right == '/' ? 1 : (unsigned char) *right + (*right ? 1 : 0);
    return first - second;
}

int request_check_places(const struct run_request *request, error *err)
{
    const char *paths[REQUEST_FILES_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < request->file_count; i++)
        paths[count++] = request->files[i].path;
    if (request->has_code && request->filename)
        paths[count++] = request->filename;
    qsort(paths, count, sizeof *paths, compare_paths);
    for (size_t i = 1; i < count; i++) {
        size_t length = strlen(paths[i - 1]);
        if (strcmp(paths[i - 1], paths[i]) == 0)
            return fail(err, ERR_BAD_REQUEST,
                        "path '%.*s' is given twice in 'files' and 'filename'; give each file a "
                        "path of its own",
                        text_head(paths[i], 80), paths[i]);
        if (strncmp(paths[i - 1], paths[i], length) == 0 && paths[i][length] == '/')
            return fail(err, ERR_BAD_REQUEST,
                        "path '%.*s' is a file, and '%.*s' would lie in it; rename one of them",
                        text_head(paths[i - 1], 60), paths[i - 1], text_head(paths[i], 60),
                        paths[i]);
    }
    return 0;
}
