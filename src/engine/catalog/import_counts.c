/* import_counts.c - see import_counts.h: a sorted table of names, read when a template is loaded.
 */
#include "engine/catalog/import_counts.h"

#include "base/cleanup.h"
#include "engine/catalog/templates.h"
#include "engine/observe/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIBRARIES_MAX = 1024, NAME_SIZE = 64 };

struct library {
    char name[NAME_SIZE];
    uint64_t programs;     /* how many import it */
    uint64_t last_program; /* the number of the last of them */
};

struct import_counts {
    uint64_t programs;
    size_t count;
    struct library list[LIBRARIES_MAX];
};

static bool is_enabled = true;

void import_counts_enable(bool enabled)
{
    is_enabled = enabled;
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct library *) left)->name, ((const struct library *) right)->name);
}

/* The name for `import` of an entry of dist-packages: "six.py", "lxml", "x.cpython-311.so". None
 * for private entries and for metadata of packages. */
static size_t name_of_entry(const char *entry)
{
    size_t length =
        strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *ending = entry + length;
    bool is_module = *ending == '\0' || strcmp(ending, ".py") == 0 ||
                     (*ending == '.' && strstr(ending, ".so") && !strchr(ending, '-'));
    is_module |= strncmp(ending, ".cpython-", 9) == 0;
    return is_module && *entry != '_' && length < NAME_SIZE ? length : 0;
}

/* Opens a folder of the template; links cannot lead out of it. */
static DIR *open_folder(int template, const char *path)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    auto_fd fd = (int) syscall(SYS_openat2, template, path, &how, sizeof how);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder)
        (void) take_fd(&fd);
    return folder;
}

static void read_folder(struct import_counts *counts, int template, const char *path)
{
    DIR *folder = open_folder(template, path);
    const struct dirent *entry;
    while (folder && counts->count < LIBRARIES_MAX &&
           (entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe): this folder's */
        size_t length = name_of_entry(entry->d_name);
        if (length > 0)
            (void) snprintf(counts->list[counts->count++].name, NAME_SIZE, "%.*s", (int) length,
                            entry->d_name);
    }
    if (folder)
        (void) closedir(folder);
}

/* "usr/local/lib/python3.11/dist-packages", for each installed version. */
static void read_versions(struct import_counts *counts, int template)
{
    DIR *folder = open_folder(template, "root/usr/local/lib");
    char path[300];
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe) */
        (void) snprintf(path, sizeof path, "root/usr/local/lib/%.200s/dist-packages",
                        entry->d_name);
        if (strncmp(entry->d_name, "python3.", 8) == 0)
            read_folder(counts, template, path);
    }
    if (folder)
        (void) closedir(folder);
}

struct import_counts *import_counts_open(int template)
{
    struct import_counts *counts = calloc(1, sizeof *counts);
    if (!counts)
        return NULL;
    read_folder(counts, template, "root/usr/lib/python3/dist-packages");
    read_versions(counts, template);
    qsort(counts->list, counts->count, sizeof *counts->list, compare);
    if (counts->count > 0)
        return counts;
    free(counts);
    return NULL;
}

void import_counts_free(struct import_counts *counts)
{
    free(counts);
}

void import_counts_program(struct import_counts *counts)
{
    if (counts && is_enabled)
        counts->programs++;
}

void import_counts_add(struct import_counts *counts, const char *name, size_t length)
{
    struct library wanted = { .programs = 0 };
    if (!counts || !is_enabled || length >= NAME_SIZE)
        return;
    (void) snprintf(wanted.name, sizeof wanted.name, "%.*s", (int) length, name);
    struct library *found =
        bsearch(&wanted, counts->list, counts->count, sizeof *counts->list, compare);
    if (!found || found->last_program == counts->programs)
        return;
    found->last_program = counts->programs;
    found->programs++;
}

static void write_template(enum metric metric, const struct template *template, struct bytes *out)
{
    const struct import_counts *counts = template->imports;
    char label[POLICY_NAME_SIZE + NAME_SIZE + 32];
    (void) snprintf(label, sizeof label, "template=\"%s\"", template->name);
    if (metric == METRIC_PROGRAMS)
        metric_write_value(metric, label, counts->programs, out);
    for (size_t i = 0; metric == METRIC_IMPORTS && i < counts->count; i++) {
        (void) snprintf(label, sizeof label, "template=\"%s\",module=\"%s\"", template->name,
                        counts->list[i].name);
        if (counts->list[i].programs > 0)
            metric_write_value(metric, label, counts->list[i].programs, out);
    }
}

void import_counts_write(const struct templates *templates, struct bytes *out)
{
    for (enum metric metric = METRIC_PROGRAMS; metric <= METRIC_IMPORTS; metric++) {
        metric_write_head(metric, out);
        for (size_t i = 0; i < SPAWN_TEMPLATES_MAX; i++)
            if (template_is_served(templates->list[i]) && templates->list[i]->imports)
                write_template(metric, templates->list[i], out);
    }
}
