/* launch.c - plans everything before fork(), so that the newborn only arranges descriptors and
 * execs. */
#include "client/launch.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "client/groups.h"
#include "client/paths.h"
#include "client/reach.h"
#include "client/zygotes.h"
#include "model/ids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum {
    TEMPLATES_MOST = 16, /* as SPAWN_TEMPLATES_MOST */
    FIRST_FD = 3,
    PRIVATE_SLOTS = 4,
    FOLDER_MOST = 1024,
    FDS_MOST = 2 * LAUNCH_FDS_MOST + TEMPLATES_MOST + 8,
};

/* One program to start: its arguments, and the descriptors it gets as 3, 4, 5 … */
struct program {
    char *path;
    size_t argument_count;
    char **arguments; /* owned, NULL after the last */
    size_t fd_count;
    int fds[FDS_MOST]; /* borrowed */
    size_t opened_count;
    int opened[FDS_MOST]; /* those of them that are ours to close */
    uid_t becomes;        /* user and group, 0: stays who we are */
    int death_signal;
    int log;
};

static void program_done(struct program *program)
{
    free(program->path);
    for (size_t index = 0; index < program->argument_count; index++)
        free(program->arguments[index]);
    free(program->arguments);
    for (size_t index = 0; index < program->opened_count; index++)
        (void) close(program->opened[index]);
}

#define auto_program __attribute__((cleanup(program_done))) struct program

static int add_argument(struct program *program, error *err, const char *format, ...) PRINTF(3, 4);

static int add_argument(struct program *program, error *err, const char *format, ...)
{
    size_t size = (program->argument_count + 2) * sizeof *program->arguments;
    char **longer = realloc(program->arguments, size);
    if (!longer)
        return fail(err, ERR_INTERNAL, "out of memory");
    program->arguments = longer;
    va_list values;
    va_start(values, format);
    char *text = NULL;
    int length = vasprintf(&text, format, values);
    va_end(values);
    if (length < 0)
        return fail(err, ERR_INTERNAL, "out of memory");
    program->arguments[program->argument_count++] = text;
    program->arguments[program->argument_count] = NULL;
    return 0;
}

static int add_pair(struct program *program, const char *flag, const char *value, error *err)
{
    return add_argument(program, err, "%s", flag) < 0 ? -1
                                                      : add_argument(program, err, "%s", value);
}

/* Hands a descriptor over and names it on the command line. */
static int add_fd(struct program *program, const char *flag, int fd, error *err)
{
    if (program->fd_count == FDS_MOST)
        return fail(err, ERR_INTERNAL, "too many descriptors for '%s'", program->path);
    if (add_argument(program, err, "%s", flag) < 0 ||
        add_argument(program, err, "%zu", FIRST_FD + program->fd_count) < 0)
        return -1;
    program->fds[program->fd_count++] = fd;
    return 0;
}

/* Can somebody who is not root come to this folder? */
static bool others_can_enter(const char *path)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int) sizeof part)
        return false;
    for (;;) {
        struct stat status;
        if (stat(part, &status) < 0 || !(status.st_mode & S_IXOTH))
            return false;
        char *slash = strrchr(part, '/');
        if (!slash || slash == part)
            return true;
        *slash = '\0';
    }
}

/* gloveboxd is not root when we are. A folder that lies below one that it cannot enter (/root,
 * mostly) is opened here and named through the descriptor. Appends to `text`. */
static int readable_folder(struct program *program, const char *folder, char *text, size_t size,
                           error *err)
{
    size_t used = strlen(text);
    int length;
    if (program->becomes == 0 || access(folder, F_OK) < 0 || others_can_enter(folder)) {
        length = snprintf(text + used, size - used, "%s", folder);
    } else {
        if (program->fd_count == FDS_MOST)
            return fail(err, ERR_INTERNAL, "too many descriptors for '%s'", program->path);
        int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return fail_os(err, "open folder '%s'", folder);
        program->opened[program->opened_count++] = fd;
        length =
            snprintf(text + used, size - used, "/proc/self/fd/%zu", FIRST_FD + program->fd_count);
        program->fds[program->fd_count++] = fd;
    }
    if (length < 0 || (size_t) length >= size - used)
        return fail(err, ERR_BAD_REQUEST, "the path '%.80s…' is too long", folder);
    return 0;
}

