/* debian.c - a new root from Debian packages: mmdebstrap with the host's own apt sources, keys and
 * proxy.
 *
 * No mirror is named here: what works for apt on this machine works for a template. */
#include "template/build.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "template/approved.h"
#include "template/tool.h"
#include "template/tree.h"

#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS_MOST = 192 };

/* The command line of mmdebstrap, growing. */
struct line {
    char *arguments[ARGUMENTS_MOST + 1];
    size_t count;
    bool full;
};

static void add_argument(struct line *line, const char *format, ...) PRINTF(2, 3);

static void add_argument(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = NULL;
    if (line->count == ARGUMENTS_MOST || vasprintf(&text, format, values) < 0)
        line->full = true;
    else
        line->arguments[line->count++] = text;
    va_end(values);
}

static void line_done(struct line *line)
{
    for (size_t index = 0; index < line->count; index++)
        free(line->arguments[index]);
}

/* Documentation is left in its packages; strip_tree() removes whatever comes all the same. */
static const char *const fixed_options[] = {
    "--variant=essential", /* and what `packages` depends on: neither apt nor Recommends */
    "--aptopt=APT::Install-Recommends \"false\"",
    "--aptopt=Acquire::Languages \"none\"",
    "--aptopt=Acquire::Retries \"2\"",
    "--aptopt=Acquire::http::Timeout \"20\"",
    "--aptopt=Acquire::https::Timeout \"20\"",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    /* Packages would compile their Python files for this machine's clock; prepare.c does it anew.
     * Their scripts look whether the compiler is there. */
    "--dpkgopt=path-exclude=/usr/bin/py3compile",
};

static void add_packages(struct line *line, const struct build *build)
{
    struct json_object *packages = build_key(build, "packages");
    for (size_t index = 0; index < json_object_array_length(packages); index++)
        add_argument(line, "--include=%s",
                     json_object_get_string(json_object_array_get_idx(packages, index)));
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        if (strcmp(approved_text(row, "manager"), "apt") == 0)
            add_argument(line, "--include=%s=%s", approved_text(row, "name"),
                         approved_text(row, "version"));
    }
}

/* What strip_tree() would remove need not be written first. dpkg's '*' also stands for '/', so only
 * plain paths are passed on. */
static void add_left_out(struct line *line, const struct build *build)
{
    struct json_object *patterns = build_key(build, "leave_out");
    for (size_t index = 0; index < json_object_array_length(patterns); index++) {
        const char *path = json_object_get_string(json_object_array_get_idx(patterns, index));
        if (!strpbrk(path, "*?[\\"))
            add_argument(line, "--dpkgopt=path-exclude=/%s/*", path);
    }
}

/* Settings of the host's apt that reaching the mirrors may need. */
static bool matters(const char *setting)
{
    static const char *const prefixes[] = {
        "Acquire::http::",      "Acquire::https::",    "Acquire::Check-Valid-Until ",
        "Acquire::Check-Date ", "Acquire::ForceIPv4 ", "Acquire::ForceIPv6 ",
    };
    for_each(prefix, prefixes)
        if (strncmp(setting, *prefix, strlen(*prefix)) == 0)
            return !strstr(setting, " \"\";"); /* groups without a value of their own */
    return false;
}

static int add_host_settings(struct line *line, error *err)
{
    char name[] = "apt-config", verb[] = "dump";
    char *arguments[] = { name, verb, NULL };
    struct tool tool = { .arguments = arguments };
    auto_text text = NULL;
    if (tool_read(&tool, &text, err) < 0)
        return under(err, "read apt's settings");
    char *rest = text;
    for (char *setting = strsep(&rest, "\n"); setting; setting = strsep(&rest, "\n"))
        if (matters(setting)) {
            setting[strcspn(setting, ";")] = '\0';
            add_argument(line, "--aptopt=%s", setting);
        }
    /* Passwords of mirrors stay where they are. */
    if (access("/etc/apt/auth.conf", R_OK) == 0)
        add_argument(line, "--aptopt=Dir::Etc::netrc \"/etc/apt/auth.conf\"");
    if (access("/etc/apt/auth.conf.d", R_OK) == 0)
        add_argument(line, "--aptopt=Dir::Etc::netrcparts \"/etc/apt/auth.conf.d\"");
    return 0;
}

/* Names each of the host's source files; mmdebstrap reads them itself. */
static int add_sources(struct line *line, error *err)
{
    static const char *const patterns[] = {
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d/*.list",
        "/etc/apt/sources.list.d/*.sources",
    };
    size_t found = 0;
    for_each(pattern, patterns) {
        glob_t files;
        if (glob(*pattern, 0, NULL, &files) != 0) /* NOLINT(concurrency-mt-unsafe): one thread */
            continue;
        for (size_t index = 0; index < files.gl_pathc; index++) {
            struct stat status;
            if (stat(files.gl_pathv[index], &status) < 0 || status.st_size == 0)
                continue;
            add_argument(line, "%s", files.gl_pathv[index]);
            found++;
        }
        globfree(&files);
    }
    if (found == 0)
        return fail(err, ERR_UNAVAILABLE,
                    "this machine has no apt sources in /etc/apt; add some, or build from its own "
                    "packages: --base host-copy");
    return 0;
}

