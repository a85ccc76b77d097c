/* copy.c - `glovebox session cp` and `files`. */
#include "cli/session/session.h"

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/tty/output_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "ID:PATH". Gives the path, NULL for a file of the host: one that begins with / or . or has no
 * colon. */
static const char *path_inside(const char *place, char id[SESSION_NAME_SIZE])
{
    const char *colon = strchr(place, ':');
    if (*place == '/' || *place == '.' || !colon || memchr(place, '/', (size_t) (colon - place)) ||
        (size_t) (colon - place) >= SESSION_NAME_SIZE)
        return NULL;
    (void) snprintf(id, SESSION_NAME_SIZE, "%.*s", (int) (colon - place), place);
    return colon + 1;
}

static int copy_out(const struct session_arguments *arguments, const char *session,
                    const char *path, const char *to, error *err)
{
    bool is_stdout = strcmp(to, "-") == 0;
    bool is_new = !is_stdout && access(to, F_OK) < 0; /* what is there stays if nothing comes */
    auto_fd file = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                             : open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (file < 0)
        return fail_os(err, "cannot write '%.100s'", to);
    int32_t code = glb_session_read(arguments->client, session, path, arguments->is_folder, file);
    off_t written = is_stdout ? 0 : lseek(file, 0, SEEK_CUR);
    if (is_new && code != GLB_OK && written == 0)
        (void) unlink(to);
    else if (!is_stdout && (code == GLB_OK || written > 0))
        (void) !ftruncate(file, written); /* a pipe or a device has no end to set */
    return code == GLB_OK ? 0 : library_failed(code, err);
}

static int copy_in(const struct session_arguments *arguments, const char *from, const char *session,
                   const char *path, error *err)
{
    bool is_stdin = strcmp(from, "-") == 0;
    auto_fd file = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                            : open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return fail_os(err, "cannot read '%.100s'", from);
    int32_t code = glb_session_write(arguments->client, session, path, arguments->is_folder, file);
    return code == GLB_OK ? 0 : library_failed(code, err);
}

int session_copy(struct session_arguments *arguments, error *err)
{
    char id[2][SESSION_NAME_SIZE];
    char session[SESSION_NAME_SIZE];
    const char *from = arguments->words[0];
    const char *to = arguments->words[1];
    const char *path_from = path_inside(from, id[0]);
    const char *path_to = path_inside(to, id[1]);
    if (!path_from == !path_to)
        return fail(err, ERR_BAD_REQUEST,
                    "one of both must be in a session, ID:PATH, and the other a file here, or -");
    if (session_named(arguments, path_from ? id[0] : id[1], session, err) < 0)
        return -1;
    return path_from ? copy_out(arguments, session, path_from, to, err)
                     : copy_in(arguments, from, session, path_to, err);
}

/* Names are the sandbox's: a terminal is not to obey them, and none makes a line of its own. */
static void print_entry(struct terminal *terminal, json_object *entry)
{
    char line[8192];
    json_object *kind = NULL, *size = NULL, *path = NULL;
    (void) json_object_object_get_ex(entry, "type", &kind);
    (void) json_object_object_get_ex(entry, "size", &size);
    (void) json_object_object_get_ex(entry, "path", &path);
    int length =
        snprintf(line, sizeof line, "%-7s %12lld  ", kind ? json_object_get_string(kind) : "?",
                 size ? (long long) json_object_get_int64(size) : 0);
    size_t used = line_add_harmless(line, (size_t) length, sizeof line - 1,
                                    path ? json_object_get_string(path) : "?");
    line[used++] = '\n';
    terminal_write(terminal, line, used);
}

int session_files(struct session_arguments *arguments, error *err)
{
    char session[SESSION_NAME_SIZE];
    char *json = NULL;
    if (session_named(arguments, arguments->words[0], session, err) < 0)
        return -1;
    int32_t code = glb_session_files(arguments->client, session,
                                     arguments->count > 1 ? arguments->words[1] : NULL, 1, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    json_object *root = json_tokener_parse(json);
    json_object *entries = NULL;
    struct terminal terminal;
    terminal_init(&terminal, STDOUT_FILENO);
    if (arguments->json)
        (void) puts(json);
    else if (root && json_object_object_get_ex(root, "entries", &entries))
        for (size_t at = 0; at < json_object_array_length(entries); at++)
            print_entry(&terminal, json_object_array_get_idx(entries, at));
    terminal_done(&terminal);
    (void) json_object_put(root);
    glb_text_free(json);
    return 0;
}
