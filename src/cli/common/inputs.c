/* inputs.c - see inputs.h. */
#include "cli/common/inputs.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/folder_input.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 30 }; /* of one file; larger ones do not fit into a request */

/* File endings and interpreters, with the language's name in templates. */
static const struct {
    const char *ending;
    const char *interpreter;
    const char *language;
} languages[] = {
    { ".py", "python", "python" }, { ".sh", "sh", "bash" },        { ".bash", "bash", "bash" },
    { ".c", NULL, "c" },           { ".js", "node", "node" },      { ".R", "Rscript", "r" },
    { ".cpp", NULL, "cpp" },       { ".cc", NULL, "cpp" },         { ".pl", "perl", "perl" },
    { ".r", NULL, "r" },           { ".mjs", NULL, "node" },       { ".cjs", NULL, "node" },
    { ".rb", "ruby", "ruby" },     { ".go", NULL, "go" },          { ".rs", NULL, "rust" },
    { ".ts", NULL, "typescript" }, { ".ipynb", NULL, "notebook" },
};

int read_to_end(int fd, const char *name, char **ret_data, size_t *ret_size, error *err)
{
    struct stat status;
    size_t room = fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size < INPUT_MAX
                      ? (size_t) status.st_size + 2
                      : 65536;
    auto_text data = malloc(room);
    size_t used = 0;
    for (;;) {
        if (!data)
            return fail(err, ERR_INTERNAL, "out of memory for '%s'", name);
        ssize_t got = read(fd, data + used, room - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_os(err, "cannot read '%s'", name);
        if (got == 0)
            break;
        used += (size_t) got;
        if (used > INPUT_MAX)
            return fail(err, ERR_TOO_LARGE, "'%s' is larger than 1 GiB; give a smaller file", name);
        if (room - used > 1)
            continue;
        char *grown = realloc(data, room * 2);
        if (!grown)
            return fail(err, ERR_INTERNAL, "out of memory for '%s'", name);
        data = grown;
        room *= 2;
    }
    data[used] = '\0';
    *ret_data = take_text(&data);
    *ret_size = used;
    return 0;
}

int read_input_file(const char *path, char **ret_data, size_t *ret_size, error *err)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return fail(err, ERR_NOT_FOUND, "cannot read '%s': %s; %s", path, strerrordesc_np(errno),
                    errno == EACCES ? "make it readable, or ask its owner" : "check the name");
    if (S_ISDIR(status.st_mode))
        return fail(err, ERR_BAD_REQUEST, "'%s' is a folder; give a file", path);
    return read_to_end(file, path, ret_data, ret_size, err);
}

int read_expectation(const char *path, char **ret_json, error *err)
{
    size_t size = 0;
    if (read_input_file(path, ret_json, &size, err) < 0)
        return under(err, "--expect");
    if (size == 0 || memchr(*ret_json, '\0', size))
        return fail(err, ERR_BAD_REQUEST,
                    "--expect: '%s' is no JSON text; see docs/output-validation.md", path);
    return 0;
}

static bool ends_with(const char *text, size_t size, const char *ending)
{
    size_t length = strlen(ending);
    return size > length && strncmp(text + size - length, ending, length) == 0;
}

const char *language_of_file(const char *path, const char *content, size_t size)
{
    for_each(row, languages)
        if (ends_with(path, strlen(path), row->ending))
            return row->language;
    if (size < 3 || content[0] != '#' || content[1] != '!')
        return NULL;
    /* "#!/usr/bin/env python3" and "#!/bin/bash -e": the first word, or the one after env. */
    char line[128];
    (void) snprintf(line, sizeof line, "%.*s", (int) strcspn(content, "\n"), content + 2);
    char *save = NULL;
    for (char *word = strtok_r(line, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
        const char *name = text_last_name(word);
        if (strcmp(name, "env") == 0 || name[0] == '-')
            continue;
        for_each(row, languages)
            if (row->interpreter && strncmp(name, row->interpreter, strlen(row->interpreter)) == 0)
                return row->language;
        return NULL;
    }
    return NULL;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

/* A target must be a plain path below /workspace. */
static int take_target(const char *target, char **ret_path, error *err)
{
    static const char workspace[] = "/workspace/";
    const char *path = target;
    if (strncmp(path, workspace, strlen(workspace)) == 0)
        path += strlen(workspace);
    bool climbs = strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 || strstr(path, "/../") ||
                  ends_with(path, strlen(path), "/..");
    if (!*path || *path == '/' || climbs || ends_with(path, strlen(path), "/"))
        return fail(err, ERR_BAD_REQUEST,
                    "'%s' is no place for a file; give a path beneath /workspace", target);
    return format_text(ret_path, err, "%s", path);
}

/* `--file .` and `--file data:/workspace`: the contents of the folder go into /workspace itself. */
static bool is_workspace(const char *target)
{
    static const char *const names[] = { ".", "..", "/", "/workspace", "/workspace/" };
    for_each(name, names)
        if (strcmp(target, *name) == 0)
            return true;
    return false;
}

/* Names may contain colons: the longest prefix that is a file is the source. */
int read_file_argument(const char *text, glb_file *files, size_t room, size_t *count, error *err)
{
    auto_text source = NULL;
    auto_text wanted = NULL;
    auto_text path = NULL;
    auto_text content = NULL;
    const char *target = NULL;
    if (format_text(&source, err, "%s", text) < 0)
        return -1;
    bool read_only = !is_file(source) && ends_with(source, strlen(source), ":ro");
    if (read_only)
        source[strlen(source) - 3] = '\0';
    if (!is_file(source)) {
        for (char *colon = strrchr(source, ':'); colon; colon = strrchr(source, ':')) {
            target = text + (colon - source) + 1;
            *colon = '\0';
            if (is_file(source))
                break;
        }
    }
    for (size_t end = strlen(source); end > 1 && source[end - 1] == '/';) /* data/ is data */
        source[--end] = '\0';
    if (format_text(&wanted, err, "%s", target ? target : text_last_name(source)) < 0)
        return -1;
    if (read_only && target)
        wanted[strlen(wanted) - 3] = '\0';
    bool is_whole = is_folder(source) && is_workspace(wanted);
    if (!is_whole && take_target(wanted, &path, err) < 0)
        return under(err, "--file");
    if (is_folder(source)) {
        const struct folder_input input = { .folder = source,
                                            .target = is_whole ? "" : path,
                                            .read_only = read_only };
        return folder_read(&input, files, room, count, err) < 0 ? under(err, "--file") : 0;
    }
    size_t size = 0;
    if (*count == room)
        return fail(err, ERR_BAD_REQUEST, "more than %zu files; give an archive", room);
    if (read_input_file(source, &content, &size, err) < 0)
        return under(err, "--file");
    files[(*count)++] = (glb_file){ .path = take_text(&path),
                                    .content = take_text(&content),
                                    .length = size,
                                    .read_only = read_only };
    return 0;
}

int read_code(const char *path, const char *language, struct code_input *ret_code, error *err)
{
    bool is_file = strcmp(path, "-") != 0;
    *ret_code = (struct code_input){ .name = is_file ? path : "code" };
    int result = is_file
                     ? read_input_file(path, &ret_code->text, &ret_code->size, err)
                     : read_to_end(STDIN_FILENO, "stdin", &ret_code->text, &ret_code->size, err);
    if (result < 0)
        return -1;
    ret_code->language =
        language ? language : language_of_file(ret_code->name, ret_code->text, ret_code->size);
    return 0;
}
