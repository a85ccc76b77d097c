/* usage.c - limits memory and processes of the sandbox where no control group does: a timer reads
 * /proc, and above the limit processes are killed, the largest first, as the kernel would.
 *
 * A look reads the resident memory of each process, which counts shared pages once for each of
 * them. Only when that sum exceeds the limit is each process's own share read (smaps_rollup, which
 * walks its page tables), for a bounded part of the time. Only numbers of the kernel are read, and
 * no path of a program is resolved: fstatat() on /proc/PID/fd/N leads to the inode itself. */
#include "init/init.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOK_US = 20000,          /* between two looks while a program runs */
    GROWTH_LOOK_US = 5000,    /* while it grows so that a few more looks see the limit passed */
    IDLE_LOOK_US = 100000,    /* while every interpreter waits */
    LATE_LOOK_US = 50000,     /* the most that a look is put off for what looks cost */
    FILES_LOOK_US = 40000,    /* between two looks at descriptors */
    LOOK_PART = 40,           /* of the time is spent on looks: one part in so many */
    FILES_PART = 4,           /* the same, for descriptors: reached with thousands of them */
    SHARES_PART = 50,         /* the same, for smaps_rollup */
    ROWS_MAX = 1024,          /* with more processes than this, all are killed together */
    INODES_MAX = 4096,        /* anonymous files that are recognized when they are seen again */
    SOON_WRITTEN = 128 << 20, /* more than is written to memory within GROWTH_LOOK_US */
    PEAK_STEP = 8 << 20,      /* a peak is looked up when the sum grows by a quarter and this */
};

struct row {
    pid_t pid;
    uint64_t resident;
    uint64_t anonymous_files; /* first seen in this process */
    uint64_t share;           /* of memory: its own pages, and its part of shared ones */
    bool was_killed;
};

static struct {
    int64_t look_us, files_us, shares_us; /* not before these moments */
    unsigned count;                       /* of rows */
    uint64_t resident, tasks, unlisted;
    uint64_t last_sum;    /* of the look before */
    uint64_t shares_sum;  /* sum at the last look at shares */
    uint64_t shares_room; /* what was left then */
    dev_t memory_device;  /* the device number of anonymous files */
    bool was_put_off;     /* the next look, once */
    bool files_were_put_off;
    struct row rows[ROWS_MAX], before[ROWS_MAX];
    unsigned before_count;
    ino_t inodes[INODES_MAX];
    unsigned inode_count;
} watch;

static int find_memory_device(error *err)
{
    struct stat status;
    auto_fd file = memfd_create("usage", MFD_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0)
        return fail_os(err, "make an anonymous file");
    watch.memory_device = status.st_dev;
    return 0;
}

int bound_usage(struct sandbox *sandbox, const struct agent_bound *bound, error *err)
{
    if (watch.memory_device == 0 && find_memory_device(err) < 0)
        return -1;
    if (sandbox->processes <= 0)
        sandbox->processes = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sandbox->processes < 0)
        return fail_os(err, "open /proc");
    sandbox->usage.bound = *bound;
    return 0;
}

static bool is_watched(const struct sandbox *sandbox)
{
    return sandbox->usage.bound.memory_bytes > 0 || sandbox->usage.bound.processes > 0;
}

