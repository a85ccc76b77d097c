/* doctor_report.c - the folder belongs to the daemon: no link in it is followed, and the report is
 * written to a new file, which is then renamed. */
#include "cli/operate/doctor_report.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char fresh[] = "self-test.json.new";

static int write_fresh(int folder, const char *json, size_t size)
{
    (void) unlinkat(folder, fresh, 0);
    auto_fd file =
        openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file >= 0 && write(file, json, size) == (ssize_t) size ? 0 : -1;
}

void self_test_keep(const char *json, size_t size)
{
    error unused;
    auto_text state = NULL;
    auto_text path = NULL;
    if (path_of_state(NULL, &state, &unused) < 0 ||
        format_text(&path, &unused, "%s/daemon", state) < 0)
        return;
    auto_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && write_fresh(folder, json, size) == 0)
        (void) renameat(folder, fresh, folder, "self-test.json");
}
