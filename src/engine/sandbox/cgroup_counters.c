/* cgroup_counters.c - one table for both layouts of control groups: the first readable row wins. */
#include "engine/sandbox/cgroup_counters.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

/* COUNTER rows: the file of a number, the word before it (NULL: none), and the factor to our
 * unit. */
static const struct counter_row {
    size_t field;
    enum group_kind group;
    const char *file;
    const char *word;
    uint64_t divide_by;
} rows[] = {
/* clang-format off */
#define FIELD(name) offsetof(struct counters, name)
    { FIELD(cpu_us),            GROUP_CPUACCT, "cpuacct.usage",              NULL,             1000 },
    { FIELD(cpu_us),            GROUP_CPU,     "cpuacct.usage",              NULL,             1000 },
    { FIELD(cpu_us),            GROUP_UNIFIED, "cpu.stat",                   "usage_usec",     1 },
    { FIELD(memory_peak_bytes), GROUP_MEMORY,  "memory.max_usage_in_bytes",  NULL,             1 },
    { FIELD(memory_peak_bytes), GROUP_UNIFIED, "memory.peak",                NULL,             1 }, /* Linux 5.19 */
    { FIELD(memory_peak_bytes), GROUP_UNIFIED, "memory.current",             NULL,             1 },
    { FIELD(memory_kills),      GROUP_MEMORY,  "memory.oom_control",         "oom_kill",       1 },
    { FIELD(memory_kills),      GROUP_UNIFIED, "memory.events",              "oom_kill",       1 },
    { FIELD(memory_full),       GROUP_MEMORY,  "memory.failcnt",             NULL,             1 },
    { FIELD(memory_full),       GROUP_UNIFIED, "memory.events",              "max",            1 },
    { FIELD(processes_peak),    GROUP_PIDS,    "pids.peak",                  NULL,             1 }, /* Linux 6.1 */
    { FIELD(processes_peak),    GROUP_PIDS,    "pids.current",               NULL,             1 },
    { FIELD(processes_peak),    GROUP_UNIFIED, "pids.peak",                  NULL,             1 },
    { FIELD(processes_peak),    GROUP_UNIFIED, "pids.current",               NULL,             1 },
    { FIELD(processes_refused), GROUP_PIDS,    "pids.events",                "max",            1 },
    { FIELD(processes_refused), GROUP_UNIFIED, "pids.events",                "max",            1 },
    { FIELD(throttled),         GROUP_CPU,     "cpu.stat",                   "nr_throttled",   1 },
    { FIELD(throttled),         GROUP_UNIFIED, "cpu.stat",                   "nr_throttled",   1 },
    { FIELD(throttled_us),      GROUP_CPU,     "cpu.stat",                   "throttled_time", 1000 },
    { FIELD(throttled_us),      GROUP_UNIFIED, "cpu.stat",                   "throttled_usec", 1 },
#undef FIELD
    /* clang-format on */
};
_Static_assert(COUNT_OF(rows) == COUNTER_ROWS, "a place for each file that may be held open");

void group_directories_init(struct group_directories *groups)
{
    for_each(fd, groups->fd)
        *fd = -1;
    groups->is_held = false;
    groups->watched = (struct agent_used){ 0 };
}

/* The first row that reads the same file. */
static size_t first_with_file_of(size_t row)
{
    size_t first = 0;
    while (rows[first].group != rows[row].group || strcmp(rows[first].file, rows[row].file) != 0)
        first++;
    return first;
}