/* Reads a small file of /proc/PID. */
static bool read_text(const struct sandbox *sandbox, pid_t pid, const char *name, char *text,
                      size_t size)
{
    char path[64];
    (void) snprintf(path, sizeof path, "%d/%s", (int) pid, name);
    auto_fd file = openat(sandbox->processes, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static void count_process(const struct sandbox *sandbox, pid_t pid)
{
    char text[256];
    struct stat tasks;
    uint64_t resident = 0;
    if (read_text(sandbox, pid, "statm", text, sizeof text)) {
        char *second = strchr(text, ' ');
        resident = second ? strtoull(second, NULL, 10) * (uint64_t) sysconf(_SC_PAGESIZE) : 0;
    }
    (void) snprintf(text, sizeof text, "%d/task", (int) pid);
    if (fstatat(sandbox->processes, text, &tasks, 0) == 0 && tasks.st_nlink > 2)
        watch.tasks += tasks.st_nlink - 2; /* "." and ".." */
    watch.resident += resident;
    if (watch.count < ROWS_MAX)
        watch.rows[watch.count++] = (struct row){ .pid = pid, .resident = resident };
    else
        watch.unlisted += resident;
}

/* Calls `each` with every number that a folder of /proc lists. */
static void walk_numbers(const struct sandbox *sandbox, int folder, void *context,
                         void (*each)(const struct sandbox *, void *context, unsigned long number))
{
    _Alignas(struct listed) char entries[4096];
    for (;;) {
        long got = syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (got <= 0)
            return;
        for_each_listed(entry, entries, got) {
            if (entry->name[0] >= '0' && entry->name[0] <= '9')
                each(sandbox, context, strtoul(entry->name, NULL, 10));
        }
    }
}

static void on_process(const struct sandbox *sandbox, void *context, unsigned long number)
{
    (void) context;
    if (number > 1)
        count_process(sandbox, (pid_t) number);
}

static bool is_new_inode(ino_t inode)
{
    for (unsigned i = 0; i < watch.inode_count; i++)
        if (watch.inodes[i] == inode)
            return false;
    if (watch.inode_count < INODES_MAX)
        watch.inodes[watch.inode_count++] = inode;
    return true;
}

struct files_of {
    struct row *row;
    int folder;
};

static void on_descriptor(const struct sandbox *sandbox, void *context, unsigned long number)
{
    const struct files_of *files = context;
    char name[24];
    struct stat status;
    (void) sandbox;
    (void) snprintf(name, sizeof name, "%lu", number);
    if (fstatat(files->folder, name, &status, 0) == 0 && S_ISREG(status.st_mode) &&
        status.st_dev == watch.memory_device && is_new_inode(status.st_ino))
        files->row->anonymous_files += (uint64_t) status.st_blocks * 512;
}

/* Anonymous files (memfd_create(2)) that are written and not mapped are resident in no process. */
static void count_files(const struct sandbox *sandbox, struct row *row)
{
    char path[64];
    (void) snprintf(path, sizeof path, "%d/fd", (int) row->pid);
    auto_fd folder = openat(sandbox->processes, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct files_of files = { .row = row, .folder = folder };
    if (folder >= 0)
        walk_numbers(sandbox, folder, &files, on_descriptor);
}

/* The row of this process in the last look; zeros if it had none. */
static const struct row *row_before(pid_t pid)
{
    static const struct row none;
    for (unsigned i = 0; i < watch.before_count; i++)
        if (watch.before[i].pid == pid)
            return &watch.before[i];
    return &none;
}

/* The sum of anonymous files; as it was last read, if reading it again would take too much time. */
static uint64_t sum_files(const struct sandbox *sandbox)
{
    uint64_t sum = 0;
    int64_t begin_us = now_us();
    bool is_due = begin_us >= watch.files_us;
    watch.inode_count = 0;
    for (unsigned i = 0; i < watch.count; i++) {
        if (is_due)
            count_files(sandbox, &watch.rows[i]);
        else
            watch.rows[i].anonymous_files = row_before(watch.rows[i].pid)->anonymous_files;
        sum += watch.rows[i].anonymous_files;
    }
    int64_t wait_us = (now_us() - begin_us) * FILES_PART;
    if (is_due) {
        watch.files_us = begin_us + (wait_us > FILES_LOOK_US ? wait_us : FILES_LOOK_US);
        watch.files_were_put_off = false;
    }
    return sum;
}

/* Memory of files and shared memory segments, mapped or not, without the inputs that gloveboxd has
 * written before the program began. */
static uint64_t sum_shared(const struct sandbox *sandbox)
{
    struct shm_info segments;
    uint64_t disk = sandbox->measured.disk_bytes;
    uint64_t sum = disk > sandbox->usage.inputs_bytes ? disk - sandbox->usage.inputs_bytes : 0;
    if (shmctl(0, SHM_INFO, (struct shmid_ds *) (void *) &segments) >= 0)
        sum += (segments.shm_rss + segments.shm_swp) * (uint64_t) sysconf(_SC_PAGESIZE);
    return sum + sum_files(sandbox);
}

static uint64_t kilobytes_of(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* The memory charged to this process: its share, or, if that cannot be read (PR_SET_DUMPABLE), all
 * of its resident memory. */
static uint64_t share_of(const struct sandbox *sandbox, struct row *row)
{
    char text[4096];
    if (!read_text(sandbox, row->pid, "smaps_rollup", text, sizeof text)) {
        row->share = errno == EACCES || errno == EPERM ? row->resident : 0;
        return 0;
    }
    uint64_t mapped = kilobytes_of(text, "\nPss_Shmem:");
    row->share = kilobytes_of(text, "\nPss_Anon:") + kilobytes_of(text, "\nSwapPss:") + mapped;
    return mapped;
}

/* Files and segments are counted once, mapped or not: of the two sums, the larger is used. */
static uint64_t sum_shares(const struct sandbox *sandbox, uint64_t shared)
{
    uint64_t own = watch.unlisted, mapped = 0;
    for (unsigned i = 0; i < watch.count; i++) {
        struct row *row = &watch.rows[i];
        uint64_t of_it = share_of(sandbox, row);
        mapped += of_it;
        own += row->share - of_it;
        row->share += row->anonymous_files;
    }
    return own + (mapped > shared ? mapped : shared);
}

/* Shares are read at once when the sum has grown by half of what was left. Else as often as their
 * cost allows: pages that stop being shared do not change the sum. */
static bool shares_are_due(const struct sandbox *sandbox, uint64_t sum)
{
    bool is_affordable = now_us() >= watch.shares_us;
    if (sum <= sandbox->usage.bound.memory_bytes)
        return is_affordable && sum > watch.shares_sum + watch.shares_sum / 4 + PEAK_STEP;
    return is_affordable || sum > watch.shares_sum + watch.shares_room / 2;
}

static struct row *largest_row(void)
{
    struct row *found = NULL;
    for (unsigned i = 0; i < watch.count; i++)
        if (!watch.rows[i].was_killed && watch.rows[i].share > (found ? found->share : 0))
            found = &watch.rows[i];
    return found;
}

/* gloveboxd is told before a process ends of it. A process that is still dying is killed again, but
 * counted once. */
static void kill_largest(struct sandbox *sandbox, uint64_t used)
{
    uint64_t left = used, kills = sandbox->usage.used.memory_kills;
    while (left > sandbox->usage.bound.memory_bytes) {
        struct row *row = largest_row();
        if (!row) {
            (void) kill(-1, SIGKILL); /* files alone are too large, or processes too many */
            kills++;
            break;
        }
        row->was_killed = true;
        left -= row->share < left ? row->share : left;
        kills += !row_before(row->pid)->was_killed;
    }
    sandbox->usage.used.memory_kills = kills;
    tell_usage(sandbox);
    for (unsigned i = 0; i < watch.count; i++)
        if (watch.rows[i].was_killed)
            (void) kill(watch.rows[i].pid, SIGKILL);
}

static void raise_peak(uint64_t *peak, uint64_t now)
{
    if (now > *peak)
        *peak = now;
}

static void look_at_shares(struct sandbox *sandbox, uint64_t sum, uint64_t shared)
{
    uint64_t limit = sandbox->usage.bound.memory_bytes;
    int64_t begin_us = now_us();
    uint64_t used = sum_shares(sandbox, shared);
    watch.shares_sum = sum;
    watch.shares_room = used < limit ? limit - used : 0;
    watch.shares_us = begin_us + (now_us() - begin_us) * SHARES_PART;
    raise_peak(&sandbox->usage.used.memory_peak_bytes, used);
    if (limit > 0 && used > limit)
        kill_largest(sandbox, used);
}

static void look_at_tasks(struct sandbox *sandbox)
{
    struct usage *usage = &sandbox->usage;
    bool is_full = usage->bound.processes > 0 && watch.tasks >= usage->bound.processes;
    raise_peak(&usage->used.processes_peak, watch.tasks);
    usage->used.processes_full += is_full && !usage->processes_were_full;
    usage->processes_were_full = is_full;
}

static int64_t next_look_us(const struct sandbox *sandbox, uint64_t sum, int64_t cost_us)
{
    uint64_t limit = sandbox->usage.bound.memory_bytes;
    uint64_t grown = sum > watch.last_sum ? sum - watch.last_sum : 0;
    uint64_t room = sum < limit ? limit - sum : watch.shares_room;
    int64_t wait_us = limit > 0 && grown > room / 8 ? GROWTH_LOOK_US : LOOK_US;
    if (wait_us < cost_us * LOOK_PART)
        wait_us = cost_us * LOOK_PART;
    return wait_us < LATE_LOOK_US ? wait_us : LATE_LOOK_US;
}

static void look(struct sandbox *sandbox)
{
    int64_t begin_us = now_us();
    watch.was_put_off = false;
    memcpy(watch.before, watch.rows, watch.count * sizeof *watch.rows);
    watch.before_count = watch.count;
    watch.count = 0;
    watch.resident = watch.tasks = watch.unlisted = 0;
    if (lseek(sandbox->processes, 0, SEEK_SET) < 0)
        return;
    walk_numbers(sandbox, sandbox->processes, NULL, on_process);
    look_at_tasks(sandbox);
    measure_scratch(sandbox);
    uint64_t shared = sum_shared(sandbox), sum = watch.resident + shared;
    int64_t looked_us = now_us();
    if (shares_are_due(sandbox, sum))
        look_at_shares(sandbox, sum, shared);
    watch.look_us = looked_us + next_look_us(sandbox, sum, looked_us - begin_us);
    watch.last_sum = sum;
}

void watch_usage(struct sandbox *sandbox)
{
    if (is_watched(sandbox) && sandbox->usage.is_due && now_us() >= watch.look_us)
        look(sandbox);
}

int usage_interval_ms(const struct sandbox *sandbox, int other_ms)
{
    if (!is_watched(sandbox) || !sandbox->usage.is_due)
        return other_ms;
    int64_t left_us = other_ms < 0 ? IDLE_LOOK_US : watch.look_us - now_us();
    int left_ms = left_us > 0 ? (int) ((left_us + 999) / 1000) : 0;
    return other_ms >= 0 && other_ms < left_ms ? other_ms : left_ms;
}

static void put_off(int64_t *due_us, bool *was_put_off, int64_t until_us)
{
    if (!*was_put_off && *due_us < until_us)
        *due_us = until_us;
    *was_put_off = true;
}

/* Code begins: the next look is put off, so that short code has one look, at its end, and none at
 * descriptors if the limit is far. Each look is put off only once, so that a client that begins
 * code again and again cannot avoid it. */
void begin_usage(struct sandbox *sandbox)
{
    int64_t first_us = now_us() + GROWTH_LOOK_US;
    sandbox->usage.is_due = true;
    put_off(&watch.look_us, &watch.was_put_off, first_us);
    if (sandbox->usage.bound.memory_bytes > watch.last_sum + SOON_WRITTEN)
        put_off(&watch.files_us, &watch.files_were_put_off, first_us);
}

/* The shares of a prewarmed interpreter are read while nothing waits, so that a run that grows
 * little need not read them. */
static bool has_prewarmed(const struct sandbox *sandbox)
{
    return !sandbox->usage.is_due && sandbox->processes > 0 &&
           (watch.memory_device != 0 || find_memory_device(&(error){ 0 }) == 0);
}

bool look_now(struct sandbox *sandbox)
{
    bool is_due = is_watched(sandbox) && sandbox->usage.is_due;
    if (is_due || has_prewarmed(sandbox))
        look(sandbox);
    return is_due;
}

void tell_usage(struct sandbox *sandbox)
{
    struct usage *usage = &sandbox->usage;
    if (!is_watched(sandbox) || memcmp(&usage->used, &usage->told, sizeof usage->used) == 0)
        return;
    usage->told = usage->used;
    send_frame(sandbox, AGENT_USED, 0, 0, &usage->used, sizeof usage->used, NULL, 0);
}
