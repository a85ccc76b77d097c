/* groups_test.c - instances end while others begin: their common group is removed when the last one
 * leaves it, whenever that is. Folders stand for control groups. */
#include "base/cleanup.h"
#include "base/test.h"

#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/glovebox-groups-XXXXXX";
static char shared_group[64];
static unsigned removals_after_mkdir, removals_before_mkdirat;
static struct spawner instance;

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int above, const char *name, mode_t mode);
int __wrap_mkdirat(int above, const char *name, mode_t mode);

int __wrap_mkdir(const char *path, mode_t mode)
{
    int made = __real_mkdir(path, mode);
    if (removals_after_mkdir > 0) {
        removals_after_mkdir--;
        (void) rmdir(shared_group);
    }
    return made;
}

/* A new control group has its files; a folder needs the one that is opened. */
int __wrap_mkdirat(int above, const char *name, mode_t mode)
{
    if (removals_before_mkdirat > 0) {
        removals_before_mkdirat--;
        (void) rmdir(shared_group);
    }
    int made = __real_mkdirat(above, name, mode);
    if (made == 0) {
        auto_fd folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close_fd(&(int){ openat(folder, "tasks", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) });
    }
    return made;
}

uint32_t slot_number(const struct spawner *spawner, const struct slot *slot)
{
    return spawner->first_slot + (uint32_t) (slot - spawner->slots);
}

static int begin(error *err)
{
    instance = (struct spawner){ .first_slot = 8, .root_count = 1 };
    instance.roots[0] = (struct group_root){ .kind = GROUP_PIDS, .path = shared_group };
    return open_group_roots(&instance, err) < 0 || open_groups(&instance, err) < 0 ? -1 : 0;
}

static void setup(void)
{
    if (!mkdtemp(strcpy(top, "/tmp/glovebox-groups-XXXXXX")))
        end_test(__FILE__, __LINE__);
    (void) snprintf(shared_group, sizeof shared_group, "%s/glovebox", top);
    removals_after_mkdir = removals_before_mkdirat = 0;
}

static void clean(void)
{
    char file[96];
    (void) snprintf(file, sizeof file, "%s/holders-8/tasks", shared_group);
    (void) unlink(file);
    close_groups(&instance);
    expect(access(shared_group, F_OK) < 0 && errno == ENOENT, "'%s' is left", shared_group);
    (void) rmdir(top);
}

TEST(the_shared_group_may_go_until_a_group_is_in_it)
{
    static const struct {
        unsigned after_mkdir, before_mkdirat;
    } rows[] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 3, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        error err = { 0 };
        struct stat held, named;
        char holders[96];
        setup();
        removals_after_mkdir = rows[i].after_mkdir;
        removals_before_mkdirat = rows[i].before_mkdirat;
        expect(begin(&err) == 0, "row %zu: %s", i, err.text);
        (void) snprintf(holders, sizeof holders, "%s/holders-8/tasks", shared_group);
        expect(stat(holders, &named) == 0 && fstat(instance.roots[0].holders, &held) == 0 &&
                   held.st_ino == named.st_ino,
               "row %zu: the group that is open is not the one with the name", i);
        clean();
    }
}

TEST(a_group_that_cannot_be_made_is_named)
{
    error err = { 0 };
    setup();
    (void) snprintf(shared_group, sizeof shared_group, "%s/none/glovebox", top);
    expect(begin(&err) < 0 && strstr(err.text, shared_group), "'%s'", err.text);
    (void) rmdir(top);
}

TESTS(CASE(the_shared_group_may_go_until_a_group_is_in_it),
      CASE(a_group_that_cannot_be_made_is_named))
