/* replace_file.c - see replace_file.h. */
#include "cli/common/replace_file.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int replace_file(const char *path, const char *text, unsigned mode, error *err)
{
    struct stat before;
    auto_text led = realpath(path, NULL);
    path = led ? led : path;
    const char *slash = strrchr(path, '/');
    auto_text fresh = NULL;
    auto_text folder = NULL;
    if (format_text(&fresh, err, "%s.glovebox-new", path) < 0 ||
        format_text(&folder, err, "%.*s", slash ? (int) (slash - path) : 1, slash ? path : ".") <
            0 ||
        make_folder(folder, mode | ((mode & 0444) >> 2), err) < 0)
        return -1;
    bool is_there = stat(path, &before) == 0;
    auto_fd fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return fail_os(err, "make %.150s", fresh);
    size_t size = strlen(text);
    if (fchmod(fd, is_there ? before.st_mode & 0777 : mode) == 0 &&
        write(fd, text, size) == (ssize_t) size && write(fd, "\n", 1) == 1 && fsync(fd) == 0 &&
        rename(fresh, path) == 0)
        return 0;
    (void) fail_os(err, "write %.150s", path);
    (void) unlink(fresh);
    return -1;
}

bool says_yes(const char *question)
{
    char line[16];
    if (!isatty(STDIN_FILENO))
        return false;
    (void) printf("%s [y/N] ", question);
    (void) fflush(stdout);
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}
