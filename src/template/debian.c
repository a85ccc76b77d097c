/* debian.c - makes a new root from Debian packages: fetched with the host's own apt, installed
 * behind walls.
 *
 * The mirrors are those of apt on this machine. apt fetches packages, checks signatures and gives
 * the order of installation. Maintainer scripts may do anything, so no code of a package runs
 * before it is cut off from the network and the host. */
#include "template/build.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "template/approved.h"
#include "template/tool.h"
#include "template/tree.h"
#include "template/walls.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 320 };

#define SCRIPT_START                                                               \
    "set -e; umask 022\n"                                                          \
    "export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TZ=UTC\n" \
    "export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true DPKG_COLORS=never\n"

/* A command line, growing. */
struct line {
    char *arguments[ARGUMENTS_MAX + 1];
    size_t count;
    bool full;
};

static void line_done(struct line *line)
{
    for (size_t index = 0; index < line->count; index++)
        free(line->arguments[index]);
}

#define auto_line __attribute__((cleanup(line_done))) struct line

static void add_argument(struct line *line, const char *format, ...) PRINTF(2, 3);

static void add_argument(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = NULL;
    if (line->count == ARGUMENTS_MAX || vasprintf(&text, format, values) < 0)
        line->full = true;
    else
        line->arguments[line->count++] = text;
    va_end(values);
}

/* Begins a command line of the host's apt, with its sources, keys, proxies and passwords, but with
 * the build's own lists, archives and list of installed packages, which is empty. */
static void begin_apt(struct line *line, const struct build *build, const char *architecture)
{
    static const char *const options[] = {
        "APT::Install-Recommends=false", "Acquire::Languages=none", "Acquire::Retries=2",
        "Acquire::http::Timeout=20", "Acquire::https::Timeout=20", "APT::Sandbox::User=root",
        "Dir::State=state", "Dir::State::status=status", "Dir::Cache=cache",
        "Dir::Cache::archives=archives",
        /* Container images disable these caches, and then each call would parse all lists again. */
        "Dir::Cache::pkgcache=pkgcache.bin", "Dir::Cache::srcpkgcache=srcpkgcache.bin",
        "Acquire::GzipIndexes=false", "Debug::NoLocking=true", "APT::Get::Assume-Yes=true",
        "pkgCacheGen::ForceEssential=,", /* apt is not essential in a template */
    };
    add_argument(line, "apt-get");
    add_argument(line, "-qq");
    for_each(option, options) {
        const char *name = strrchr(*option, '=');
        bool is_place = strncmp(*option, "Dir::", 5) == 0;
        add_argument(line, "-o%.*s=%s%s%s", (int) (name - *option), *option,
                     is_place ? build->root_path : "", is_place ? ".apt/" : "", name + 1);
    }
    add_argument(line, "-oAPT::Architecture=%s", architecture);
    add_argument(line, "-oAPT::Architectures=%s", architecture);
}

static void add_packages(struct line *line, const struct build *build)
{
    struct json_object *packages = build_key(build, "packages");
    for (size_t index = 0; index < json_object_array_length(packages); index++)
        add_argument(line, "%s",
                     json_object_get_string(json_object_array_get_idx(packages, index)));
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        if (strcmp(approved_text(row, "manager"), "apt") == 0)
            add_argument(line, "%s=%s", approved_text(row, "name"), approved_text(row, "version"));
    }
}

static bool says_any(const char *text, const char *const *words, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (strstr(text, words[index]))
            return true;
    return false;
}

/* Finds the first line of the output that has one of these words; gives it from "E: " on. */
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