static bool says_any(const char *text, const char *const *words, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (strstr(text, words[index]))
            return true;
    return false;
}

/* Gives the first line of what was said that has one of these words in it, from "E: " on. */
static bool find_line(const char *said, const char *const *words, size_t count, char *text,
                      size_t size)
{
    while (*said) {
        size_t length = strcspn(said, "\n");
        (void) snprintf(text, size, "%.*s", (int) length, said);
        if (says_any(text, words, count)) {
            if (strncmp(text, "E: ", 3) == 0)
                memmove(text, text + 3, strlen(text + 3) + 1);
            return true;
        }
        said += length + (said[length] == '\n');
    }
    text[0] = '\0';
    return false;
}

/* What mmdebstrap said becomes a cause and a fix. */
static int explain(const char *tail, error *err)
{
    static const char *const network[] = {
        "Could not resolve",  "Temporary failure",      "Could not connect",
        "Connection refused", "Connection timed out",   "Failed to fetch",
        "Unable to connect",  "Network is unreachable", "Some index files failed",
    };
    static const char *const no_ids[] = { "newuidmap", "subuid", "subgid", "unshare", "uidmap" };
    static const char *const no_package[] = { "Unable to locate package",
                                              "has no installation candidate" };
    static const char *const any[] = { "E: " };
    char said[120];
    if (find_line(tail, no_package, COUNT_OF(no_package), said, sizeof(said)))
        return fail(err, ERR_BAD_REQUEST, "%s; correct `packages` in the YAML file", said);
    if (says_any(tail, network, COUNT_OF(network)))
        return fail(
            err, ERR_UNAVAILABLE,
            "the package mirrors cannot be reached; check the network and `apt update`, or build "
            "from this machine's own packages: --base host-copy");
    if (geteuid() != 0 && says_any(tail, no_ids, COUNT_OF(no_ids)))
        return fail(
            err, ERR_UNAVAILABLE,
            "mmdebstrap cannot map ids; as root: apt install uidmap && usermod --add-subuids "
            "100000-165535 --add-subgids 100000-165535 USER; or: --base host-copy");
    if (strstr(tail, "No space left"))
        return fail(err, ERR_UNAVAILABLE, "the disk is full; make room");
    (void) find_line(tail, any, COUNT_OF(any), said, sizeof(said));
    return fail(err, ERR_UNAVAILABLE, "mmdebstrap failed: %s; try it by hand for the whole story",
                said);
}

/* Files of a user namespace belong to ids that are not the user's: the user gets them as a tar
 * file. */
static int extract(struct build *build, const char *archive, error *err)
{
    char program[] = "tar", verb[] = "-xf", where[] = "-C", no_owner[] = "--no-same-owner",
         no_devices[] = "--exclude=./dev/*", rights[] = "--no-same-permissions",
         later[] = "--delay-directory-restore";
    char *file = strdup(archive);
    char *arguments[] = { program,  verb,       file,   where, build->root_path,
                          no_owner, no_devices, rights, later, NULL };
    struct tool tool = { .arguments = arguments };
    int result = 0;
    if (mkdirat(build->place, "root", 0755) < 0)
        result = fail_os(err, "make the new root");
    else if (tool_run(&tool, err) < 0)
        result = under(err, "unpack '%s'", archive);
    (void) unlink(archive);
    free(file);
    return result;
}

static int run_mmdebstrap(struct build *build, struct line *line, error *err)
{
    bool as_root = geteuid() == 0;
    char archive[PATH_MAX + 8];
    (void) snprintf(archive, sizeof(archive), "%s.tar", build->root_path);
    add_argument(line, "mmdebstrap");
    add_argument(line, "--mode=%s", as_root ? "root" : "unshare");
    add_argument(line, "--format=%s", as_root ? "directory" : "tar");
    for_each(option, fixed_options)
        add_argument(line, "%s", *option);
    add_packages(line, build);
    add_left_out(line, build);
    if (add_host_settings(line, err) < 0)
        return -1;
    add_argument(line, "--");
    add_argument(line, "%s", ""); /* the sources say which release */
    add_argument(line, "%s", as_root ? build->root_path : archive);
    if (add_sources(line, err) < 0)
        return -1;
    if (line->full)
        return fail(err, ERR_TOO_LARGE, "more than %d packages, sources and settings",
                    ARGUMENTS_MOST);
    struct tool tool = {
        .arguments = line->arguments,
        .apart = as_root,
        .line = build_says,
        .context = build,
    };
    if (tool_run(&tool, err) < 0)
        return tool_interrupted || !*tool.tail ? -1 : explain(tool.tail, err);
    return as_root ? 0 : extract(build, archive, err);
}

int unpack_debian(struct build *build, error *err)
{
    if (!tool_exists("mmdebstrap") || !tool_exists("apt-config"))
        return fail(
            err, ERR_UNAVAILABLE,
            "mmdebstrap is not installed; as root: apt install mmdebstrap; or build from this "
            "machine's own packages: --base host-copy");
    struct line line = { .count = 0 };
    int result = run_mmdebstrap(build, &line, err);
    line_done(&line);
    return result;
}
