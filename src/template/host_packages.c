/* host_packages.c - one call of dpkg-query, then a walk over dependencies. */
#include "template/host_packages.h"

#include "base/cleanup.h"
#include "template/tool.h"

#include <stdlib.h>
#include <string.h>

static const char question[] = "-f=${db:Status-Abbrev}\\t${Package}\\t${binary:Package}\\t${"
                               "Architecture}\\t${Version}\\t${Essential}\\t"
                               "${Provides}\\t${Pre-Depends}, ${Depends}\\n";

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct host_name *) left)->name,
                  ((const struct host_name *) right)->name);
}

static int add_name(struct host_packages *all, const char *name, size_t package)
{
    if (all->name_count == all->name_room) {
        size_t room = all->name_room ? all->name_room * 2 : 1024;
        struct host_name *names = reallocarray(all->names, room, sizeof(*names));
        if (!names)
            return -1;
        all->names = names;
        all->name_room = room;
    }
    all->names[all->name_count++] = (struct host_name){ .name = name, .package = package };
    return 0;
}

/* Gives the next name of "a (>= 1), b | c", and moves after its separator; NULL at the end. */
static char *next_name(char **rest, char *ret_separator)
{
    char *start = *rest + strspn(*rest, " ,|");
    if (*start == '\0')
        return NULL;
    size_t length = strcspn(start, ",|");
    char *end = start + length;
    *ret_separator = *end;
    *rest = *end ? end + 1 : end;
    *end = '\0';
    start[strcspn(start, " (:")] = '\0';
    return start;
}

static int note_line(struct host_packages *all, char *line, const char *architecture)
{
    enum { STATUS, NAME, OWN_NAME, ARCHITECTURE, VERSION, ESSENTIAL, PROVIDES, NEEDS, FIELDS };
    char *field[FIELDS];
    for (size_t index = 0; index < FIELDS; index++) {
        field[index] = strsep(&line, "\t");
        if (!field[index])
            return 0;
    }
    bool ours =
        strcmp(field[ARCHITECTURE], "all") == 0 || strcmp(field[ARCHITECTURE], architecture) == 0;
    if (strncmp(field[STATUS], "ii", 2) != 0 || !ours)
        return 0;
    size_t index = all->count++;
    all->packages[index] = (struct host_package){
        .name = field[NAME],
        .own_name = field[OWN_NAME],
        .version = field[VERSION],
        .needs = field[NEEDS],
        .essential = strcmp(field[ESSENTIAL], "yes") == 0,
    };
    if (add_name(all, field[NAME], index) < 0)
        return -1;
    char separator;
    char *rest = field[PROVIDES];
    for (char *name = next_name(&rest, &separator); name; name = next_name(&rest, &separator))
        if (add_name(all, name, index) < 0)
            return -1;
    return 0;
}

static int ask(char **arguments, char **ret_text, error *err)
{
    struct tool tool = { .arguments = arguments };
    return tool_read(&tool, ret_text, err);
}

int host_packages_read(struct host_packages *ret_all, error *err)
{
    char dpkg[] = "dpkg", which[] = "--print-architecture";
    char query[] = "dpkg-query", show[] = "-W";
    char *format = strdup(question);
    char *first[] = { dpkg, which, NULL }, *second[] = { query, show, format, NULL };
    auto_text architecture = NULL;
    *ret_all = (struct host_packages){ 0 };
    int result = ask(first, &architecture, err);
    if (result == 0)
        result = ask(second, &ret_all->text, err);
    free(format);
    if (result < 0)
        return under(err, "host-copy needs a machine with dpkg");
    architecture[strcspn(architecture, "\n")] = '\0';
    size_t lines = 1;
    for (const char *byte = ret_all->text; *byte; byte++)
        lines += *byte == '\n';
    ret_all->packages = calloc(lines, sizeof(*ret_all->packages));
    char *rest = ret_all->text;
    for (char *line = strsep(&rest, "\n"); line && ret_all->packages; line = strsep(&rest, "\n"))
        if (note_line(ret_all, line, architecture) < 0)
            break;
    if (ret_all->count == 0) {
        host_packages_done(ret_all);
        return fail(err, ERR_UNAVAILABLE, "dpkg lists no packages on this machine");
    }
    qsort(ret_all->names, ret_all->name_count, sizeof(*ret_all->names), by_name);
    return 0;
}

void host_packages_done(struct host_packages *all)
{
    free(all->names);
    free(all->packages);
    free(all->text);
    *all = (struct host_packages){ 0 };
}

static struct host_package *find(const struct host_packages *all, const char *name)
{
    const struct host_name wanted = { .name = name };
    const struct host_name *found =
        bsearch(&wanted, all->names, all->name_count, sizeof(wanted), by_name);
    return found ? &all->packages[found->package] : NULL;
}

/* Marks the dependencies of a package: of alternatives, the first that is installed. One that is
 * missing is ignored: the operator of this machine has forced that. Returns how many are new. */
static size_t want_needs(struct host_packages *all, struct host_package *package)
{
    size_t fresh = 0;
    bool met = false;
    char separator;
    char *rest = package->needs;
    for (char *name = next_name(&rest, &separator); name; name = next_name(&rest, &separator)) {
        struct host_package *needed = met ? NULL : find(all, name);
        if (needed) {
            fresh += !needed->wanted;
            needed->wanted = true;
        }
        met = separator == '|' && (met || needed);
    }
    *package->needs = '\0';
    return fresh;
}

int host_packages_want(struct host_packages *all, const char *name, error *err)
{
    struct host_package *package = find(all, name);
    if (!package)
        return fail(
            err, ERR_UNAVAILABLE,
            "package %s is not installed on this machine, so it cannot be copied; as root: apt "
            "install %s",
            name, name);
    package->wanted = true;
    size_t fresh = 1;
    while (fresh > 0) {
        fresh = 0;
        for (size_t index = 0; index < all->count; index++)
            if (all->packages[index].wanted && *all->packages[index].needs)
                fresh += want_needs(all, &all->packages[index]) + 1;
    }
    return 0;
}
