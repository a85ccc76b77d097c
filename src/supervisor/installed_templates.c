/* installed_templates.c - finds templates; one is complete when it has a manifest. */
#include "supervisor/installed_templates.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "supervisor/install_paths.h"
#include "supervisor/launch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void templates_done(struct templates *templates)
{
    free(templates->folder);
}

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

/* Returns  how many there are; if 0, errno says why. `ret` gets as many as it can hold. */
static size_t find_built(const char *folder, struct templates *ret)
{
    size_t found = 0;
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    if (!entries)
        return 0;
    while ((entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): our own */
        if (template_is_whole(folder, entry->d_name) && found++ < COUNT_OF(ret->names))
            (void) snprintf(ret->names[ret->count++], sizeof *ret->names, "%s", entry->d_name);
    (void) closedir(entries);
    errno = 0;
    return found;
}

/* Fails, and says where there are templates, if not in `folder` of the given state. */
static int none_is_built(const char *state, const char *folder, error *err)
{
    auto_text usual = NULL;
    error unused;
    const char *same = state ? " with this --state" : "";
    struct templates there = { 0 };
    size_t count =
        state && path_of_templates(NULL, &usual, &unused) == 0 ? find_built(usual, &there) : 0;
    if (count == 0)
        return fail(err, ERR_UNAVAILABLE,
                    "no template is built (looked in %s); run: glovebox template build python%s",
                    folder, same);
    return fail(err, ERR_UNAVAILABLE,
                "no template is built in %s, while %s has %zu; name that state, or run glovebox "
                "template build python%s",
                folder, usual, count, same);
}

int templates_find(const char *state, const char *first, struct templates *ret, error *err)
{
    if (path_of_templates(state, &ret->folder, err) < 0)
        return -1;
    size_t found = find_built(ret->folder, ret);
    if (found == 0 && errno == ENOTDIR)
        return fail(
            err, ERR_NOT_FOUND,
            "%s cannot be there: a part of that path is a file; name another folder with --state",
            ret->folder);
    if (found == 0 && errno != 0 && errno != ENOENT)
        return fail_os(err, "open folder '%s'", ret->folder);
    if (found > ret->count)
        return fail(
            err, ERR_UNAVAILABLE,
            "%zu templates are built in %s, %d can be served; run: glovebox template remove", found,
            ret->folder, TEMPLATES_MAX);
    if (ret->count == 0)
        return none_is_built(state, ret->folder, err);
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
