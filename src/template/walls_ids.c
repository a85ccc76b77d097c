/* walls_ids.c - the host's ids for a build: root's builds have a block of their own; an ordinary
 * user's have that user's id and, for packages of Debian, the range in subuid(5). */
#include "template/walls.h"

#include "base/cleanup.h"
#include "model/ids.h"
#include "supervisor/host_features.h"
#include "template/tool.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uid_t walls_owner(void)
{
    return host_grants_privileges() ? HOST_ID_BUILDS : geteuid();
}

static int write_map(pid_t child, const char *name, const char *text, error *err)
{
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/%d/%s", child, name);
    auto_fd file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        return fail_os(err, "map the ids of the build: write '%s' to %s", text, name);
    return 0;
}

/* The first range of this user in /etc/subuid or /etc/subgid: name:first:count. */
static int find_range(const char *path, unsigned long *ret_first, unsigned long *ret_count)
{
    char line[256], id[24];
    const struct passwd *user = getpwuid(geteuid()); /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *name = user ? user->pw_name : "";
    (void) snprintf(id, sizeof id, "%u", geteuid());
    FILE *file = fopen(path, "re");
    int result = -1;
    while (file && result < 0 && fgets(line, sizeof line, file)) {
        char *first = strchr(line, ':');
        if (!first)
            continue;
        *first++ = '\0';
        char *end = NULL;
        *ret_first = strtoul(first, &end, 10);
        *ret_count = *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
        if ((strcmp(line, name) == 0 || strcmp(line, id) == 0) && *ret_count >= 65535)
            result = 0;
    }
    if (file)
        (void) fclose(file);
    return result;
}

/* newuidmap(1) and newgidmap(1) map the ranges of /etc/subuid and /etc/subgid. */
static int map_range(const char *program, const char *path, unsigned self, pid_t child, error *err)
{
    unsigned long first, count;
    char name[16], texts[7][24];
    if (find_range(path, &first, &count) < 0 || !tool_exists(program))
        return fail(err, ERR_UNAVAILABLE,
                    "packages of Debian need ids of their own; as root: apt install uidmap && "
                    "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER; or: "
                    "--base host-copy");
    const unsigned long numbers[] = { (unsigned long) child, 0, self, 1, 1, first, 65535 };
    (void) snprintf(name, sizeof name, "%s", program);
    char *arguments[9] = { name };
    for (size_t index = 0; index < 7; index++) {
        (void) snprintf(texts[index], sizeof texts[index], "%lu", numbers[index]);
        arguments[index + 1] = texts[index];
    }
    struct tool tool = { .arguments = arguments };
    return tool_run(&tool, err) < 0 ? under(err, "map the ids of the build") : 0;
}

static int map_one(pid_t child, error *err)
{
    char line[64];
    (void) snprintf(line, sizeof line, "0 %u 1", geteuid());
    if (write_map(child, "setgroups", "deny", err) < 0 ||
        write_map(child, "uid_map", line, err) < 0)
        return -1;
    (void) snprintf(line, sizeof line, "0 %u 1", getegid());
    return write_map(child, "gid_map", line, err);
}

int walls_map_ids(const struct walls *walls, pid_t child, error *err)
{
    char line[64];
    if (host_grants_privileges()) {
        (void) snprintf(line, sizeof line, "0 %u %u", (unsigned) HOST_ID_BUILDS,
                        (unsigned) HOST_ID_COUNT);
        if (write_map(child, "uid_map", line, err) < 0)
            return -1;
        return write_map(child, "gid_map", line, err);
    }
    if (!walls->keeps_owners)
        return map_one(child, err);
    return map_range("newuidmap", "/etc/subuid", geteuid(), child, err) < 0 ||
                   map_range("newgidmap", "/etc/subgid", getegid(), child, err) < 0
               ? -1
               : 0;
}
