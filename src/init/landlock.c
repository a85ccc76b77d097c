/* landlock.c - an allow-list of files, which holds even if a mount is wrong. The constants of later
 * ABIs are defined here, since the headers of Debian 12 end at ABI 2. */
#include "base/cleanup.h"
#include "base/table.h"
#include "init/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

/* struct landlock_ruleset_attr of ABI 6; older kernels are given a shorter size. */
struct ruleset {
    uint64_t files;
    uint64_t network; /* ABI 4: bind and connect of TCP */
    uint64_t scoped;  /* ABI 6: abstract Unix sockets; the pid namespace confines signals */
};

enum { SCOPE_ABSTRACT_SOCKETS = 1, TCP_BIND_AND_CONNECT = 3 };

#define READ \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE                                                                                     \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                              \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |  \
     LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)
#define MAKE_DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

static const struct place {
    const char *path;
    uint64_t access;
} places[] = {
    { "/", READ },
    { "/workspace", READ | WRITE },
    { "/tmp", READ | WRITE },
    { "/home/user", READ | WRITE },
    { "/run", READ | WRITE },
    { "/dev/shm", READ | WRITE },
    { "/dev", READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE },
    { "/dev/pts", READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV },
    { "/proc", READ }, /* no oom_score_adj, no id maps, no /proc/self/mem */
};

static uint64_t known_files(int abi)
{
    uint64_t all = READ | WRITE | MAKE_DEVICES | LANDLOCK_ACCESS_FS_IOCTL_DEV;
    if (abi < 2)
        all &= ~LANDLOCK_ACCESS_FS_REFER;
    if (abi < 3)
        all &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi < 5)
        all &= ~LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return all;
}

static int allow(int rules, const struct place *place, uint64_t known, error *err)
{
    auto_fd folder = open(place->path, O_PATH | O_CLOEXEC);
    if (folder < 0)
        return fail_os(err, "open '%s' for Landlock", place->path);
    struct landlock_path_beneath_attr rule = { .allowed_access = place->access & known,
                                               .parent_fd = folder };
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return fail_os(err, "allow '%s' by Landlock", place->path);
    return 0;
}

int ask_landlock(int *ret_abi, error *err)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    *ret_abi = version > 0 ? (int) version : 0;
    if (version < 0 && errno != ENOSYS && errno != EOPNOTSUPP)
        return fail_os(err, "ask for Landlock");
    return 0;
}

int limit_files(bool has_loopback, int *ret_abi, error *err)
{
    if (ask_landlock(ret_abi, err) < 0)
        return -1;
    int version = *ret_abi;
    if (version == 0) /* not built in, or not switched on */
        return 0;
    struct ruleset ruleset = {
        .files = known_files(*ret_abi),
        .network = has_loopback ? 0 : TCP_BIND_AND_CONNECT,
        .scoped = SCOPE_ABSTRACT_SOCKETS,
    };
    size_t size = version >= 6 ? sizeof ruleset : version >= 4 ? 16 : 8;
    auto_fd rules = (int) syscall(SYS_landlock_create_ruleset, &ruleset, size, 0);
    if (rules < 0)
        return fail_os(err, "create Landlock rules");
    for_each(place, places)
        if (allow(rules, place, ruleset.files, err) < 0)
            return -1;
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return fail_os(err, "restrict files by Landlock");
    return 0;
}