/* Makes a cause and a fix from the output of apt or dpkg. */
static int explain(const char *program, struct tool *tool, error *err)
{
    static const char *const network[] = {
        "Could not resolve",  "Temporary failure",      "Could not connect",
        "Connection refused", "Connection timed out",   "Failed to fetch",
        "Unable to connect",  "Network is unreachable", "Some index files failed",
    };
    static const char *const no_package[] = { "Unable to locate package",
                                              "has no installation candidate" };
    static const char *const any[] = { "E: ", "error exit status", "dpkg: error", "tar: " };
    char said[120];
    if (find_line(tool->tail, no_package, COUNT_OF(no_package), said, sizeof(said)))
        return fail(err, ERR_BAD_REQUEST, "%s; correct `packages` in the YAML file", said);
    if (says_any(tool->tail, network, COUNT_OF(network)))
        return fail(
            err, ERR_UNAVAILABLE,
            "the package mirrors cannot be reached; check the network and `apt update`, or build "
            "from this machine's own packages: --base host-copy");
    if (strstr(tool->tail, "No space left"))
        return fail(err, ERR_UNAVAILABLE, "the disk is full; make room");
    (void) find_line(tool->tail, any, COUNT_OF(any), said, sizeof(said));
    return fail(err, ERR_UNAVAILABLE, "%s failed: %s", program,
                *said ? said : tool_last_line(tool));
}

static int run_line(struct build *build, struct line *line, char **ret_text, error *err)
{
    if (line->full)
        return fail(err, ERR_TOO_LARGE, "more than %d packages", ARGUMENTS_MAX);
    struct tool tool = { .arguments = line->arguments, .line = build_says, .context = build };
    if ((ret_text ? tool_read(&tool, ret_text, err) : tool_run(&tool, err)) == 0)
        return 0;
    return tool_interrupted || !*tool.tail ? -1 : explain(line->arguments[0], &tool, err);
}

/* The length of the name after "Inst " or "Conf ", without an architecture. */
static int name_length(const char *line)
{
    return (int) strcspn(line, " :");
}

/* Adds all packages of the recipe, and the essential ones with what they need. These are named,
 * since a package of the recipe may otherwise replace one (gawk for mawk), which would then be
 * missing when it is unpacked before dpkg runs. */
static void add_all(struct line *line, const struct build *build, const char *essential)
{
    for (const char *at = essential; (at = strstr(at, "Inst ")); at += 5)
        add_argument(line, "%.*s", name_length(at + 5), at + 5);
    add_packages(line, build);
}

/* Reads the order in which apt would install all packages: "Inst NAME (…", "Conf NAME (…". Without
 * `essential`: only the essential packages and what they need. */
static int read_order(struct build *build, const char *architecture, const char *essential,
                      char **ret_text, error *err)
{
    auto_line line = { .count = 0 };
    begin_apt(&line, build, architecture);
    add_argument(&line, "--simulate");
    add_argument(&line, "install");
    add_argument(&line, "?essential");
    if (essential)
        add_all(&line, build, essential);
    return run_line(build, &line, ret_text, err);
}

static int fetch_lists(struct build *build, const char *architecture, error *err)
{
    static const char *const folders[] = { "root.apt/state/lists/partial",
                                           "root.apt/archives/partial", "root.apt/cache" };
    auto_line update = { .count = 0 };
    for_each(folder, folders)
        if (tree_make_directory(build->place, *folder, err) < 0)
            return -1;
    if (tree_write_file(build->place, "root.apt/status", "", 0, err) < 0)
        return -1;
    begin_apt(&update, build, architecture);
    add_argument(&update, "--error-on=any");
    add_argument(&update, "update");
    build_says(build, "fetching lists");
    return run_line(build, &update, NULL, err);
}

static int fetch_packages(struct build *build, const char *architecture, const char *essential,
                          error *err)
{
    auto_line download = { .count = 0 };
    begin_apt(&download, build, architecture);
    add_argument(&download, "--download-only");
    add_argument(&download, "install");
    add_argument(&download, "?essential");
    add_all(&download, build, essential);
    build_says(build, "fetching packages");
    return run_line(build, &download, NULL, err);
}

static bool has_name(const char *order, const char *name, int length)
{
    for (const char *at = order; (at = strstr(at, "Inst ")); at += 5)
        if (name_length(at + 5) == length && strncmp(at + 5, name, (size_t) length) == 0)
            return true;
    return false;
}

