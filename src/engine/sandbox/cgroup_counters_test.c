/* cgroup_counters_test.c - both versions of control groups, as files in a folder. */
#include "base/test.h"

#include "engine/sandbox/cgroup_counters.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(int folder, const char *name, const char *text)
{
    int file = openat(folder, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    require(file >= 0 && write(file, text, strlen(text)) == (ssize_t) strlen(text), "write %s",
            name);
    (void) close(file);
}

static int make_folder(char *path)
{
    require(mkdtemp(path), "make %s", path);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void remove_folder(int folder, const char *path, const char *const *names)
{
    for (; *names; names++)
        (void) unlinkat(folder, *names, 0);
    (void) close(folder);
    (void) rmdir(path);
}

TEST(version_2_is_read)
{
    char path[] = "/tmp/glovebox-counters-XXXXXX";
    int folder = make_folder(path);
    put(folder, "cpu.stat", "usage_usec 1234\nuser_usec 1\nnr_throttled 5\nthrottled_usec 60\n");
    put(folder, "memory.peak", "4096\n");
    put(folder, "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 9\n");
    put(folder, "pids.peak", "3\n");
    put(folder, "pids.current", "1\n");
    put(folder, "pids.events", "max 8\n");

    struct group_directories groups;
    group_directories_init(&groups);
    /* NOLINTNEXTLINE(android-cloexec-dup): a test hands it on */
    groups.fd[GROUP_UNIFIED] = dup(folder);
    struct counters counters;
    counters_read(&groups, &counters);
    expect(counters.cpu_us == 1234 && counters_cpu_us(&groups) == 1234, "processor time");
    expect(counters_missing(&groups, 4096, 3).memory_bytes == 0, "the group counts");
    expect(counters.memory_peak_bytes == 4096 && counters.memory_kills == 2, "memory");
    expect(counters.memory_full == 7, "times full");
    expect(counters.processes_peak == 3 && counters.processes_refused == 8, "processes");
    expect(counters_processes(&groups) == 1, "processes now");
    expect(counters.throttled == 5 && counters.throttled_us == 60, "throttled");
    group_directories_done(&groups);
    static const char *const names[] = { "cpu.stat",  "memory.peak",  "memory.events",
                                         "pids.peak", "pids.current", "pids.events",
                                         NULL };
    remove_folder(folder, path, names);
}

TEST(version_1_is_read)
{
    char path[] = "/tmp/glovebox-counters-XXXXXX";
    int folder = make_folder(path);
    put(folder, "cpuacct.usage", "1234567\n");
    put(folder, "cpu.stat", "nr_periods 4\nnr_throttled 5\nthrottled_time 60000\n");
    put(folder, "memory.max_usage_in_bytes", "8192\n");
    put(folder, "memory.failcnt", "7\n");
    put(folder, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put(folder, "pids.current", "3\n"); /* no pids.peak before Linux 6.1 */
    put(folder, "pids.events", "max 8\n");

    struct group_directories groups;
    group_directories_init(&groups);
    static const enum group_kind kinds[] = { GROUP_MEMORY, GROUP_PIDS, GROUP_CPU, GROUP_CPUACCT };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        /* NOLINTNEXTLINE(android-cloexec-dup): a test hands it on */
        groups.fd[kinds[i]] = dup(folder);
    struct counters counters;
    counters_read(&groups, &counters);
    expect(counters.cpu_us == 1234, "nanoseconds became %d us", (int) counters.cpu_us);
    expect(counters.memory_peak_bytes == 8192 && counters.memory_kills == 2, "memory");
    expect(counters.memory_full == 7, "times full");
    expect(counters.processes_peak == 3 && counters.processes_refused == 8, "processes");
    expect(counters.throttled == 5 && counters.throttled_us == 60, "throttled");

    group_directories_hold(&groups);
    put(folder, "cpuacct.usage", "99000000\n");
    put(folder, "cpu.stat", "nr_periods 4\nnr_throttled 6\nthrottled_time 7000000\n");
    put(folder, "pids.current", "1\n");
    struct counters later;
    counters_read(&groups, &later);
    expect(later.cpu_us == 99000 && counters_cpu_us(&groups) == 99000, "held, and read anew");
    expect(later.throttled == 6 && later.throttled_us == 7000, "two of one file");
    expect(later.memory_kills == 2 && later.processes_peak == 1, "the others");
    expect(counters_processes(&groups) == 1, "processes now");

    struct counters before = { .cpu_us = 1000, .memory_kills = 5 };
    counters_subtract(&counters, &before);
    expect(counters.cpu_us == 234 && counters.memory_kills == 0, "what came before is not counted");
    group_directories_done(&groups);
    static const char *const names[] = { "cpuacct.usage",
                                         "cpu.stat",
                                         "memory.max_usage_in_bytes",
                                         "memory.failcnt",
                                         "memory.oom_control",
                                         "pids.current",
                                         "pids.events",
                                         NULL };
    remove_folder(folder, path, names);
}

/* The folder above is that of the tenant; each version has a file of its own there. */
TEST(the_group_of_the_tenant_is_read)
{
    static const struct {
        enum group_kind kind;
        const char *name, *text;
        uint64_t cpu_us;
    } cases[] = { { GROUP_UNIFIED, "cpu.stat", "nr_periods 1\nusage_usec 77\n", 77 },
                  { GROUP_CPUACCT, "cpuacct.usage", "88000\n", 88 },
                  { GROUP_CPU, "cpuacct.usage", "99999\n", 99 },
                  { GROUP_CPU, "cpu.stat", "usage_usec 5\n", 0 },
                  { GROUP_UNIFIED, "cpu.stat", "usage_usec none\n", 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/glovebox-counters-XXXXXX";
        int folder = make_folder(path);
        require(mkdirat(folder, "leaf", 0700) == 0, "make the leaf");
        put(folder, cases[i].name, cases[i].text);
        struct group_directories groups;
        group_directories_init(&groups);
        groups.fd[cases[i].kind] = openat(folder, "leaf", O_PATH | O_DIRECTORY | O_CLOEXEC);
        uint64_t cpu_us = counters_tenant_cpu_us(&groups);
        expect(cpu_us == cases[i].cpu_us, "case %zu: %d us", i, (int) cpu_us);
        group_directories_done(&groups);
        (void) unlinkat(folder, "leaf", AT_REMOVEDIR);
        remove_folder(folder, path, (const char *const[]){ cases[i].name, NULL });
    }
}

TEST(without_groups_everything_is_zero)
{
    struct group_directories groups;
    group_directories_init(&groups);
    struct counters counters;
    counters_read(&groups, &counters);
    expect(counters.cpu_us == 0 && counters.memory_kills == 0, "zero");
}

TEST(without_groups_init_has_counted)
{
    struct group_directories groups;
    struct counters counters;
    struct fact_counter told[COUNTERS_MAX];
    group_directories_init(&groups);
    struct agent_bound missing = counters_missing(&groups, 4096, 3);
    expect(missing.memory_bytes == 4096 && missing.processes == 3, "no group counts");
    groups.watched = (struct agent_used){ 8192, 2, 3, 1 };
    counters_read(&groups, &counters);
    expect(counters.memory_peak_bytes == 8192 && counters.memory_kills == 2, "memory");
    expect(counters.processes_peak == 3 && counters.processes_refused == 1, "processes");
    expect(counters_evidence(&counters, told) == 4, "four of eight");
    expect(strcmp(told[0].group, "glovebox-init") == 0 && told[0].value == 8192, "who counted");
}

TESTS(CASE(version_2_is_read), CASE(version_1_is_read), CASE(the_group_of_the_tenant_is_read),
      CASE(without_groups_everything_is_zero), CASE(without_groups_init_has_counted))
