/* review_run.c - runs pip and npm behind walls, with a user id of their own: no code of a package
 * is run, and packages are parsed where there is nothing to steal. Of the host, they have its
 * programs, the files of /etc that every user may read, and the network, for the index. */
#include "template/review_run.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "template/tool.h"
#include "template/tree.h"
#include "template/walls.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VARIABLES_MAX = 128, SETTING_MAX = 1 << 20 };

/* Is it a variable for package managers, about the index or proxies? */
static bool is_passed(const char *variable)
{
    static const char *const prefixes[] = {
        "PIP_",         "npm_config_", "NPM_CONFIG_",         "http_proxy=",
        "https_proxy=", "no_proxy=",   "all_proxy=",          "HTTP_PROXY=",
        "HTTPS_PROXY=", "NO_PROXY=",   "ALL_PROXY=",          "SSL_CERT_",
        "LC_",          "LANG=",       "REQUESTS_CA_BUNDLE=", "CURL_CA_BUNDLE=",
    };
    for_each(prefix, prefixes)
        if (strncmp(variable, *prefix, strlen(*prefix)) == 0)
            return strncasecmp(variable, "npm_config_cache=", 17) != 0 &&
                   strncmp(variable, "PIP_CONFIG_FILE=", 16) != 0;
    return false;
}

static void collect_variables(const char **variables)
{
    static const char *const ours[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp/home",
                                        "TMPDIR=/tmp" };
    size_t count = 0;
    for_each(variable, ours)
        variables[count++] = *variable;
    for (char **variable = environ; *variable && count < VARIABLES_MAX - 1; variable++)
        if (is_passed(*variable))
            variables[count++] = *variable;
    if (count < VARIABLES_MAX - 1 && getenv("PIP_CONFIG_FILE")) /* NOLINT(concurrency-mt-unsafe) */
        variables[count++] = "PIP_CONFIG_FILE=/tmp/home/pip.conf";
    variables[count] = NULL;
}

/* Copies a file of settings; a missing or unreadable one is skipped. */
static int copy_setting(const char *path, int home, const char *name, error *err)
{
    char folder[64];
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size > SETTING_MAX)
        return 0;
    auto_text text = malloc((size_t) status.st_size + 1);
    ssize_t got = text ? read(file, text, (size_t) status.st_size) : -1;
    if (got < 0)
        return fail_os(err, "read '%s'", path);
    const char *slash = strrchr(name, '/');
    (void) snprintf(folder, sizeof folder, "%.*s", slash ? (int) (slash - name) : 0, name);
    if (slash && tree_make_directory(home, folder, err) < 0)
        return -1;
    return tree_write_file(home, name, text, (size_t) got, err);
}

/* Copies the operator's settings, with the passwords of indexes. */
static int copy_settings(int home, error *err)
{
    static const char *const names[] = { ".config/pip/pip.conf", ".pip/pip.conf", ".netrc",
                                         ".npmrc" };
    const char *from = getenv("HOME");            /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *file = getenv("PIP_CONFIG_FILE"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (file && copy_setting(file, home, "pip.conf", err) < 0)
        return -1;
    for_each(name, names) {
        char path[PATH_MAX];
        if (from && snprintf(path, sizeof path, "%s/%s", from, *name) < (int) sizeof path &&
            copy_setting(path, home, *name, err) < 0)
            return -1;
    }
    return 0;
}

static int run_helper(const struct review_run *run, const struct walls *walls, char **ret_text,
                      error *err)
{
    const char *manifest = walls ? "/tmp/manifest.json" : run->manifest;
    const char *folder = walls ? "/tmp/archives" : run->folder;
    const char *const arguments[] = { "/usr/bin/python3", "-I",     "-S",   "-c",
                                      run->helper,        manifest, folder, run->name,
                                      run->version,       NULL };
    const char *variables[VARIABLES_MAX];
    collect_variables(variables);
    struct tool tool = {
        .arguments = (char *const *) (uintptr_t) arguments, /* execvp(3) does not write */
        .variables = walls ? (char *const *) (uintptr_t) variables : NULL,
        .walls = walls,
        .line = run->line,
        .context = run->context,
    };
    if (tool_read(&tool, ret_text, err) == 0)
        return 0;
    const char *said = tool_last_line(&tool);
    return tool_interrupted || !*said ? -1 : fail(err, ERR_UNAVAILABLE, "%s", said);
}

static int run_apart(const struct review_run *run, const char *home, char **ret_text, error *err)
{
    char resolver[PATH_MAX]; /* the target of /etc/resolv.conf, which may be in /run */
    bool is_elsewhere =
        realpath("/etc/resolv.conf", resolver) && strncmp(resolver, "/etc/", 5) != 0;
    const struct walls_bind binds[] = {
        { "/etc", "etc", false },
        { run->manifest, "tmp/manifest.json", false },
        { run->folder, "tmp/archives", true },
        { home, "tmp/home", true },
        { is_elsewhere ? resolver : NULL, resolver + 1, false },
        { 0 },
    };
    const struct walls walls = {
        .root = run->root,
        .binds = binds,
        .disk = run->folder,
        .has_network = true,
    };
    return run_helper(run, &walls, ret_text, err);
}

static int refuse_link(void *context, const struct tree_entry *entry, error *err)
{
    (void) context;
    return S_ISREG(entry->status.st_mode)
               ? TREE_GO_ON
               : fail(err, ERR_CONFLICT, "'%.100s' among the archives is no file", entry->path);
}

int review_run(const struct review_run *run, char **ret_text, error *err)
{
    char home[PATH_MAX];
    if (run->on_host)
        return run_helper(run, NULL, ret_text, err);
    if (snprintf(home, sizeof home, "%s/../home", run->folder) >= (int) sizeof home)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    auto_fd above = openat(run->archives, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return fail_os(err, "open the folder of the request");
    if (tree_remove(above, "home", err) < 0 || tree_make_directory(above, "home", err) < 0)
        return -1;
    auto_fd place = openat(above, "home", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0 || fchmod(place, 0700) < 0)
        return fail_os(err, "make a home for the package manager");
    int result = copy_settings(place, err);
    if (result == 0)
        result = tree_give(place, walls_owner(), err);
    if (result == 0)
        result = tree_give(run->archives, walls_owner(), err);
    if (result == 0)
        result = run_apart(run, home, ret_text, err);
    error unheard;
    (void) tree_remove(above, "home", result == 0 ? err : &unheard);
    if (result == 0)
        result = tree_walk(run->archives, refuse_link, NULL, err);
    return result == 0 ? tree_give(run->archives, geteuid(), err) : -1;
}