struct templates {
    size_t count;
    char names[TEMPLATES_MOST][NAME_MAX + 1];
    char *folder; /* STATE/templates */
};

static void templates_done(struct templates *templates)
{
    free(templates->folder);
}

#define auto_templates __attribute__((cleanup(templates_done))) struct templates

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

static bool template_is_whole(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return name[0] != '.' &&
           snprintf(path, sizeof path, "%s/%s/manifest.json", folder, name) < (int) sizeof path &&
           access(path, R_OK) == 0;
}

static int find_templates(const char *state, const char *first, struct templates *ret, error *err)
{
    if (path_of_templates(state, &ret->folder, err) < 0)
        return -1;
    DIR *entries = opendir(ret->folder);
    if (!entries && errno != ENOENT)
        return fail_os(err, "open folder '%s'", ret->folder);
    const struct dirent *entry;
    size_t found = 0;
    while (entries && (entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): our own */
        if (template_is_whole(ret->folder, entry->d_name) && found++ < COUNT_OF(ret->names))
            (void) snprintf(ret->names[ret->count++], sizeof *ret->names, "%s", entry->d_name);
    if (entries)
        (void) closedir(entries);
    if (found > ret->count)
        return fail(
            err, ERR_UNAVAILABLE,
            "%zu templates are built in %s, %d can be served; run: glovebox template remove", found,
            ret->folder, TEMPLATES_MOST);
    if (ret->count == 0)
        return fail(err, ERR_UNAVAILABLE,
                    "no template is built (looked in %s); run: glovebox template build python",
                    ret->folder);
    qsort(ret->names, ret->count, sizeof *ret->names, compare_names);
    for (size_t index = 1; first && index < ret->count; index++)
        if (strcmp(ret->names[index], first) == 0) {
            memmove(ret->names[1], ret->names[0], index * sizeof *ret->names);
            (void) snprintf(ret->names[0], sizeof *ret->names, "%s", first);
        }
    return 0;
}

bool launch_has_template(const char *state, const char *name)
{
    error unused;
    auto_text folder = NULL;
    return path_of_templates(state, &folder, &unused) == 0 && template_is_whole(folder, name);
}

/* Reads the kernel's decimal numbers, whatever stands between them. */
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

/* Root in a container may lack what it takes: the capability, or ids that we could map. */
static bool can_be_privileged(void)
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
    auto_fd file = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    char map[256] = "";
    ssize_t got = file < 0 ? -1 : read(file, map, sizeof map - 1);
    map[got > 0 ? got : 0] = '\0';
    unsigned long numbers[3]; /* first inside, first outside, how many: user_namespaces(7) */
    return read_numbers(map, numbers, COUNT_OF(numbers)) && numbers[0] == 0 &&
           numbers[2] > HOST_ID_EGRESS;
}

/* The file in which instances on this host lock their slots. User ids and control groups follow
 * from slots, so all instances of one user must agree on it: no variable moves it. */
static int slots_file(char **ret_path, error *err)
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
        return fail(err, ERR_UNAVAILABLE, "'%s' belongs to somebody else; remove it", folder);
    return format_text(ret_path, err, "%s/slots", folder);
}

/* Which disk carries the templates: rates of reading and writing are set for a whole disk, never
 * for a partition (cgroup-v2.rst, io.max). 0:0 if it is no disk. */
static int add_disk(struct program *program, const char *folder, error *err)
{
    struct stat status;
    if (stat(folder, &status) < 0 || major(status.st_dev) == 0)
        return 0;
    unsigned disk_major = major(status.st_dev), disk_minor = minor(status.st_dev);
    char path[96], text[32] = "";
    (void) snprintf(path, sizeof path, "/sys/dev/block/%u:%u/partition", disk_major, disk_minor);
    if (access(path, F_OK) == 0) {
        (void) snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../dev", disk_major, disk_minor);
        auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
        text[got > 0 ? got : 0] = '\0';
        unsigned long numbers[2];
        if (!read_numbers(text, numbers, COUNT_OF(numbers)))
            return 0;
        disk_major = (unsigned) numbers[0];
        disk_minor = (unsigned) numbers[1];
    }
    if (add_argument(program, err, "--disk-major") < 0 ||
        add_argument(program, err, "%u", disk_major) < 0 ||
        add_argument(program, err, "--disk-minor") < 0)
        return -1;
    return add_argument(program, err, "%u", disk_minor);
}

