/* install_paths.c - finds the parts of glovebox: by variable, beside it, or as installed. */
#include "supervisor/install_paths.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int format_text(char **ret_text, error *err, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = NULL;
    int length = vasprintf(&text, format, values);
    va_end(values);
    if (length < 0 || !text)
        return fail(err, ERR_INTERNAL, "out of memory");
    *ret_text = text;
    return 0;
}

/* Relative paths are made absolute, since the programs of glovebox start in "/". */
static int absolute(const char *path, char **ret_path, error *err)
{
    if (path[0] == '/')
        return format_text(ret_path, err, "%s", path);
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        return fail_os(err, "find the current folder");
    return format_text(ret_path, err, "%s/%s", here, path);
}

/* The same for each folder of a list separated by colons; empty ones are left out. */
static int absolute_list(const char *list, char **ret_list, error *err)
{
    auto_text whole = NULL;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ":");
        auto_text part = NULL;
        auto_text folder = NULL;
        char *longer = NULL;
        if (format_text(&part, err, "%.*s", (int) length, at) < 0)
            return -1;
        assert(part);
        if ((length > 0 && absolute(part, &folder, err) < 0) ||
            (length > 0 &&
             format_text(&longer, err, "%s%s%s", whole ? whole : "", whole ? ":" : "", folder) < 0))
            return -1;
        if (longer) {
            free(whole);
            whole = longer;
        }
        at += length + (at[length] == ':');
    }
    *ret_list = take_text(&whole);
    return *ret_list ? 0 : fail(err, ERR_BAD_REQUEST, "'%s' names no folder", list);
}

static const char own_name[] = "glovebox"; /* for dladdr(3): an address in this object */

/* The folder of libglovebox.so if this code is in it, else that of the running program. */
static int own_folder(char **ret_folder, error *err)
{
    char place[PATH_MAX];
    Dl_info about = { 0 };
    const char *name = NULL;
    if (dladdr(own_name, &about) != 0 && about.dli_fname)
        name = strrchr(about.dli_fname, '/');
    if (name && strncmp(name + 1, "libglovebox", strlen("libglovebox")) == 0) {
        if (!realpath(about.dli_fname, place))
            return fail_os(err, "find the folder of '%s'", about.dli_fname);
    } else {
        ssize_t length = readlink("/proc/self/exe", place, sizeof place - 1);
        if (length < 0)
            return fail_os(err, "read /proc/self/exe");
        place[length] = '\0';
    }
    char *slash = strrchr(place, '/');
    if (slash)
        *slash = '\0';
    return format_text(ret_folder, err, "%s", place);
}

/* Looks for `name` in the folder of the variable, next to the program, in the installed folder. */
static int find_part(const char *folder_variable, const char *installed, const char *name,
                     char **ret_path, error *err)
{
    const char *chosen = environment_text(folder_variable);
    auto_text folder = NULL;
    auto_text path = NULL;
    if (chosen) {
        if (absolute(chosen, &folder, err) < 0 ||
            format_text(&path, err, "%s/%s", folder, name) < 0)
            return -1;
        if (access(path, F_OK) < 0)
            return fail(err, ERR_UNAVAILABLE, "there is no '%s'; %s points to the wrong folder",
                        path, folder_variable);
        *ret_path = take_text(&path);
        return 0;
    }
    if (own_folder(&folder, err) < 0 || format_text(&path, err, "%s/%s", folder, name) < 0)
        return -1;
    if (access(path, F_OK) < 0) {
        free(path);
        path = NULL;
        if (format_text(&path, err, "%s/%s", installed, name) < 0)
            return -1;
    }
    if (access(path, F_OK) < 0)
        return fail(err, ERR_UNAVAILABLE,
                    "cannot find %s next to the program or in %s; install glovebox again or set %s",
                    name, installed, folder_variable);
    *ret_path = take_text(&path);
    return 0;
}

int path_of_program(const char *name, char **ret_path, error *err)
{
    return find_part("GLOVEBOX_LIBEXEC", GLOVEBOX_LIBEXECDIR, name, ret_path, err);
}

int path_of_data(const char *name, char **ret_path, error *err)
{
    return find_part("GLOVEBOX_DATA", GLOVEBOX_DATADIR, name, ret_path, err);
}

int path_of_python(char **ret_path, error *err)
{
    if (find_part("GLOVEBOX_DATA", GLOVEBOX_LIBDIR, "python/_glovebox.abi3.so", ret_path, err) < 0)
        return -1;
    *strrchr(*ret_path, '/') = '\0';
    return 0;
}

/* STATE/policies comes last: it has the host sets that glovebox writes itself. */
static int list_policies(const char *chosen_state, char **ret_path, error *err)
{
    auto_text state = NULL;
    auto_text shipped = NULL;
    if (path_of_state(chosen_state, &state, err) < 0)
        return -1;
    const char *chosen = environment_text("GLOVEBOX_POLICIES");
    auto_text folders = NULL;
    if (chosen)
        return absolute_list(chosen, &folders, err) < 0
                   ? under(err, "GLOVEBOX_POLICIES")
                   : format_text(ret_path, err, "%s:%s/policies", folders, state);
    if (path_of_data("policies", &shipped, err) < 0)
        return -1;
    return format_text(ret_path, err, "%s:%s:%s/policies", GLOVEBOX_SYSCONFDIR "/policies", shipped,
                       state);
}

