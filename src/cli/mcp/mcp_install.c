/* mcp_install.c - `glovebox mcp install`: adds an entry for glovebox to the configuration of an
 * agent host. It shows what it would write, asks, and keeps everything else in the file. */
#include "cli/mcp/mcp_install.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/inputs.h"
#include "cli/common/replace_file.h"
#include "cli/options.h"
#include "supervisor/install_paths.h"
#include "json/reader.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct install_arguments {
    const char *client;
    bool yes, remove;
};

#define HOSTS       "claude-code, claude-desktop, cursor, vscode, codex, gemini, zed or opencode"
#define FIELD(name) offsetof(struct install_arguments, name)

static const struct option_row rows[] = {
    { "client", 0, "HOST", VALUES_NONE, HOSTS, store_text, FIELD(client) },
    { "remove", 0, NULL, VALUES_NONE, "takes the entry out again", store_switch, FIELD(remove) },
    { "yes", 'y', NULL, VALUES_NONE, "writes without asking", store_switch, FIELD(yes) },
};

static const struct option_table table = {
    .verb = "mcp install",
    .examples = "  glovebox mcp install --client cursor\n",
    .usage = "--client HOST [--remove] [--yes]",
    OPTION_ROWS(rows),
};

#define STDIO "{\"type\":\"stdio\",\"command\":\"glovebox\",\"args\":[\"mcp\"]}"
#define PLAIN "{\"command\":\"glovebox\",\"args\":[\"mcp\"]}"

/* Where each host keeps its servers: an environment variable that can replace the first folder of
 * the path, the path below the home folder, the object in the file, and a template of the entry. */
static const struct host {
    const char *name, *variable, *file, *object, *entry;
} hosts[] = {
    { "claude-code", "CLAUDE_CONFIG_DIR", ".claude.json", "mcpServers", STDIO },
    { "claude-desktop", "XDG_CONFIG_HOME", ".config/Claude/claude_desktop_config.json",
      "mcpServers", PLAIN },
    { "cursor", NULL, ".cursor/mcp.json", "mcpServers", PLAIN },
    { "vscode", "XDG_CONFIG_HOME", ".config/Code/User/mcp.json", "servers", STDIO },
    { "codex", "CODEX_HOME", ".codex/config.toml", NULL, NULL }, /* TOML */
    { "gemini", NULL, ".gemini/settings.json", "mcpServers", PLAIN },
    { "zed", "XDG_CONFIG_HOME", ".config/zed/settings.json", "context_servers", PLAIN },
    { "opencode", "XDG_CONFIG_HOME", ".config/opencode/opencode.json", "mcp",
      "{\"type\":\"local\",\"command\":[\"glovebox\",\"mcp\"]}" },
};

/* Returns the path of the host's file; the caller frees it. */
static char *find_file(const struct host *host, error *err)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables */
    const char *folder = host->variable ? getenv(host->variable) : NULL;
    const char *file = host->file;
    char *path = NULL;
    if (folder && *folder == '/')
        file = strchr(file, '/') ? strchr(file, '/') + 1 : file;
    else
        folder = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe) */
    if (!folder || *folder != '/') {
        (void) fail(err, ERR_BAD_REQUEST, "HOME is not set; it says where hosts are configured");
        return NULL;
    }
    return format_text(&path, err, "%s/%s", folder, file) < 0 ? NULL : path;
}

/* json-c would change an integer of more than 64 bits. Digits in a text count as well; the user
 * must then edit the file by hand. */
static bool has_long_number(const char *text)
{
    static const char digits[] = "0123456789";
    enum { DIGITS_MAX = 18 };
    for (const char *at = text; *(at += strcspn(at, digits)); at += strspn(at, digits))
        if (strspn(at, digits) > DIGITS_MAX && (at == text || at[-1] != '.'))
            return true;
    return false;
}

