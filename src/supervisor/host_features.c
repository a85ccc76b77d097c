/* host_features.c - asks the kernel, by files of /proc and /sys. */
#include "supervisor/host_features.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "model/ids.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Reads decimal numbers; other characters separate them. */
static bool read_numbers(const char *text, unsigned long *ret_numbers, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        text += strcspn(text, "0123456789");
        char *end = NULL;
        errno = 0;
        ret_numbers[index] = strtoul(text, &end, 10);
        if (end == text || errno != 0)
            return false;
        text = end;
    }
    return true;
}

bool host_grants_privileges(void)
{
    if (geteuid() != 0)
        return false;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2] = { 0 };
    if (syscall(SYS_capget, &header, sets) < 0)
        return false;
    static const unsigned needed[] = { CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_KILL };
    for_each(capability, needed)
        if (!(sets[0].effective & 1U << *capability))
            return false;
    char map[256];
    (void) read_text_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof map);
    unsigned long numbers[3]; /* first inside, first outside, how many: user_namespaces(7) */
    return read_numbers(map, numbers, COUNT_OF(numbers)) && numbers[0] == 0 &&
           numbers[2] > HOST_ID_LAST;
}

int host_slots_file(char **ret_path, error *err)
{
    auto_text folder = NULL;
    if (geteuid() == 0) {
        if (format_text(&folder, err, "/run/glovebox") < 0)
            return -1;
    } else {
        if (format_text(&folder, err, "/run/user/%u", geteuid()) < 0)
            return -1;
        bool has_runtime = access(folder, W_OK | X_OK) == 0;
        free(folder);
        folder = NULL;
        if (format_text(&folder, err, has_runtime ? "/run/user/%u/glovebox" : "/tmp/.glovebox-%u",
                        geteuid()) < 0)
            return -1;
    }
    if (make_folder(folder, geteuid() == 0 ? 0755 : 0700, err) < 0)
        return -1;
    struct stat status;
    if (lstat(folder, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return fail(err, ERR_UNAVAILABLE, "'%s' belongs to another user; remove it", folder);
    return format_text(ret_path, err, "%s/slots", folder);
}

bool host_disk_of(const char *folder, unsigned *ret_major, unsigned *ret_minor)
{
    struct stat status;
    if (stat(folder, &status) < 0 || major(status.st_dev) == 0)
        return false;
    *ret_major = major(status.st_dev);
    *ret_minor = minor(status.st_dev);
    char path[96], text[32];
    (void) snprintf(path, sizeof path, "/sys/dev/block/%u:%u/partition", *ret_major, *ret_minor);
    if (access(path, F_OK) < 0)
        return true;
    (void) snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../dev", *ret_major, *ret_minor);
    (void) read_text_at(AT_FDCWD, path, text, sizeof text);
    unsigned long numbers[2];
    if (!read_numbers(text, numbers, COUNT_OF(numbers)))
        return false;
    *ret_major = (unsigned) numbers[0];
    *ret_minor = (unsigned) numbers[1];
    return true;
}
