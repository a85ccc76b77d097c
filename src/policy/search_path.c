/* search_path.c - see search_path.h. */
#include "policy/search_path.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *search_path_next(const char *path, char directory[static PATH_MAX])
{
    while (path && *path) {
        size_t length = strcspn(path, ":");
        bool fits = length > 0 && length < PATH_MAX;
        if (fits) {
            memcpy(directory, path, length);
            directory[length] = '\0';
        }
        path += length + (path[length] == ':');
        if (fits)
            return path;
    }
    return NULL;
}

int search_path_read(int fd, const char *label, char **ret_text, size_t *ret_length, error *err)
{
    struct stat about;
    if (fstat(fd, &about) < 0)
        return fail_os(err, "look at '%s'", label);
    if (!S_ISREG(about.st_mode))
        return fail(err, ERR_BAD_REQUEST, "'%s' is no regular file; give a policy file", label);
    auto_text text = malloc(POLICY_FILE_MAX + 1);
    if (!text)
        return fail(err, ERR_INTERNAL, "out of memory");
    ssize_t length = read_at(fd, text, POLICY_FILE_MAX + 1, 0);
    if (length < 0)
        return fail_os(err, "read '%s'", label);
    if (length > POLICY_FILE_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' is larger than 64 KiB; make it smaller", label);
    *ret_text = take_text(&text);
    *ret_length = (size_t) length;
    return 0;
}

int search_path_open(const char *path, const char *name, const char *what,
                     char label[static PATH_MAX], error *err)
{
    char directory[PATH_MAX];
    for (const char *rest = search_path_next(path, directory); rest;
         rest = search_path_next(rest, directory)) {
        int length = snprintf(label, PATH_MAX, "%s/%s.yaml", directory, name);
        if (length < 0 || length >= PATH_MAX)
            continue;
        int fd = open(label, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0)
            return fd;
        if (errno != ENOENT && errno != ENOTDIR)
            return fail_os(err, "open %s '%s'", what, label);
    }
    const char *slash = strrchr(name, '/');
    return fail(err, ERR_NOT_FOUND, "there is no %s '%s'; see glovebox policy %s", what,
                slash ? slash + 1 : name, strcmp(what, "set") == 0 ? "sets" : "list");
}
