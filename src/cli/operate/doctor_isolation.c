/* doctor_isolation.c - tries each wall of the kernel by building it in a child process. */
#include "cli/operate/doctor.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 15, LANDLOCK_ABI_FULL = 6 };

/* Reads a small file of /proc as one line; gives "" if it does not exist. */
static void read_line(const char *path, char *text, size_t size)
{
    (void) read_text_at(AT_FDCWD, path, text, size);
    text[strcspn(text, "\n")] = '\0';
}

static bool file_says(const char *path, const char *expected)
{
    char text[64];
    read_line(path, text, sizeof text);
    return strcmp(text, expected) == 0;
}

static int write_line(const char *path, const char *text, error *err)
{
    auto_fd file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t) strlen(text))
        return fail_os(err, "write %s", path);
    return 0;
}

/* Enters a new user namespace with one id mapped; the other trials then need no privilege. */
static int enter_user_namespace(error *err)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWUSER) < 0)
        return fail_os(err, "make a user namespace");
    char map[64];
    (void) snprintf(map, sizeof map, "0 %u 1", user);
    if (write_line("/proc/self/uid_map", map, err) < 0)
        return -1;
    if (write_line("/proc/self/setgroups", "deny", err) < 0)
        return -1;
    (void) snprintf(map, sizeof map, "0 %u 1", group);
    return write_line("/proc/self/gid_map", map, err);
}

static int unshare_inside(int flags, const char *what, error *err)
{
    if (enter_user_namespace(err) < 0)
        return -1;
    return unshare(flags) < 0 ? fail_os(err, "make %s", what) : 0;
}

/* Ends a check of a wall that every sandbox needs. */
static void conclude(struct finding *finding, int result, const error *err, const char *fix)
{
    if (result == 0) {
        found_ok(finding, "%s", "");
        return;
    }
    found_weak(finding, HEALTH_MISSING, "%s", err->text);
    suggest(finding, "%s", fix);
}

static void check_trial(struct finding *finding, int (*trial)(error *), const char *fix)
{
    error err = { 0 };
    int result = try_in_child(trial, &err);
    conclude(finding, result, &err, fix);
}

void check_kernel(struct finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers */
    if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2) {
        found_weak(finding, HEALTH_DEGRADED, "the kernel's version cannot be read");
        suggest(finding, "see uname -r");
    } else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)) {
        found_weak(finding, HEALTH_DEGRADED, "this is Linux %s; glovebox is tested from 5.15",
                   name.release);
        suggest(finding, "install a newer kernel: apt-get install linux-image-amd64");
    } else {
        found_ok(finding, "Linux %s", name.release);
    }
}

void check_privilege(struct finding *finding)
{
    if (geteuid() == 0) {
        found_ok(finding, "root");
        return;
    }
    found_weak(
        finding, HEALTH_DEGRADED,
        "you are user %u: sandboxes share your own user id (wall unique_uid), and limits hold "
        "only where control groups are delegated to you",
        geteuid());
    suggest(finding, "sudo glovebox …, or let root run glovebox serve");
}