/* Reads the file; gives an empty object if it is missing or empty. */
static int read_config(const struct host *host, const char *path, json_object **ret_root,
                       error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    bool is_kept = true;
    auto_json root = NULL;
    json_object *servers = NULL;
    if ((access(path, F_OK) == 0 || errno != ENOENT) &&
        read_input_file(path, &text, &size, err) < 0)
        return -1;
    if (!text || strspn(text, " \t\r\n") == size)
        root = json_object_new_object();
    else
        is_kept = json_read_exact(text, size, &root, err) == 0 && !has_long_number(text);
    if (is_kept && json_object_is_type(root, json_type_object) &&
        (!json_object_object_get_ex(root, host->object, &servers) ||
         json_object_is_type(servers, json_type_object))) {
        *ret_root = take_json(&root);
        return 0;
    }
    return fail(err, ERR_BAD_REQUEST,
                "%.150s is no plain JSON that can be kept as it is (comments, names that stand "
                "twice, long numbers, \"%s\" that is no object); write the entry by hand",
                path, host->object);
}

/* The host's PATH is often only that of the system, so a program elsewhere is named by its path. */
static const char *find_program(char path[PATH_MAX], error *err)
{
    static const char *const folders[] = { "/usr/local/bin/", "/usr/bin/", "/bin/" };
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0) {
        (void) fail_os(err, "find this program: read /proc/self/exe");
        return NULL;
    }
    path[length] = '\0';
    for_each(folder, folders)
        if (strncmp(path, *folder, strlen(*folder)) == 0 && !strchr(path + strlen(*folder), '/'))
            return path + strlen(*folder);
    return path;
}

/* Makes the entry for the host; the caller puts it. */
static json_object *make_entry(const struct host *host, const char *program)
{
    json_object *entry = json_tokener_parse(host->entry);
    json_object *command = NULL;
    if (json_object_object_get_ex(entry, "command", &command) &&
        json_object_is_type(command, json_type_array))
        (void) json_object_array_put_idx(command, 0, json_object_new_string(program));
    else
        (void) json_object_object_add(entry, "command", json_object_new_string(program));
    return entry;
}

/* Adds `entry`, or removes the present one if it is NULL. Returns whether anything has changed. The
 * member that holds the servers must be an object. */
static bool change(json_object *root, const struct host *host, json_object *entry)
{
    json_object *servers = NULL;
    bool has_servers = json_object_object_get_ex(root, host->object, &servers);
    if (!entry) {
        if (!has_servers || !json_object_object_get_ex(servers, "glovebox", NULL))
            return false;
        json_object_object_del(servers, "glovebox");
        return true;
    }
    if (!has_servers) {
        servers = json_object_new_object();
        (void) json_object_object_add(root, host->object, servers);
    }
    json_object *before = NULL;
    if (json_object_object_get_ex(servers, "glovebox", &before) &&
        json_object_equal(before, entry)) {
        (void) json_object_put(entry);
        return false;
    }
    (void) json_object_object_add(servers, "glovebox", entry);
    return true;
}

/* Adds a table for Codex to the end of its file, and changes nothing else. Refuses a file that
 * names glovebox or mcp_servers in another form, since a second entry could make it invalid. Gives
 * NULL if there is nothing to change. */