/* A daemon that lasts keeps warmed interpreters; for one run they would cost more than they save.
 */
static int add_zygotes(struct program *program, const char *folder, const char *name, error *err)
{
    auto_text manifest = NULL;
    struct zygote_sets sets;
    if (asprintf(&manifest, "%s/%s/manifest.json", folder, name) < 0)
        return fail(err, ERR_SYSTEM, "no memory for a path");
    if (zygote_sets_read(manifest, &sets, err) < 0)
        return -1;
    for (size_t i = 0; i < sets.count; i++)
        if (add_pair(program, "--zygote", sets.modules[i], err) < 0)
            return -1;
    return 0;
}

/* What both programs are told of this machine. */
struct surroundings {
    const struct templates *templates;
    struct group_places places;
    bool privileged;
};

static int plan_spawner(struct program *program, const struct launch_plan *plan,
                        const struct surroundings *here, int socket, error *err)
{
    auto_text init = NULL;
    auto_text filter = NULL;
    auto_text loopback_filter = NULL;
    auto_text slots = NULL;
    auto_text python = NULL;
    error no_python;
    if (path_of_program("glovebox-spawner", &program->path, err) < 0 ||
        path_of_program("glovebox-init", &init, err) < 0 ||
        path_of_data("seccomp/default.bpf", &filter, err) < 0 ||
        path_of_data("seccomp/loopback.bpf", &loopback_filter, err) < 0 ||
        slots_file(&slots, err) < 0)
        return -1;
    if (add_argument(program, err, "%s", program->path) < 0 ||
        add_fd(program, "--daemon", socket, err) < 0 ||
        add_pair(program, "--init", init, err) < 0 ||
        add_pair(program, "--filter", filter, err) < 0 ||
        add_pair(program, "--filter", loopback_filter, err) < 0 ||
        add_pair(program, "--slots-file", slots, err) < 0 ||
        add_argument(program, err, "--slots") < 0 ||
        add_argument(program, err, "%u", plan->slots ? plan->slots : PRIVATE_SLOTS) < 0)
        return -1;
    bool has_zygotes = !plan->private && path_of_python(&python, &no_python) == 0;
    if (has_zygotes && add_pair(program, "--python", python, err) < 0)
        return -1;
    for (size_t index = 0; index < here->places.count; index++)
        if (add_pair(program, "--group", here->places.argument[index], err) < 0)
            return -1;
    const struct templates *templates = here->templates;
    for (size_t index = 0; index < templates->count; index++)
        if (add_argument(program, err, "--template") < 0 ||
            add_argument(program, err, "%s/%s/root", templates->folder, templates->names[index]) <
                0 ||
            (has_zygotes &&
             add_zygotes(program, templates->folder, templates->names[index], err) < 0))
            return -1;
    if (add_disk(program, templates->folder, err) < 0)
        return -1;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables here */
    const char *left_out = getenv("GLOVEBOX_LEAVE_OUT");
    if (left_out && *left_out && add_pair(program, "--leave-out", left_out, err) < 0)
        return -1; /* a spawner that is no test build refuses this option */
    return here->privileged ? 0 : add_argument(program, err, "--unprivileged");
}

static int plan_policies(struct program *program, const char *state, error *err)
{
    auto_text folders = NULL;
    if (path_of_policies_of(state, &folders, err) < 0)
        return -1;
    char text[FOLDER_MOST] = "";
    char *save = NULL;
    for (char *folder = strtok_r(folders, ":", &save); folder;
         folder = strtok_r(NULL, ":", &save)) {
        size_t used = strlen(text);
        if (used > 0)
            (void) snprintf(text + used, sizeof text - used, ":");
        if (readable_folder(program, folder, text, sizeof text, err) < 0)
            return -1;
    }
    return add_pair(program, "--policies", text, err);
}

/* STATE/daemon; where STATE is somebody else's (templates of the system, used by a person), the
 * person's own: receipts are kept in any case. */
