/* mcp_command.c - `glovebox mcp`: connects to a daemon, or starts a private one for the host's
 * life. */
#include "cli/mcp/mcp_bridge.h"
#include "cli/mcp/mcp_install.h"

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "client/connect.h"
#include "supervisor/install_paths.h"
#include "supervisor/launch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>

enum { BACKLOG = 128, PRIVATE_SLOTS = 8, END_MS = 1500 };

struct mcp_arguments {
    const char *socket, *state, *files;
    bool private;
};

#define FIELD(name) offsetof(struct mcp_arguments, name)

static const struct option_row rows[] = {
    { "daemon", 0, "SOCKET|HOST:PORT", VALUES_FILE,
      "the daemon's socket or port; default: where it is looked for", store_text, FIELD(socket) },
    { "socket", 0, "PLACE", VALUES_FILE, NULL, store_text, FIELD(socket) }, /* old name */
    { "private", 0, NULL, VALUES_NONE, "starts a daemon for this process alone", store_switch,
      FIELD(private) },
    { "files", 0, "DIR[:rw]", VALUES_FOLDER,
      "offers file_import, and with :rw file_export: copies between it and sessions", store_text,
      FIELD(files) },
    { "state", 0, "FOLDER", VALUES_FOLDER, "where templates are kept", store_text, FIELD(state) },
};

const struct option_table mcp_option_table = {
    .verb = "mcp",
    .examples = "  {\"command\": \"glovebox\", \"args\": [\"mcp\"]}   in the configuration of an "
                "agent host\n"
                "  glovebox mcp try   calls each tool once and says what a host will see\n",
    .usage = "[OPTIONS], try [OPTIONS], or install --client HOST",
    .more = "Speaks the Model Context Protocol on stdin and stdout. Without a daemon it\n"
            "starts one that ends with it. See glovebox mcp install --help\n",
    OPTION_ROWS(rows),
};

static void choose_id(struct bridge *bridge)
{
    unsigned char random[(BRIDGE_ID_SIZE - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t) sizeof random)
        abort();
    for (size_t i = 0; i < sizeof random; i++)
        (void) snprintf(bridge->id + 2 * i, 3, "%02x", random[i]);
}

/* Listens at an abstract address that the kernel chooses, so no file is left behind (unix(7),
 * autobind). gloveboxd accepts only connections of its own user there. */
static int listen_somewhere(struct bridge *bridge, int *ret_fd, error *err)
{
    const struct sockaddr_un any = { .sun_family = AF_UNIX };
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bridge->address_size = sizeof bridge->address;
    if (fd < 0 || bind(fd, (const struct sockaddr *) &any, sizeof any.sun_family) < 0 ||
        listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *) &bridge->address, &bridge->address_size) < 0)
        return fail_os(err, "make a socket for a private daemon");
    *ret_fd = take_fd(&fd);
    return 0;
}

static int start_private(struct bridge *bridge, const struct mcp_arguments *arguments,
                         struct launch *launch, error *err)
{
    auto_fd listener = -1;
    if (listen_somewhere(bridge, &listener, err) < 0)
        return -1;
    const struct launch_plan plan = {
        .state = arguments->state,
        .private = true,
        .warm = true,
        .slots = PRIVATE_SLOTS,
        .network = true,
        .first_template = launch_has_template(arguments->state, "python") ? "python" : NULL,
        .listen_count = 1,
        .listens = { listener },
    };
    return launch_start(&plan, launch, err);
}

/* Looks for a daemon. Returns whether there is one; fails if a daemon was named and does not
 * answer. */
static int find_daemon(struct bridge *bridge, const struct mcp_arguments *arguments, char **place,
                       error *err)
{
    int fd = -1;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
    const char *chosen = getenv("GLOVEBOX_SOCKET");
    bool is_named = arguments->socket || (chosen && *chosen);
    if (arguments->private)
        return 0;
    int found = arguments->socket ? format_text(place, err, "%s", arguments->socket)
                                  : path_of_socket(arguments->state, place, err);
    if (found < 0 || key_of_caller(NULL, &bridge->key, err) < 0)
        return -1;
    if (dial(*place, &fd, err) < 0)
        return is_named ? -1 : 0;
    close_fd(&fd);
    bridge->place = *place;
    return 0;
}

static int serve(const struct mcp_arguments *arguments, error *err)
{
    static struct bridge bridge = { .stream = -1, .files.folder = -1 };
    auto_text place = NULL;
    struct launch launch = launch_none();
    choose_id(&bridge);
    if (arguments->files && host_files_open(&bridge.files, arguments->files, err) < 0)
        return -1;
    if (find_daemon(&bridge, arguments, &place, err) < 0 ||
        (!bridge.place && start_private(&bridge, arguments, &launch, err) < 0))
        return -1;
    int result = bridge_run(&bridge, err);
    if (!bridge.place) {
        if (result < 0)
            (void) launch_cause(&launch, err);
        launch_end(&launch, deadline_in(END_MS));
    }
    return result;
}

int command_mcp(int argc, char **argv)
{
    struct mcp_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    if (argc > 1 && strcmp(argv[1], "install") == 0)
        return mcp_install(argc - 1, argv + 1);
    bool is_trial = argc > 1 && strcmp(argv[1], "try") == 0;
    words.next += is_trial;
    int outcome = options_read_all(&mcp_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (is_trial)
        return mcp_try(argc - 1, argv + 1);
    (void) signal(SIGPIPE, SIG_IGN);
    return serve(&arguments, &err) < 0 ? complain_of(&err) : 0;
}