static int change_toml(const char *text, const char *program, bool remove, char **ret_text,
                       error *err)
{
    static const char head[] = "\n[mcp_servers.glovebox]\ncommand = \"",
                      tail[] = "\"\nargs = [\"mcp\"]\n";
    const char *from = strstr(text, head);
    const char *path = from ? from + sizeof head - 1 : text;
    const char *end = path + strcspn(path, "\"\\\n");
    bool is_odd = strstr(text, "glovebox") != NULL;
    if (from && strncmp(end, tail, sizeof tail - 1) == 0) {
        const char *rest = end + sizeof tail - 1;
        size_t left = strlen(rest), kept = (size_t) (from - text); /* replace_file() adds '\n' */
        kept -= left == 0 && kept > 0 && text[kept - 1] == '\n';
        left -= left > 0 && rest[left - 1] == '\n';
        return !remove ? 0
                       : format_text(ret_text, err, "%.*s%.*s", (int) kept, text, (int) left, rest);
    }
    if (remove && !is_odd)
        return 0;
    for (const char *at = text; !is_odd && (at = strstr(at, "mcp_servers")); at++)
        is_odd = at == text || at[-1] != '[' || (at - 1 > text && at[-2] != '\n');
    if (is_odd)
        return fail(err, ERR_BAD_REQUEST,
                    "it names glovebox, or has mcp_servers otherwise than as [mcp_servers.NAME]; "
                    "change it by hand");
    return format_text(ret_text, err, "%s%s%s%.*s", text, head, program, (int) sizeof tail - 2,
                       tail);
}

/* Writes `text`, which the user has seen; NULL: there is nothing to change. */
static int write_it(const struct install_arguments *arguments, const char *path, const char *text,
                    error *err)
{
    const char *says = arguments->remove ? "has no such entry" : "has it so already";
    if (text && !arguments->yes && !says_yes("Write it?"))
        return fail(err, ERR_BAD_REQUEST, "nothing was written%s",
                    isatty(STDIN_FILENO) ? "" : "; say --yes to write it");
    if (text && replace_file(path, text, 0600, err) < 0)
        return -1;
    if (text)
        says = arguments->remove ? "is written; start the host again"
                                 : "is written; start the host again. It will see what glovebox "
                                   "mcp try shows";
    return printf("%s %s.\n", path, says) > 0 ? 0 : -1;
}

static int install_toml(const struct install_arguments *arguments, const char *path,
                        const char *program, error *err)
{
    auto_text text = NULL;
    auto_text changed = NULL;
    size_t size = 0;
    if (access(path, F_OK) == 0 && read_input_file(path, &text, &size, err) < 0)
        return -1;
    if (strpbrk(program, "\"\\\n") || (text && strlen(text) != size))
        return fail(err, ERR_BAD_REQUEST, "%.150s is no text; write the entry by hand", path);
    if (change_toml(text ? text : "", program, arguments->remove, &changed, err) < 0)
        return under(err, "%.150s", path);
    if (changed)
        (void) printf("%s: %s[mcp_servers.glovebox], command = \"%s\", args = [\"mcp\"]\n", path,
                      arguments->remove ? "without " : "", program);
    return write_it(arguments, path, changed, err);
}

static int install(const struct install_arguments *arguments, error *err)
{
    const struct host *host = hosts, *end = hosts + COUNT_OF(hosts);
    auto_json root = NULL;
    auto_text path = NULL;
    char own[PATH_MAX];
    const char *program = NULL;
    while (host < end && strcmp(host->name, arguments->client ? arguments->client : "") != 0)
        host++;
    if (host == end)
        return fail(err, ERR_BAD_REQUEST, "say --client HOST: it is " HOSTS);
    if (!(program = find_program(own, err)) || !(path = find_file(host, err)))
        return -1;
    if (!host->object)
        return install_toml(arguments, path, program, err);
    if (read_config(host, path, &root, err) < 0)
        return -1;
    auto_json entry = make_entry(host, program);
    const char *text = NULL;
    if (change(root, host, arguments->remove ? NULL : json_object_get(entry))) {
        text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
                                                        JSON_C_TO_STRING_NOSLASHESCAPE);
        (void) printf("%s, in \"%s\": %s\"glovebox\": %s\n", path, host->object,
                      arguments->remove ? "without " : "",
                      json_object_to_json_string_ext(entry, JSON_C_TO_STRING_NOSLASHESCAPE));
    }
    return write_it(arguments, path, text, err);
}

int mcp_install(int argc, char **argv)
{
    struct install_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    int outcome = options_read_all(&table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    return install(&arguments, &err) < 0 ? complain_of(&err) : 0;
}