void group_directories_hold(struct group_directories *groups)
{
    if (groups->is_held)
        return;
    groups->is_held = true;
    for (size_t i = 0; i < COUNTER_ROWS; i++) {
        int directory = groups->fd[rows[i].group];
        groups->held[i] = -1;
        if (directory >= 0 && first_with_file_of(i) == i)
            groups->held[i] = openat(directory, rows[i].file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
}

void group_directories_done(struct group_directories *groups)
{
    for_each(fd, groups->fd) {
        close_fd(fd);
        *fd = -1;
    }
    if (groups->is_held)
        for_each(fd, groups->held)
            close_fd(fd);
    groups->is_held = false;
}

static bool read_open(int file, char text[TEXT_MAX])
{
    ssize_t got = file < 0 ? -1 : pread(file, text, TEXT_MAX - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool read_row(const struct group_directories *groups, size_t row, char text[TEXT_MAX])
{
    int directory = groups->fd[rows[row].group];
    if (directory < 0)
        return false;
    auto_fd opened = -1;
    if (!groups->is_held)
        opened = openat(directory, rows[row].file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int file = groups->is_held ? groups->held[first_with_file_of(row)] : opened;
    return read_open(file, text);
}

/* The number after `word` at the beginning of a line; "max" must not match "max_usage". */
static bool find_number(const char *text, const char *word, uint64_t *ret_number)
{
    size_t length = word ? strlen(word) : 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (word && (strncmp(line, word, length) != 0 || line[length] != ' '))
            continue;
        const char *digits = word ? line + length + 1 : line;
        if (*digits < '0' || *digits > '9')
            return false;
        *ret_number = strtoull(digits, NULL, 10);
        return true;
    }
    return false;
}

static uint64_t *field_of(struct counters *counters, size_t field)
{
    return (uint64_t *) (void *) ((char *) counters + field);
}

enum { SOURCE_IS_INIT = UCHAR_MAX };

/* Uses what glovebox-init has seen, if no group counts it. */
static void take_watched(const struct agent_used *watched, struct counters *counters)
{
    const struct {
        size_t field;
        uint64_t value;
    } seen[] = {
        { offsetof(struct counters, memory_peak_bytes), watched->memory_peak_bytes },
        { offsetof(struct counters, memory_kills), watched->memory_kills },
        { offsetof(struct counters, processes_peak), watched->processes_peak },
        { offsetof(struct counters, processes_refused), watched->processes_full },
    };
    for_each(row, seen) {
        unsigned char *source = &counters->sources[row->field / sizeof(uint64_t)];
        if (*source != 0 || watched->processes_peak == 0)
            continue;
        *field_of(counters, row->field) = row->value;
        *source = SOURCE_IS_INIT;
    }
}

void counters_read(const struct group_directories *groups, struct counters *ret_counters)
{
    *ret_counters = (struct counters){ 0 };
    char text[TEXT_MAX] = "";
    const struct counter_row *read = NULL; /* the row of the file in `text`; rows may share it */
    size_t found = SIZE_MAX;
    for_each(row, rows) {
        if (row->field == found || groups->fd[row->group] < 0)
            continue;
        bool same = read && read->group == row->group && strcmp(read->file, row->file) == 0;
        if (!same) {
            read = NULL;
            if (!read_row(groups, (size_t) (row - rows), text))
                continue;
            read = row;
        }
        uint64_t number;
        if (find_number(text, row->word, &number)) {
            *field_of(ret_counters, row->field) = number / row->divide_by;
            ret_counters->sources[row->field / sizeof(uint64_t)] = (unsigned char) (row - rows + 1);
            found = row->field;
        }
    }
    take_watched(&groups->watched, ret_counters);
}

struct agent_bound counters_missing(const struct group_directories *groups, uint64_t memory_bytes,
                                    uint64_t processes)
{
    struct counters now;
    counters_read(groups, &now);
    const unsigned char *sources = now.sources;
    return (struct agent_bound){
        .memory_bytes =
            sources[offsetof(struct counters, memory_kills) / sizeof(uint64_t)] ? 0 : memory_bytes,
        .processes = sources[offsetof(struct counters, processes_refused) / sizeof(uint64_t)]
                         ? 0
                         : processes,
    };
}

uint64_t counters_cpu_us(const struct group_directories *groups)
{
    char text[TEXT_MAX];
    for_each(row, rows) {
        uint64_t number;
        if (row->field == offsetof(struct counters, cpu_us) &&
            read_row(groups, (size_t) (row - rows), text) && find_number(text, row->word, &number))
            return number / row->divide_by;
    }
    return 0;
}

uint64_t counters_tenant_cpu_us(const struct group_directories *groups)
{
    char text[TEXT_MAX], name[48];
    for_each(row, rows) {
        uint64_t number;
        if (row->field != offsetof(struct counters, cpu_us) || groups->fd[row->group] < 0)
            continue;
        (void) snprintf(name, sizeof name, "../%s", row->file);
        auto_fd file = openat(groups->fd[row->group], name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (read_open(file, text) && find_number(text, row->word, &number))
            return number / row->divide_by;
    }
    return 0;
}

_Static_assert(offsetof(struct counters, sources) == COUNTERS_MAX * sizeof(uint64_t),
               "the counters stand before their sources, one number each");

size_t counters_evidence(const struct counters *counters, struct fact_counter ret[COUNTERS_MAX])
{
    static const char *const names[COUNTERS_MAX] = {
        "cpu_us",         "memory_peak_bytes", "memory_kills", "memory_full",
        "processes_peak", "processes_refused", "throttled",    "throttled_us",
    };
    static const char *const groups[GROUPS] = {
#define CGROUP(name, text) text,
#include "contract/cgroups.def"
    };
    size_t count = 0;
    for (size_t i = 0; i < COUNTERS_MAX; i++) {
        if (counters->sources[i] == 0)
            continue;
        uint64_t value;
        memcpy(&value, (const char *) counters + i * sizeof value, sizeof value);
        if (counters->sources[i] == SOURCE_IS_INIT) {
            ret[count++] = (struct fact_counter){ names[i], "glovebox-init", "/proc", value };
            continue;
        }
        const struct counter_row *row = &rows[counters->sources[i] - 1];
        ret[count++] = (struct fact_counter){ names[i], groups[row->group], row->file, value };
    }
    return count;
}

bool counters_count(const struct group_directories *groups, uint64_t *ret_count)
{
    char text[TEXT_MAX];
    for_each(row, rows)
        if (strcmp(row->file, "pids.current") == 0 && read_row(groups, (size_t) (row - rows), text))
            return find_number(text, NULL, ret_count);
    return false;
}

/* v1 reports FREEZING until the last process is frozen; v2 reports frozen only when all are. */
enum freezer counters_freezer(const struct group_directories *groups)
{
    char text[TEXT_MAX];
    uint64_t is_frozen = 0;
    bool is_unified = groups->fd[GROUP_UNIFIED] >= 0;
    int directory = groups->fd[is_unified ? GROUP_UNIFIED : GROUP_FREEZER];
    auto_fd file = directory < 0 ? -1
                                 : openat(directory, is_unified ? "cgroup.events" : "freezer.state",
                                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (!read_open(file, text) || (is_unified && !find_number(text, "frozen", &is_frozen)))
        return FREEZER_NONE;
    if (!is_unified)
        is_frozen = strncmp(text, "FROZEN", 6) == 0;
    return is_frozen ? FREEZER_FROZEN : FREEZER_THAWED;
}

uint64_t counters_processes(const struct group_directories *groups)
{
    uint64_t number = 0;
    (void) counters_count(groups, &number);
    return number;
}

static uint64_t since(uint64_t now, uint64_t start)
{
    return now > start ? now - start : 0;
}

void counters_subtract(struct counters *counters, const struct counters *start)
{
    counters->cpu_us = since(counters->cpu_us, start->cpu_us);
    counters->memory_kills = since(counters->memory_kills, start->memory_kills);
    counters->memory_full = since(counters->memory_full, start->memory_full);
    counters->processes_refused = since(counters->processes_refused, start->processes_refused);
    counters->throttled = since(counters->throttled, start->throttled);
    counters->throttled_us = since(counters->throttled_us, start->throttled_us);
}