static int make_daemon_folder(const char *state, char **ret_folder, error *err)
{
    auto_text above = NULL;
    auto_text folder = NULL;
    if (path_of_state(state, &above, err) < 0 || format_text(&folder, err, "%s/daemon", above) < 0)
        return -1;
    bool is_made = make_folder(folder, 0700, err) == 0 && access(folder, W_OK | X_OK) == 0;
    if (!is_made && !can_be_privileged()) {
        free(folder);
        free(above);
        folder = above = NULL;
        if (path_of_own_state(&above, err) < 0 || format_text(&folder, err, "%s/daemon", above) < 0)
            return -1;
        is_made = make_folder(folder, 0700, err) == 0 && access(folder, W_OK | X_OK) == 0;
    }
    if (!is_made)
        return fail_os(err, "use '%s' for the log of receipts; give another --state", folder);
    *ret_folder = take_text(&folder);
    return 0;
}

/* It belongs to gloveboxd, whose user is not the one who keeps the templates. */
int launch_state_folder(const char *state, char **ret_folder, error *err)
{
    auto_text folder = NULL;
    if (make_daemon_folder(state, &folder, err) < 0)
        return -1;
    if (can_be_privileged() && lchown(folder, HOST_ID_DAEMON, HOST_ID_DAEMON) < 0)
        return fail_os(err, "give '%s' to gloveboxd", folder);
    *ret_folder = take_text(&folder);
    return 0;
}

static int plan_state(struct program *program, const char *state, error *err)
{
    auto_text folder = NULL;
    if (launch_state_folder(state, &folder, err) < 0)
        return -1;
    char text[FOLDER_MOST] = "";
    if (readable_folder(program, folder, text, sizeof text, err) < 0)
        return -1;
    return add_pair(program, "--state", text, err);
}

/* The tables of system calls, for gloveboxd to name them in receipts by their hash. */
static int plan_filters(struct program *program, error *err)
{
    static const char *const names[] = { "default", "loopback" };
    for_each(name, names) {
        auto_text path = NULL;
        char file[64];
        (void) snprintf(file, sizeof file, "seccomp/%s.bpf", *name);
        if (path_of_data(file, &path, err) < 0)
            return -1;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return fail_os(err, "open '%s'", path);
        program->opened[program->opened_count++] = fd;
        if (program->fd_count == FDS_MOST)
            return fail(err, ERR_INTERNAL, "too many descriptors for '%s'", program->path);
        if (add_argument(program, err, "--filter") < 0 ||
            add_argument(program, err, "%s=%zu", *name, FIRST_FD + program->fd_count) < 0)
            return -1;
        program->fds[program->fd_count++] = fd;
    }
    return 0;
}

/* How the log of receipts is kept; gloveboxd checks the values. */
static int plan_log(struct program *program, const struct launch_plan *plan, error *err)
{
    const char *const pairs[][2] = { { "--log-sync", plan->log_sync },
                                     { "--log-keep", plan->log_keep },
                                     { "--log-witness", plan->log_witness } };
    for_each(pair, pairs)
        if ((*pair)[1] && add_pair(program, (*pair)[0], (*pair)[1], err) < 0)
            return -1;
    return 0;
}

static int plan_daemon(struct program *program, const struct launch_plan *plan,
                       const struct templates *templates, int socket, error *err)
{
    if (path_of_program("gloveboxd", &program->path, err) < 0 ||
        add_argument(program, err, "%s", program->path) < 0 ||
        add_fd(program, "--spawner", socket, err) < 0)
        return -1;
    for (size_t index = 0; index < plan->connection_count; index++)
        if (add_fd(program, "--connection", plan->connections[index], err) < 0)
            return -1;
    for (size_t index = 0; index < plan->listen_count; index++)
        if (add_fd(program, "--listen-fd", plan->listens[index], err) < 0)
            return -1;
    if (plan_policies(program, plan->state, err) < 0)
        return -1;
    for (size_t index = 0; index < templates->count; index++) {
        char folder[FOLDER_MOST], text[FOLDER_MOST] = "";
        if (snprintf(folder, sizeof folder, "%s/%s", templates->folder, templates->names[index]) >=
            (int) sizeof folder)
            return fail(err, ERR_BAD_REQUEST, "the path of template %s is too long",
                        templates->names[index]);
        if (readable_folder(program, folder, text, sizeof text, err) < 0 ||
            add_argument(program, err, "--template") < 0 ||
            add_argument(program, err, "%s=%s", templates->names[index], text) < 0)
            return -1;
    }
    if ((plan->settings && add_pair(program, "--settings", plan->settings, err) < 0) ||
        (plan->control > 0 && add_fd(program, "--control", plan->control, err) < 0))
        return -1;
    if (add_argument(program, err, "--owner") < 0 ||
        add_argument(program, err, "%u", geteuid()) < 0 ||
        (plan->no_keys && add_argument(program, err, "--no-keys") < 0) ||
        plan_filters(program, err) < 0 || plan_log(program, plan, err) < 0 ||
        (plan->private && add_argument(program, err, "--private") < 0))
        return -1;
    return plan_state(program, plan->state, err);
}