/* The essential packages are first unpacked with the host's programs, since nothing runs in the new
 * root without them. dpkg then installs these and the others. */
static void write_begin(FILE *out, const char *essential)
{
    (void) fputs(SCRIPT_START "cd /tmp/tree\n"
                              "mkdir -p dev proc tmp\n"
                              "for one in",
                 out);
    for (const char *at = essential; (at = strstr(at, "Inst ")); at += 5)
        (void) fprintf(out, " %.*s", name_length(at + 5), at + 5);
    (void) fputs("; do dpkg-deb --fsys-tarfile /tmp/archives/${one}_*.deb | "
                 "tar -x --numeric-owner --keep-directory-symlink --exclude='./usr/share/man/*' "
                 "--exclude='./usr/share/doc/*' --exclude='./usr/share/info/*' "
                 "--exclude='./usr/share/locale/*' -f -; done\n"
                 "mkdir -p var/lib/dpkg/info var/lib/dpkg/updates etc/dpkg/dpkg.cfg.d usr/sbin\n"
                 "touch var/lib/dpkg/status var/lib/dpkg/available\n"
                 "printf '#!/bin/sh\\nexit 101\\n' > usr/sbin/policy-rc.d\n"
                 "chmod 755 usr/sbin/policy-rc.d\n",
                 out);
}

/* dpkg leaves out documentation; strip_tree() removes the rest of it. It also leaves out
 * py3compile: scripts of packages compile Python files if it exists, but prepare.c does that
 * without the current time. Of the recipe's `leave_out`, only plain paths are passed on, since
 * dpkg's '*' also matches
 * '/'; strip_tree() removes the others. */
static void write_options(FILE *out, const struct build *build)
{
    static const char *const excluded[] = { "usr/share/doc/*", "usr/share/man/*",
                                            "usr/share/info/*", "usr/share/locale/*",
                                            "usr/bin/py3compile" };
    (void) fputs("cat > etc/dpkg/dpkg.cfg.d/glovebox <<'END'\nforce-unsafe-io\n", out);
    for_each(path, excluded)
        (void) fprintf(out, "path-exclude=/%s\n", *path);
    struct json_object *patterns = build_key(build, "leave_out");
    for (size_t index = 0; index < json_object_array_length(patterns); index++) {
        const char *path = json_object_get_string(json_object_array_get_idx(patterns, index));
        if (!strpbrk(path, "*?[\\\n"))
            (void) fprintf(out, "path-exclude=/%s/*\n", path);
    }
    (void) fputs("END\n", out);
}

static void write_install(FILE *out, const char *essential, const char *order)
{
    static const char unpack[] = "dpkg --no-triggers --unpack";
    static const char configure[] = "dpkg --no-triggers --configure";
    const char *now = "dpkg --force-depends --install";
    (void) fprintf(out, SCRIPT_START "%s", now);
    for (const char *at = essential; (at = strstr(at, "Inst ")); at += 5)
        (void) fprintf(out, " /tmp/archives/%.*s_*.deb", name_length(at + 5), at + 5);
    for (const char *line = order; *line; line += strcspn(line, "\n") + 1) {
        bool is_unpacked = strncmp(line, "Inst ", 5) == 0;
        const char *name = line + 5;
        int length = name_length(name);
        const char *wanted = is_unpacked ? unpack : configure;
        if ((!is_unpacked && strncmp(line, "Conf ", 5) != 0) || has_name(essential, name, length))
            continue;
        if (wanted != now)
            (void) fprintf(out, "\n%s", wanted);
        now = wanted;
        (void) fprintf(out, is_unpacked ? " /tmp/archives/%.*s_*.deb" : " %.*s", length, name);
        if (!strchr(line, '\n'))
            break;
    }
    (void) fputs("\ndpkg --configure --pending\nrm -f /usr/sbin/policy-rc.d\n", out);
}

/* Runs a script behind the walls. The tree is its root, or, with the host's programs, /tmp/tree;
 * the archives are in /tmp/archives. */