void check_user_namespaces(struct finding *finding)
{
    error err = { 0 };
    int result = try_in_child(enter_user_namespace, &err);
    const char *fix =
        "use a kernel with CONFIG_USER_NS=y; in a container, run it with --privileged or "
        "--security-opt seccomp=unconfined";
    if (file_says("/proc/sys/user/max_user_namespaces", "0"))
        fix = "sysctl user.max_user_namespaces=15000 (and in /etc/sysctl.d to keep it)";
    else if (file_says("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        fix = "sysctl kernel.unprivileged_userns_clone=1 (and in /etc/sysctl.d to keep it)";
    else if (file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        fix = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run glovebox as root";
    conclude(finding, result, &err, fix);
}

/* Mounts a bounded file system, makes it the root with pivot_root, and unmounts the old root. */
static int try_mounts(error *err)
{
    if (unshare_inside(CLONE_NEWNS, "a mount namespace", err) < 0)
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail_os(err, "make mounts private");
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=64,mode=755") < 0)
        return fail_os(err, "mount a tmpfs");
    if (chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return fail_os(err, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return fail_os(err, "let go of the old root");
    if (access("/proc", F_OK) == 0)
        return fail(err, ERR_SYSTEM, "the old root is still there after pivot_root");
    return 0;
}

void check_mounts(struct finding *finding)
{
    check_trial(finding, try_mounts,
                "an AppArmor or SELinux rule, or a container's own filter, forbids mounts in user "
                "namespaces: allow them for glovebox (container: --privileged)");
}

static int try_own_processes(error *err)
{
    if (getpid() != 1)
        return fail(err, ERR_SYSTEM, "the first process of a pid namespace is %d", getpid());
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail_os(err, "make mounts private");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return fail_os(err, "mount a /proc of its own (subset=pid)");
    if (access("/proc/1/stat", R_OK) < 0 || access("/proc/sys", F_OK) == 0)
        return fail(err, ERR_SYSTEM, "the new /proc shows the wrong things");
    return 0;
}

static int try_process_ids(error *err)
{
    if (unshare_inside(CLONE_NEWNS | CLONE_NEWPID, "a pid namespace", err) < 0)
        return -1;
    return try_in_child(try_own_processes, err);
}

void check_process_ids(struct finding *finding)
{
    check_trial(
        finding, try_process_ids,
        "the kernel lets a user namespace mount /proc only where an unmasked one is visible: in "
        "a container, run it with --privileged or --security-opt systempaths=unconfined");
}

static int try_network(error *err)
{
    if (unshare_inside(CLONE_NEWNET, "a network namespace", err) < 0)
        return -1;
    struct if_nameindex *interfaces = if_nameindex();
    if (!interfaces)
        return fail_os(err, "list network interfaces");
    unsigned others = 0;
    for (struct if_nameindex *each = interfaces; each->if_index; each++)
        if (strcmp(each->if_name, "lo") != 0)
            others++;
    if_freenameindex(interfaces);
    /* Modules for tunnels add a device to every namespace; it is down and leads nowhere. */
    auto_fd probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq loopback = { .ifr_name = "lo" };
    if (probe >= 0 && ioctl(probe, SIOCGIFFLAGS, &loopback) == 0 && (loopback.ifr_flags & IFF_UP))
        return fail(err, ERR_SYSTEM, "lo is up in a new network namespace (%u others)", others);
    return 0;
}

void check_network(struct finding *finding)
{
    check_trial(finding, try_network,
                "use a kernel with CONFIG_NET_NS=y; check user.max_net_namespaces");
}

static int try_ipc(error *err)
{
    return unshare_inside(CLONE_NEWIPC, "an IPC namespace", err);
}

void check_ipc(struct finding *finding)
{
    check_trial(finding, try_ipc,
                "use a kernel with CONFIG_IPC_NS=y; check user.max_ipc_namespaces");
}

static int try_host_name(error *err)
{
    if (unshare_inside(CLONE_NEWUTS, "a UTS namespace", err) < 0)
        return -1;
    if (sethostname("glovebox", strlen("glovebox")) < 0)
        return fail_os(err, "set the host name inside");
    return 0;
}

void check_host_name(struct finding *finding)
{
    check_trial(finding, try_host_name,
                "use a kernel with CONFIG_UTS_NS=y; check user.max_uts_namespaces");
}

static int try_group_view(error *err)
{
    return unshare_inside(CLONE_NEWCGROUP, "a cgroup namespace", err);
}

void check_group_view(struct finding *finding)
{
    check_trial(finding, try_group_view,
                "use a kernel with CONFIG_CGROUPS=y; check user.max_cgroup_namespaces");
}

/* Installs a filter that fails getppid with EDOM and allows everything else. Returns the listener,
 * if `flags` ask for one. */
static int install_filter(unsigned flags, error *err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = COUNT_OF(code), .filter = code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail_os(err, "set no_new_privs");
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return result < 0 ? fail_os(err, "install a seccomp filter") : (int) result;
}

static int try_filter(error *err)
{
    if (install_filter(0, err) < 0)
        return -1;
    if (syscall(SYS_getppid) != -1 || errno != EDOM)
        return fail(err, ERR_SYSTEM, "a filtered call was let through");
    return 0;
}

void check_seccomp(struct finding *finding)
{
    check_trial(finding, try_filter, "use a kernel with CONFIG_SECCOMP_FILTER=y");
}

static int try_listener(error *err)
{
    auto_fd listener = install_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, err);
    return listener < 0 ? -1 : 0;
}

void check_refusals(struct finding *finding)
{
    error err = { 0 };
    int result = try_in_child(try_listener, &err);
    if (result == 0) {
        found_ok(finding, "%s", "");
        return;
    }
    found_weak(finding, HEALTH_DEGRADED,
               "%s: refused calls still fail, but are not listed in `denials`", err.text);
    suggest(finding, "do not run glovebox itself under a filter with a listener (a container's); "
                     "needs Linux 5.0");
}

static int landlock_abi(void)
{
    return (int) syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* A rule set that allows nothing must refuse a file that could be read before. */
static int try_landlock(error *err)
{
    struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
    auto_fd ruleset = (int) syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (ruleset < 0)
        return fail_os(err, "make a Landlock rule set");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return fail_os(err, "restrict itself by Landlock");
    auto_fd file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file >= 0 || errno != EACCES)
        return fail(err, ERR_SYSTEM, "Landlock let a forbidden file be read");
    return 0;
}

void check_landlock(struct finding *finding)
{
    error err = { 0 };
    if (try_in_child(try_landlock, &err) == 0) {
        int abi = landlock_abi();
        found_ok(finding,
                 abi < LANDLOCK_ABI_FULL
                     ? "ABI %d: files; signals and abstract sockets are held by namespaces alone"
                     : "ABI %d",
                 abi);
        return;
    }
    found_weak(finding, HEALTH_DEGRADED, "%s; the mount namespace holds files alone", err.text);
    if (err.os == EOPNOTSUPP)
        suggest(finding,
                "Landlock is built in but off: add landlock to lsm= on the kernel's command line");
    else
        suggest(finding, "use a kernel from 5.13 with CONFIG_SECURITY_LANDLOCK=y");
}

void check_resource_capability(struct finding *finding)
{
    if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE, 0, 0, 0) == 1 && geteuid() == 0) {
        found_ok(finding, "CAP_SYS_RESOURCE");
        return;
    }
    error err = { 0 };
    if (try_in_child(try_landlock, &err) == 0) {
        found_ok(finding, "held by Landlock: no program can write its oom score");
        return;
    }
    found_weak(
        finding, HEALTH_DEGRADED,
        "neither CAP_SYS_RESOURCE nor Landlock: a program in a sandbox can lower its own oom "
        "score back to that of glovebox");
    suggest(finding, geteuid() == 0
                         ? "add the capability to this container or unit: --cap-add SYS_RESOURCE, "
                           "or CapabilityBoundingSet="
                         : "run as root");
}