/* ---- the newborn: only system calls from here on, another thread may have held any lock ---- */

_Noreturn static void die(int log, const char *what, const char *name)
{
    const char *cause = strerrordesc_np(errno);
    (void) dprintf(log, "glovebox: %s %s: %s\n", what, name, cause ? cause : "unknown error");
    _exit(EXIT_FAILURE);
}

/* Puts stdin, stdout, stderr and the wanted descriptors at their numbers and closes all others. */
static void arrange_descriptors(const struct program *program, int nothing)
{
    int high[FDS_MOST];
    enum { ABOVE = 128 };
    int log = fcntl(program->log, F_DUPFD, ABOVE);
    nothing = fcntl(nothing, F_DUPFD, ABOVE);
    if (log < 0 || nothing < 0)
        die(program->log, "arrange descriptors of", program->path);
    for (size_t index = 0; index < program->fd_count; index++) {
        high[index] = fcntl(program->fds[index], F_DUPFD, ABOVE);
        if (high[index] < 0)
            die(log, "arrange descriptors of", program->path);
    }
    if (dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        die(log, "arrange descriptors of", program->path);
    for (size_t index = 0; index < program->fd_count; index++)
        if (dup2(high[index], FIRST_FD + (int) index) < 0)
            die(2, "arrange descriptors of", program->path);
    if (syscall(SYS_close_range, FIRST_FD + program->fd_count, ~0U, 0) < 0)
        die(2, "close descriptors of", program->path);
}

_Noreturn static void become(const struct program *program, int nothing, pid_t launcher)
{
    arrange_descriptors(program, nothing);
    int file = open(program->path, O_PATH | O_CLOEXEC);
    (void) setsid(); /* Ctrl-C at the terminal is for the launcher alone */
    (void) umask(0022);
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): after fork */
    for (int number = 1; number < SIGRTMIN; number++)
        (void) signal(number, SIG_DFL);
    if (chdir("/") < 0)
        die(2, "enter / for", program->path);
    uid_t id = program->becomes;
    if (id != 0 &&
        (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
        die(2, "drop root for", program->path);
    /* After the ids, since changing them clears it: prctl(2). */
    if (program->death_signal != 0) {
        if (prctl(PR_SET_PDEATHSIG, program->death_signal) < 0)
            die(2, "tie to the launcher", program->path);
        if (getppid() != launcher)
            _exit(EXIT_FAILURE); /* it died before we could be told */
    }
#ifdef GLOVEBOX_LEAVE_OUT
    char **environment = environ; /* for the test that leaves this wall out */
#else
    char *environment[] = { NULL };
#endif
    /* By path, so that it has its name in ps; by descriptor where the path is closed to its user.
     */
    (void) execve(program->path, program->arguments, environment);
    if (errno == EACCES && file >= 0)
        (void) syscall(SYS_execveat, file, "", program->arguments, environment, AT_EMPTY_PATH);
    die(2, "start", program->path);
}

static int start_program(struct program *program, pid_t *ret_pid, int *ret_pidfd, error *err)
{
    program->arguments[program->argument_count] = NULL;
    auto_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return fail_os(err, "open /dev/null");
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return fail_os(err, "start '%s'", program->path);
    if (pid == 0)
        become(program, nothing, launcher);
    int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        error cause;
        (void) fail_os(&cause, "watch '%s'", program->path);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        *err = cause;
        return -1;
    }
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return 0;
}

static void wait_for_waker(struct launch *launch)
{
    while (launch->waker > 0 && waitpid(launch->waker, NULL, 0) < 0 && errno == EINTR)
        ;
    launch->waker = 0;
}

/* A file that the program reads, opened here: it may be closed to the program's user. */
static int add_file(struct program *program, const char *option, const char *path, bool is_named,
                    error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return fail_os(err, "open '%s', named by %s", path, option);
    program->opened[program->opened_count++] = fd;
    if (!is_named)
        return add_fd(program, option, fd, err);
    if (program->fd_count == FDS_MOST)
        return fail(err, ERR_INTERNAL, "too many descriptors for '%s'", program->path);
    program->fds[program->fd_count++] = fd;
    if (add_argument(program, err, "%s", option) < 0)
        return -1;
    return add_argument(program, err, "%zu=%s", FIRST_FD + program->fd_count - 1, path);
}

/* glovebox-egress, at the socket that is kept for the next one, should it end. */
int launch_egress(const struct launch_plan *plan, struct launch *launch, error *err)
{
    auto_program egress = { .death_signal = SIGKILL,
                            .becomes = can_be_privileged() ? HOST_ID_EGRESS : 0 };
    close_fd(&launch->egress_pidfd);
    launch->egress_pidfd = -1;
    egress.log = launch->log >= 0 ? launch->log : plan->log;
    if (path_of_program("glovebox-egress", &egress.path, err) < 0 ||
        add_argument(&egress, err, "%s", egress.path) < 0 ||
        add_fd(&egress, "--daemon", launch->egress_socket, err) < 0 ||
        (plan->resolver && add_pair(&egress, "--resolver", plan->resolver, err) < 0) ||
        (plan->secrets && add_file(&egress, "--secrets", plan->secrets, true, err) < 0) ||
        (plan->ca_file && add_file(&egress, "--ca-file", plan->ca_file, false, err) < 0))
        return -1;
    return start_program(&egress, &launch->egress, &launch->egress_pidfd, err);
}

/* To what runs already; that ends with it, should it fail. */
static int add_egress(const struct launch_plan *plan, struct launch *launch, error *err)
{
    if (launch_egress(plan, launch, err) == 0)
        return 0;
    error cause = *err;
    (void) kill(launch->daemon, SIGTERM);
    (void) launch_end(launch, deadline_in(5000));
    *err = cause;
    return -1;
}

int launch_start(const struct launch_plan *plan, struct launch *ret_launch, error *err)
{
    struct launch launch = {
        .spawner_pidfd = -1, .daemon_pidfd = -1, .egress_pidfd = -1, .egress_socket = -1, .log = -1
    };
    auto_program spawner = { 0 };
    auto_program daemon = { .death_signal = plan->private ? SIGKILL : SIGTERM };
    auto_templates templates = { 0 };
    struct surroundings here = { .templates = &templates, .privileged = can_be_privileged() };
    daemon.becomes = here.privileged ? HOST_ID_DAEMON : 0;
    groups_find(&here.places);

    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket between spawner and daemon");
    auto_fd spawner_end = pair[0];
    auto_fd daemon_end = pair[1];
    if (find_templates(plan->state, plan->first_template, &templates, err) < 0 ||
        (here.privileged && check_reach(templates.folder, HOST_ID_BASE, err) < 0))
        return -1;
    if (plan->private)
        launch.waker = groups_wake(&here.places);
    auto_fd egress_end = -1;
    auto_fd way_end = -1;
    if (plan->network) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return fail_os(err, "make a socket between daemon and egress");
        egress_end = pair[0];
        way_end = pair[1];
    }
    if (plan_spawner(&spawner, plan, &here, spawner_end, err) < 0 ||
        plan_daemon(&daemon, plan, &templates, daemon_end, err) < 0 ||
        (plan->network && add_fd(&daemon, "--egress", way_end, err) < 0)) {
        wait_for_waker(&launch);
        return -1;
    }

    auto_fd log =
        plan->log > 0 ? fcntl(plan->log, F_DUPFD_CLOEXEC, 3) : memfd_create("log", MFD_CLOEXEC);
    if (log < 0)
        (void) fail_os(err, "make a log");
    spawner.log = daemon.log = log;
    if (log < 0 || start_program(&spawner, &launch.spawner, &launch.spawner_pidfd, err) < 0) {
        wait_for_waker(&launch);
        return -1;
    }
    if (start_program(&daemon, &launch.daemon, &launch.daemon_pidfd, err) < 0) {
        close_fd(&spawner_end);
        close_fd(&daemon_end); /* the spawner sees this and leaves */
        spawner_end = daemon_end = -1;
        (void) launch_end(&launch, deadline_in(5000));
        return -1;
    }
    if (plan->log <= 0)
        launch.log = take_fd(&log);
    *ret_launch = launch;
    if (!plan->network)
        return 0;
    ret_launch->egress_socket = take_fd(&egress_end);
    return add_egress(plan, ret_launch, err);
}

