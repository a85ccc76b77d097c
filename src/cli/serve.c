/* serve.c - `glovebox serve`: reads the command line, makes the sockets, watches over the pair. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/options.h"
#include "client/paths.h"
#include "client/supervise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 256, SLOTS_MOST_HERE = 4096, CONFIG_VALUES_MOST = 32 };

struct serve_arguments {
    const char *state;
    const char *socket;
    const char *listen;
    const char *config;
    const char *log_sync, *log_keep, *log_witness;
    unsigned slots;
    bool no_keys;
    char *kept[CONFIG_VALUES_MOST]; /* texts from the file */
    size_t kept_count;
};

static int store_slots(void *into, const struct option_row *row, const char *value, error *err)
{
    struct serve_arguments *arguments = into;
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno != 0 || number < 1 ||
        number > SLOTS_MOST_HERE)
        return fail(err, ERR_BAD_REQUEST, "--%s takes 1 to %d, not '%s'", row->name,
                    SLOTS_MOST_HERE, value);
    arguments->slots = (unsigned) number;
    return 0;
}

#define FIELD(name) offsetof(struct serve_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "state",  0, "FOLDER",       VALUES_FOLDER, "where templates and records are kept",                 store_text,  FIELD(state) },
    { "socket", 0, "PATH",         VALUES_FILE,   "Unix socket to listen on; default: where glovebox run looks", store_text, FIELD(socket) },
    { "listen", 0, "ADDRESS:PORT", VALUES_NONE,   "listen on TCP as well, loopback only: 127.0.0.1:7070", store_text,  FIELD(listen) },
    { "slots",  0, "N",            VALUES_NONE,   "sandboxes that may exist at once; default: 256",        store_slots, 0 },
    { "no-keys", 0, NULL,          VALUES_NONE,   "whoever reaches the TCP port may run code, without a key", store_switch, FIELD(no_keys) },
    { "log-sync", 0, "each|group", VALUES_NONE,   "receipts are on disk before the answer, or within 50 ms (default)", store_text, FIELD(log_sync) },
    { "log-keep", 0, "BYTES",      VALUES_NONE,   "so much of the log of receipts is kept; default: all", store_text, FIELD(log_keep) },
    { "log-witness", 0, "FILE|syslog", VALUES_FILE, "signed checkpoints of the log are handed on here",  store_text,  FIELD(log_witness) },
    { "config", 0, "FILE",         VALUES_FILE,   "read these options from a file, \"name: value\" a line", store_text,  FIELD(config) },
};
/* clang-format on */

const struct option_table *serve_option_table(void)
{
    static const struct option_table table = {
        .verb = "serve",
        .examples = "  glovebox serve                        serve on the default Unix socket\n"
                    "  glovebox serve --listen 127.0.0.1:7070\n"
                    "  glovebox serve --config /etc/glovebox/serve.conf\n",
        .usage = "[OPTIONS]",
        .more =
            "Stays in the foreground and logs to stderr; SIGTERM lets runs end, then leaves.\n"
            "The Unix socket is its owner's; callers over TCP need a key: glovebox key create.\n",
        .rows = rows,
        .count = COUNT_OF(rows),
    };
    return &table;
}

/* One "name: value" of a file; the same table as the command line. */
static int take_config_line(struct serve_arguments *arguments, char *line, error *err)
{
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = '\0';
    if (!*line || *line == '#')
        return 0;
    char *value = strchr(line, ':');
    if (!value)
        return fail(err, ERR_BAD_REQUEST, "'%s' has no colon; write name: value", line);
    *value++ = '\0';
    value += strspn(value, " \t");
    for (char *end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    for_each(row, rows)
        if (strcmp(row->name, line) == 0 && row->take != NULL && strcmp(line, "config") != 0) {
            if (arguments->kept_count == CONFIG_VALUES_MOST)
                return fail(err, ERR_BAD_REQUEST, "more than %d lines", CONFIG_VALUES_MOST);
            char **kept = &arguments->kept[arguments->kept_count];
            if (format_text(kept, err, "%s", value) < 0)
                return -1;
            arguments->kept_count++;
            return row->take(arguments, row, *kept, err);
        }
    return fail(err, ERR_BAD_REQUEST, "there is no option '%s'; see glovebox serve --help", line);
}

/* The command line wins over the file. */
static int read_config(struct serve_arguments *arguments, error *err)
{
    struct serve_arguments from_file = { 0 };
    FILE *file = fopen(arguments->config, "re");
    if (!file)
        return fail_os(err, "cannot read '%s'", arguments->config);
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    int result = 0;
    while (result == 0 && getline(&line, &room, file) > 0) {
        number++;
        if (take_config_line(&from_file, line, err) < 0)
            result = under(err, "%s:%d", arguments->config, number);
    }
    free(line);
    (void) fclose(file);
    if (!arguments->state)
        arguments->state = from_file.state;
    if (!arguments->socket)
        arguments->socket = from_file.socket;
    if (!arguments->listen)
        arguments->listen = from_file.listen;
    if (!arguments->slots)
        arguments->slots = from_file.slots;
    if (!arguments->log_sync)
        arguments->log_sync = from_file.log_sync;
    if (!arguments->log_keep)
        arguments->log_keep = from_file.log_keep;
    if (!arguments->log_witness)
        arguments->log_witness = from_file.log_witness;
    memcpy(arguments->kept, from_file.kept, sizeof from_file.kept);
    arguments->kept_count = from_file.kept_count;
    return result;
}

static int serve(struct serve_arguments *arguments, error *err)
{
    auto_text socket = NULL;
    int found = arguments->socket ? format_text(&socket, err, "%s", arguments->socket)
                                  : path_of_socket(arguments->state, &socket, err);
    struct supervised service = {
        .state = arguments->state,
        .socket = socket,
        .listen = arguments->listen,
        .no_keys = arguments->no_keys,
        .log_sync = arguments->log_sync,
        .log_keep = arguments->log_keep,
        .log_witness = arguments->log_witness,
        .slots = arguments->slots ? arguments->slots : SLOTS,
    };
    return found < 0 ? -1 : supervise(&service, err);
}

int command_serve(int argc, char **argv)
{
    struct serve_arguments arguments = { 0 };
    error err = { 0 };
    struct words words = { argc, argv, 1 };
    int outcome = options_read(serve_option_table(), &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome == 0 && words.next < argc)
        outcome = fail(&err, ERR_BAD_REQUEST, "serve takes no '%s'; see glovebox serve --help",
                       argv[words.next]);
    if (outcome == 0 && arguments.config)
        outcome = read_config(&arguments, &err);
    if (outcome == 0)
        outcome = serve(&arguments, &err);
    for (size_t index = 0; index < arguments.kept_count; index++)
        free(arguments.kept[index]);
    return outcome < 0 ? complain_of(&err) : 0;
}
