/* template_requests_test.c - which directories gloveboxd may name as the root of sandboxes. */
#include "spawner/fakes_test.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct spawner root;

static int name_template(uint32_t index, uint32_t sets, int directory, int modules, error *err)
{
    struct spawn_template asked = { .template = index, .sets = sets };
    struct packet packet = { .kind = SPAWN_TEMPLATE, .size = sizeof asked };
    const int given[] = { directory, modules };
    memcpy(packet.body, &asked, sizeof asked);
    for_each(fd, given)
        if (*fd >= 0)
            packet.fd[packet.fds++] = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
    int done = answer(&root, &packet, err);
    packet_done(&packet);
    return done;
}

TEST(a_template_is_a_directory_of_the_folder_and_nothing_else)
{
    error err = { 0 };
    char folder[] = "/tmp/glovebox-folder-XXXXXX";
    root.epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        root.templates[i] = (struct template){ -1, -1, .fork_server_socket = -1 };
    require(mkdtemp(folder) && (root.folder = opendir(folder)) != NULL, "a folder");
    int above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(mkdirat(above, "x", 0755) == 0 && mkdirat(above, "x/root", 0755) == 0, "a template");
    int sound = openat(above, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int deeper = openat(sound, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = openat(sound, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int modules = memfd_create("modules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fcntl(modules, F_ADD_SEALS, F_SEAL_WRITE) == 0, "sealed memory");
    int host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct {
        uint32_t index, sets;
        int directory, modules;
    } wrong[] = {
        { SPAWN_TEMPLATES_MAX, 0, sound, modules },
        { UINT32_MAX, 0, sound, modules },
        { 1, SPAWN_SETS_MAX + 1, sound, modules },
        { 1, 0, host, modules },   /* of another folder */
        { 1, 0, above, modules },  /* the folder itself */
        { 1, 0, deeper, modules }, /* below a template */
        { 1, 0, file, modules },   /* no directory */
        { 1, 0, sound, unsealed }, /* may change while it is read */
        { 1, 0, sound, host },     /* not a memory file, but a file of the host */
        { 1, 0, modules, sound },
        { 1, 0, sound, -1 },
    };
    for_each(row, wrong)
        expect(name_template(row->index, row->sets, row->directory, row->modules, &err) < 0 &&
                   err.code == ERR_PROTOCOL,
               "row %td is taken", row - wrong);
    expect(root.templates[1].directory < 0 && root.templates[0].fork_server == 0,
           "a refused request has changed a template");

    require(symlinkat("/", above, "y") == 0, "a link that the operator put there");
    expect(name_template(1, 0, host, modules, &err) == 0, "%s", err.text);
    expect(name_template(1, SPAWN_SETS_MAX, sound, modules, &err) == 0, "%s", err.text);
    expect(name_template(1, 2, sound, modules, &err) == 0, "%s", err.text);
    expect(root.templates[1].directory >= 0 && root.templates[1].sets == 2 && started[0] == 0,
           "it is there, and its fork server starts when a build asks for it");
    expect(name_template(0, 0, sound, modules, &err) == 0 && started[0] == 1,
           "the first starts at once");
    expect(name_template(1, 0, -1, -1, &err) == 0 && root.templates[1].directory < 0 &&
               root.templates[1].modules < 0,
           "it is there no more");
    const int opened[] = { above, sound, deeper, file, modules, unsealed, host };
    (void) unlinkat(sound, "file", 0);
    (void) unlinkat(sound, "root", AT_REMOVEDIR);
    (void) unlinkat(above, "x", AT_REMOVEDIR);
    (void) unlinkat(above, "y", 0);
    (void) closedir(root.folder);
    (void) rmdir(folder);
    for_each(fd, opened)
        (void) close(*fd);
}

TESTS(CASE(a_template_is_a_directory_of_the_folder_and_nothing_else))
