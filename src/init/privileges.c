/* privileges.c - ids, capabilities and resource limits of the calling process. Raw system calls, so
 * that no library does more than is written here. */
#include "init/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/table.h"

/* Raw calls change only the calling thread; there is no other. */
int take_id(uid_t id, error *err)
{
    uid_t user[3];
    gid_t group[3];
    /* EPERM: for an ordinary user setgroups(2) is denied in this user namespace. */
    if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
        return fail_os(err, "leave all groups");
    if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
        return fail_os(err, "take id %u", (unsigned) id);
    if (getresuid(&user[0], &user[1], &user[2]) < 0 ||
        getresgid(&group[0], &group[1], &group[2]) < 0)
        return fail_os(err, "look at the ids");
    for (unsigned i = 0; i < 3; i++)
        if (user[i] != id || group[i] != id)
            return fail(err, ERR_INTERNAL, "id %u was asked for, %u and %u came", (unsigned) id,
                        (unsigned) user[i], (unsigned) group[i]);
    return 0;
}

int limit_resources(const struct resource_limits *limits, error *err)
{
    /* RLIMIT_CORE is 1, not 0: a core_pattern that starts with a pipe runs a helper on the host
     * even at 0, and does not at 1 (core(5); CVE-2025-4598, apport's CVEs). */
    const struct {
        __rlimit_resource_t resource;
        rlim_t max;
        const char *name;
    } rows[] = {
        { RLIMIT_CORE, 1, "core" },
        { RLIMIT_NOFILE, limits->open_files, "open files" },
        { RLIMIT_NPROC, limits->processes + 4, "processes" },
        { RLIMIT_FSIZE, limits->disk_bytes, "file size" },
        { RLIMIT_MEMLOCK, 8 << 20, "locked memory" },
        { RLIMIT_MSGQUEUE, 64 << 10, "message queues" },
        { RLIMIT_SIGPENDING, 1024, "queued signals" },
        { RLIMIT_RTPRIO, 0, "real-time priority" },
        { RLIMIT_NICE, 0, "nice" },
        { RLIMIT_STACK, 64 << 20, "stack" },
    };
    for_each(row, rows) {
        struct rlimit now;
        if (getrlimit(row->resource, &now) < 0)
            return fail_os(err, "read the limit of %s", row->name);
        rlim_t max = row->max < now.rlim_max ? row->max : now.rlim_max;
        rlim_t soft = max;
        if (row->resource == RLIMIT_STACK && soft > (8 << 20))
            soft = 8 << 20;
        struct rlimit wanted = { .rlim_cur = soft, .rlim_max = max };
        if (setrlimit(row->resource, &wanted) < 0)
            return fail_os(err, "limit %s to %llu", row->name, (unsigned long long) max);
    }
    return 0;
}

int set_no_new_privs(error *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail_os(err, "set no_new_privs");
    return 0;
}

static int check_capabilities_are_gone(error *err)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &header, sets) < 0)
        return fail_os(err, "read capabilities");
    for (unsigned i = 0; i < 2; i++)
        if (sets[i].effective || sets[i].permitted || sets[i].inheritable)
            return fail(err, ERR_INTERNAL, "capabilities are left after they were dropped");
    return 0;
}

int drop_privileges(error *err)
{
    enum {
        LOCKED = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED
    };
    if (prctl(PR_SET_SECUREBITS, LOCKED, 0, 0, 0) < 0)
        return fail_os(err, "lock the secure bits");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return fail_os(err, "clear ambient capabilities");
    for (unsigned i = 0; i < 64; i++) {
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL) /* past the last one that this kernel knows */
            break;
        return fail_os(err, "drop capability %u from the bounding set", i);
    }
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { 0 };
    if (syscall(SYS_capset, &header, none) < 0)
        return fail_os(err, "drop capabilities");
    return check_capabilities_are_gone(err);
}

int join_groups(const int *procs, unsigned count, error *err)
{
    for (unsigned i = 0; i < count; i++)
        if (write(procs[i], "0", 1) != 1)
            return errno == ENODEV ? fail(err, ERR_UNAVAILABLE,
                                          "control group %u was removed by another service: give "
                                          "it this one's /run/glovebox, or groups of its own",
                                          i)
                                   : fail_os(err, "join control group %u", i);
    return 0;
}

int set_oom_score(void)
{
    auto_fd score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return score >= 0 && write(score, "900", 3) == 3 ? 0 : -1;
}