int path_of_public_sets(char **ret_path, error *err)
{
    return path_of_data("policies/public", ret_path, err);
}

/* The folder of public sets, which has no policies, comes after all others. */
int path_of_policies_of(const char *chosen_state, char **ret_path, error *err)
{
    auto_text folders = NULL;
    auto_text sets = NULL;
    error unheard;
    if (list_policies(chosen_state, &folders, err) < 0)
        return -1;
    bool has_sets = path_of_public_sets(&sets, &unheard) == 0;
    return format_text(ret_path, err, has_sets ? "%s:%s" : "%s", folders, sets);
}

int path_of_policies(char **ret_path, error *err)
{
    return path_of_policies_of(NULL, ret_path, err);
}

int path_of_policies_told(const char *chosen_state, char **ret_text, error *err)
{
    auto_text path = NULL;
    auto_text told = NULL;
    if (list_policies(chosen_state, &path, err) < 0)
        return -1;
    assert(path);
    bool is_chosen = environment_text("GLOVEBOX_POLICIES");
    for (const char *at = path; *at;) {
        int length = (int) strcspn(at, ":");
        bool is_last = !at[length], is_first = at == path;
        const char *whose = is_last     ? "the state's"
                            : is_chosen ? "of GLOVEBOX_POLICIES"
                            : is_first  ? "the operator's"
                                        : "came with glovebox";
        char *longer = NULL;
        if (format_text(&longer, err, "%s%s%.*s (%s)", told ? told : "", told ? ", " : "", length,
                        at, whose) < 0)
            return -1;
        free(told);
        told = longer;
        at += length + !is_last;
    }
    *ret_text = take_text(&told);
    return 0;
}

int path_of_own_state(char **ret_path, error *err)
{
    const char *states = environment_text("XDG_STATE_HOME");
    if (states && states[0] == '/')
        return format_text(ret_path, err, "%s/glovebox", states);
    const char *home = environment_text("HOME");
    if (home && home[0] == '/' && access(home, W_OK | X_OK) == 0)
        return format_text(ret_path, err, "%s/.local/state/glovebox", home);
    return format_text(ret_path, err, "/tmp/.glovebox-%u/state", geteuid());
}

int path_of_state(const char *chosen, char **ret_path, error *err)
{
    if (!chosen || !*chosen)
        chosen = environment_text("GLOVEBOX_STATE");
    if (chosen)
        return absolute(chosen, ret_path, err);
    if (geteuid() == 0)
        return format_text(ret_path, err, "/var/lib/glovebox");
    const char *states = environment_text("XDG_STATE_HOME");
    if (states && states[0] == '/')
        return format_text(ret_path, err, "%s/glovebox", states);
    const char *home = environment_text("HOME");
    if (!home || home[0] != '/')
        return fail(err, ERR_UNAVAILABLE,
                    "HOME is not set; say where to keep templates: --state DIR");
    return format_text(ret_path, err, "%s/.local/state/glovebox", home);
}

int path_of_templates(const char *chosen_state, char **ret_path, error *err)
{
    auto_text state = NULL;
    if (path_of_state(chosen_state, &state, err) < 0)
        return -1;
    return format_text(ret_path, err, "%s/templates", state);
}

/* The folder of sockets and locks, which do not survive a reboot. */
static int path_of_runtime(const char *chosen_state, char **ret_path, error *err)
{
    const char *chosen = environment_text("GLOVEBOX_RUNTIME");
    if (chosen)
        return absolute(chosen, ret_path, err);
    if (geteuid() == 0)
        return format_text(ret_path, err, "/run/glovebox");
    const char *runtime = environment_text("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/' && access(runtime, W_OK | X_OK) == 0)
        return format_text(ret_path, err, "%s/glovebox", runtime);
    auto_text state = NULL;
    if (path_of_state(chosen_state, &state, err) < 0)
        return -1;
    return format_text(ret_path, err, "%s/run", state);
}

int path_of_socket(const char *chosen_state, char **ret_path, error *err)
{
    const char *chosen = environment_text("GLOVEBOX_SOCKET");
    if (chosen && place_is_address(chosen))
        return format_text(ret_path, err, "%s", chosen);
    if (chosen)
        return absolute(chosen, ret_path, err);
    auto_text runtime = NULL;
    if (path_of_runtime(chosen_state, &runtime, err) < 0)
        return -1;
    return format_text(ret_path, err, "%s/glovebox.sock", runtime);
}

static int fail_folder(const char *path, error *err)
{
    return errno != ENOTDIR
               ? fail_os(err, "make folder '%s'", path)
               : fail(err, ERR_BAD_REQUEST, "'%s': a part of that path is a file", path);
}

int make_folder(const char *path, unsigned mode, error *err)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return fail_folder(path, err);
    auto_text above = NULL;
    if (format_text(&above, err, "%s", path) < 0)
        return -1;
    assert(above);
    for (char *slash = strchr(above + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(above, 0755) < 0 && errno != EEXIST)
            return fail_folder(above, err);
        *slash = '/';
    }
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return fail_folder(path, err);
    return 0;
}

bool place_is_address(const char *place)
{
    const char *colon = strrchr(place, ':');
    return colon && colon > place && !strchr(place, '/') && colon[1] != '\0' &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}