/* Waits for one process; kills it when the time is over. Returns whether it went by itself. */
static bool wait_for_program(pid_t *pid, int *pidfd, deadline end)
{
    bool by_itself = true;
    if (*pid > 0) {
        struct pollfd watched = { .fd = *pidfd, .events = POLLIN };
        int ready;
        do
            ready = poll(&watched, 1, (int) deadline_left_ms(end));
        while (ready < 0 && errno == EINTR);
        if (ready <= 0) {
            by_itself = false;
            (void) kill(*pid, SIGKILL);
        }
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
            ;
        *pid = 0;
    }
    close_fd(pidfd);
    *pidfd = -1;
    return by_itself;
}

bool launch_end(struct launch *launch, deadline end)
{
    bool daemon = wait_for_program(&launch->daemon, &launch->daemon_pidfd, end);
    /* The spawner leaves after the daemon: it may need its own few seconds to remove what stands.
     */
    deadline later = deadline_in(deadline_left_ms(end) + 6000);
    bool spawner = wait_for_program(&launch->spawner, &launch->spawner_pidfd, later);
    close_fd(&launch->egress_socket); /* it leaves with gloveboxd */
    launch->egress_socket = -1;
    (void) wait_for_program(&launch->egress, &launch->egress_pidfd, later);
    wait_for_waker(launch);
    close_fd(&launch->log);
    launch->log = -1;
    return daemon && spawner;
}