static int run_script(struct build *build, char *script, bool in_tree, error *err)
{
    static char *const variables[] = { NULL };
    char shell[] = "/bin/sh", option[] = "-c", archives[PATH_MAX + 32];
    char *arguments[] = { shell, option, script, NULL };
    (void) snprintf(archives, sizeof archives, "%s.apt/archives", build->root_path);
    const struct walls_bind binds[] = {
        { archives, "tmp/archives", false },
        { in_tree ? NULL : build->root_path, "tmp/tree", true },
        { 0 },
    };
    const struct walls walls = {
        .root = in_tree ? build->root_path : NULL,
        .binds = binds,
        .disk = build->root_path,
        .keeps_owners = true,
    };
    struct tool tool = {
        .arguments = arguments,
        .variables = variables,
        .walls = &walls,
        .line = build_says,
        .context = build,
    };
    if (tool_run(&tool, err) == 0)
        return 0;
    return tool_interrupted || !*tool.tail ? -1 : explain("dpkg", &tool, err);
}

static int install(struct build *build, const char *essential, const char *order, error *err)
{
    auto_text begin = NULL;
    auto_text rest = NULL;
    size_t size;
    FILE *out = open_memstream(&begin, &size);
    if (!out)
        return fail_os(err, "write the steps");
    write_begin(out, essential);
    write_options(out, build);
    bool is_whole = fclose(out) == 0;
    out = open_memstream(&rest, &size);
    if (!out)
        return fail_os(err, "write the steps");
    write_install(out, essential, order);
    if (fclose(out) != 0 || !is_whole)
        return fail_os(err, "write the steps");
    return run_script(build, begin, false, err) < 0 ? -1 : run_script(build, rest, true, err);
}

/* An ordinary user can neither read nor remove files of other ids of the range in subuid(5): all
 * files are given to the user, also after a failure. */
static int take_back(struct build *build, error *err)
{
    char script[] = SCRIPT_START "chown -R -h 0:0 /tmp/tree; chmod -R u+rwX /tmp/tree\n";
    sig_atomic_t interrupted = tool_interrupted;
    tool_interrupted = 0;
    int result = run_script(build, script, false, err);
    tool_interrupted |= interrupted;
    return result;
}

static int make_root(struct build *build, error *err)
{
    uid_t owner = walls_owner();
    if (mkdirat(build->place, "root", 0755) < 0 ||
        (owner != geteuid() &&
         fchownat(build->place, "root", owner, owner, AT_SYMLINK_NOFOLLOW) < 0))
        return fail_os(err, "make the new root");
    return 0;
}

static int read_architecture(char architecture[32], error *err)
{
    char name[] = "dpkg", verb[] = "--print-architecture";
    char *arguments[] = { name, verb, NULL };
    struct tool tool = { .arguments = arguments };
    auto_text text = NULL;
    if (tool_read(&tool, &text, err) < 0)
        return -1;
    (void) snprintf(architecture, 32, "%.*s", (int) strcspn(text, "\n"), text);
    return 0;
}

int unpack_debian(struct build *build, error *err)
{
    auto_text essential = NULL;
    auto_text order = NULL;
    char architecture[32];
    if (!tool_exists("apt-get") || !tool_exists("dpkg-deb"))
        return fail(
            err, ERR_UNAVAILABLE,
            "this machine has no apt; build from copies of its own files: --base host-copy");
    if (read_architecture(architecture, err) < 0 || make_root(build, err) < 0 ||
        fetch_lists(build, architecture, err) < 0 ||
        read_order(build, architecture, NULL, &essential, err) < 0 ||
        fetch_packages(build, architecture, essential, err) < 0 ||
        read_order(build, architecture, essential, &order, err) < 0)
        return -1;
    error unheard;
    int result = install(build, essential, order, err);
    if (take_back(build, result == 0 ? err : &unheard) < 0 || result < 0)
        return -1;
    return tree_remove(build->place, "root.apt", err);
}