/* A line that tells of no failure: the daemon's diary, or an order that came too late to matter. */
static bool is_no_cause(const char *line)
{
    static const char *const beside[] = { " notice ", " debug ", "glovebox-spawner: refused: " };
    for_each(text, beside)
        if (strstr(line, *text))
            return true;
    return false;
}

/* Looks for the first line of the log with this beginning. `ret_last` gets the last line of all
 * that may tell of a failure. */
static bool find_complaint(const struct launch *launch, const char *mark, char *ret_line,
                           char *ret_last, size_t size)
{
    char text[8192] = "";
    ssize_t got = launch->log < 0 ? -1 : pread(launch->log, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (is_no_cause(line))
            continue;
        (void) snprintf(ret_last, size, "%s", line);
        if (strncmp(line, mark, strlen(mark)) == 0) {
            (void) snprintf(ret_line, size, "%s", line + strlen(mark));
            return true;
        }
    }
    return false;
}

bool launch_has_complained(const struct launch *launch, error *err)
{
    char line[sizeof err->text], last[sizeof err->text];
    if (!find_complaint(launch, "glovebox-spawner: ", line, last, sizeof line))
        return false;
    (void) fail(err, ERR_UNAVAILABLE, "%s", line);
    return true;
}

/* The spawner is asked first: when it has gone, the daemon only says so. */
int launch_cause(const struct launch *launch, error *err)
{
    static const char *const marks[] = { "glovebox-spawner: ", "glovebox: " };
    char line[sizeof err->text], last[sizeof err->text] = "";
    for_each(mark, marks)
        if (find_complaint(launch, *mark, line, last, sizeof line))
            return fail(err, ERR_UNAVAILABLE, "%s", line);
    if (last[0])
        return fail(err, ERR_UNAVAILABLE, "gloveboxd ended: %s", last);
    return fail(err, ERR_UNAVAILABLE, "gloveboxd ended without a word; run: glovebox doctor");
}
