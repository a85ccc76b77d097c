/* copy.c - `glovebox session cp`: copies files between this machine and a session, as cp does. All
 * arguments are checked before a byte is sent. */
#include "cli/session/copy.h"

#include "base/cleanup.h"
#include "cli/daemon_request.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Splits "ID:PATH". Returns the path, or NULL for a file of the host: a word without a colon, or
 * one that begins with / or . */
static const char *path_inside(const char *place, char id[SESSION_NAME_SIZE])
{
    const char *colon = strchr(place, ':');
    if (*place == '/' || *place == '.' || !colon || memchr(place, '/', (size_t) (colon - place)) ||
        (size_t) (colon - place) >= SESSION_NAME_SIZE)
        return NULL;
    (void) snprintf(id, SESSION_NAME_SIZE, "%.*s", (int) (colon - place), place);
    return colon + 1;
}

static bool ends_in_slash(const char *path)
{
    size_t length = strlen(path);
    return length > 0 && path[length - 1] == '/';
}

/* Writes the path as the daemon expects it: without "./", "//" and a slash at the end; "." becomes
 * "". */
static int clean_path(char out[COPY_PATH_SIZE], const char *path, error *err)
{
    size_t used = 0;
    if (strlen(path) >= COPY_PATH_SIZE)
        return fail(err, ERR_BAD_REQUEST, "'%.60s…' is too long for a path", path);
    bool is_absolute = *path == '/';
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && *path == '.')) {
            if (used > 0 || is_absolute)
                out[used++] = '/';
            memcpy(out + used, path, length);
            used += length;
        }
        path += length + (path[length] == '/');
    }
    if (used == 0 && is_absolute)
        out[used++] = '/';
    out[used] = '\0';
    return 0;
}

/* Is it "folder/.", the content of a folder without the folder itself? */
static bool means_contents(const char *path)
{
    size_t length = strlen(path);
    return length == 0 || strcmp(path, ".") == 0 ||
           (length > 1 && strcmp(path + length - 2, "/.") == 0);
}

/* Writes "FOLDER/NAME"; NAME is the last part of `path`. */
static int join_name(char out[COPY_PATH_SIZE], const char *folder, const char *named, error *err)
{
    char clean[COPY_PATH_SIZE];
    if (clean_path(clean, named, err) < 0)
        return -1;
    const char *slash = strrchr(clean, '/');
    const char *name = slash ? slash + 1 : clean;
    if (!*name || strcmp(name, "..") == 0)
        return fail(err, ERR_BAD_REQUEST, "'%.100s' has no name of its own; name the target",
                    named);
    bool is_bare = !*folder || ends_in_slash(folder);
    if ((size_t) snprintf(out, COPY_PATH_SIZE, "%s%s%s", folder, is_bare ? "" : "/", name) >=
        COPY_PATH_SIZE)
        return fail(err, ERR_BAD_REQUEST, "'%.60s…' is too long for a path", folder);
    return 0;
}

/* Looks up a path of the session; NOTHING there is no failure. Follows links. */
static int look_inside(struct copy *copy, const char *path, struct look *ret_look, error *err)
{
    char address[128];
    auto_json body = json_object_new_object();
    auto_json answer = NULL;
    error failure = { 0 };
    (void) json_object_object_add(body, "path", json_object_new_string(path));
    (void) snprintf(address, sizeof address, "/v1/sessions/%s/files:stat", copy->session);
    const struct ask ask = { .method = "POST", .path = address, .body = body };
    int result = ask_daemon(copy->arguments->client, &ask, &answer, &failure);
    *ret_look = (struct look){ .kind = LOOK_NOTHING };
    if (result == 0) {
        const char *type = answer_text(answer, "type");
        if (strcmp(type, "link") == 0)
            type = answer_text(answer, "target_type");
        ret_look->kind = strcmp(type, "folder") == 0 ? LOOK_FOLDER
                         : strcmp(type, "file") == 0 ? LOOK_FILE
                                                     : LOOK_OTHER;
        ret_look->mode = (mode_t) strtoul(answer_text(answer, "mode"), NULL, 8) & 0777;
    } else if (failure.code == ERR_NOT_FOUND && strstr(failure.text, "No such file")) {
        result = 0;
    } else {
        *err = failure;
    }
    return result;
}

static struct look look_here(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct look){ .kind = LOOK_NOTHING };
    return (struct look){ .kind = S_ISDIR(status.st_mode)   ? LOOK_FOLDER
                                  : S_ISREG(status.st_mode) ? LOOK_FILE
                                                            : LOOK_OTHER,
                          .mode = status.st_mode & 0777 };
}

/* Checks that the source is readable, and for a folder that -r was given. */
static int check_source(const struct copy *copy, const char *word, const struct look *look,
                        error *err)
{
    if (look->kind == LOOK_FOLDER && !copy->arguments->is_recursive)
        return fail(err, ERR_BAD_REQUEST, "'%.100s' is a folder; copy it with -r", word);
    if (look->kind == LOOK_NOTHING)
        return fail(err, ERR_NOT_FOUND, "there is no '%.100s'; see glovebox session files", word);
    return 0;
}

static int check_target(const char *word, const struct look *look, int sources, error *err)
{
    if (look->kind == LOOK_FOLDER)
        return 0;
    if (sources > 1)
        return fail(err, ERR_BAD_REQUEST,
                    "several sources go into a folder, and '%.100s' is none; make it first", word);
    if (ends_in_slash(word))
        return fail(err, ERR_BAD_REQUEST,
                    "'%.100s' is no folder; make it first, or leave the '/' out", word);
    return 0;
}

/* Refuses to replace a file by a folder. */
static int check_pair(const struct look *source, const struct look *target, const char *word,
                      error *err)
{
    if (source->kind == LOOK_FOLDER && target->kind != LOOK_FOLDER && target->kind != LOOK_NOTHING)
        return fail(err, ERR_BAD_REQUEST, "'%.100s' is a file: a folder cannot be copied there",
                    word);
    return 0;
}

/* --- into the session ------------------------------------------------------------------------- */

static int open_source(const char *word, int *ret_file, error *err)
{
    bool is_stdin = strcmp(word, "-") == 0;
    *ret_file = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : open(word, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*ret_file < 0)
        return fail_os(err, "cannot read '%.100s'", word);
    if (!is_stdin)
        (void) fcntl(*ret_file, F_SETFL, 0); /* O_NONBLOCK was only for opening a FIFO */
    return 0;
}

static int check_sources_here(const struct copy *copy, const struct look *target, error *err)
{
    for (int at = 0; at < copy->sources; at++) {
        const char *word = copy->arguments->words[at];
        struct look look = { .kind = LOOK_FILE };
        auto_fd file = -1;
        if (open_source(word, &file, err) < 0)
            return -1;
        if (strcmp(word, "-") != 0)
            look = look_here(word);
        if (check_source(copy, word, &look, err) < 0 ||
            check_pair(&look, target, copy->to, err) < 0)
            return -1;
    }
    return 0;
}

static int copy_in(struct copy *copy, const char *word, const struct look *target, error *err)
{
    char path[COPY_PATH_SIZE], inside[COPY_PATH_SIZE];
    bool is_stdin = strcmp(word, "-") == 0;
    bool is_into = target->kind == LOOK_FOLDER && !is_stdin && !copy->arguments->is_folder &&
                   !means_contents(word);
    if (clean_path(path, copy->to, err) < 0 || (is_into && join_name(inside, path, word, err) < 0))
        return -1;
    const char *to = is_into ? inside : path;
    if (!is_stdin && look_here(word).kind == LOOK_FOLDER)
        return copy_folder_in(copy, word, to, err);
    auto_fd file = -1;
    if (open_source(word, &file, err) < 0)
        return -1;
    int32_t code = glb_session_write(copy->arguments->client, copy->session, to,
                                     copy->arguments->is_folder, file);
    return code == GLB_OK ? 0 : library_failed(code, err);
}

static int copy_all_in(struct copy *copy, error *err)
{
    char path[COPY_PATH_SIZE];
    struct look target;
    if (clean_path(path, copy->to, err) < 0 || look_inside(copy, path, &target, err) < 0 ||
        (!copy->arguments->is_folder && check_target(copy->to, &target, copy->sources, err) < 0) ||
        check_sources_here(copy, &target, err) < 0)
        return -1;
    for (int at = 0; at < copy->sources; at++)
        if (copy_in(copy, copy->arguments->words[at], &target, err) < 0)
            return -1;
    return 0;
}

/* --- out of the session ----------------------------------------------------------------------- */

static int copy_file_out(const struct copy *copy, const char *path, const char *to, mode_t mode,
                         error *err)
{
    bool is_stdout = strcmp(to, "-") == 0;
    bool is_new = !is_stdout && access(to, F_OK) < 0; /* keep an old file if nothing comes */
    auto_fd file = is_stdout
                       ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                       : open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, mode ? mode : 0644);
    if (file < 0)
        return fail_os(err, "cannot write '%.100s'", to);
    int32_t code = glb_session_read(copy->arguments->client, copy->session, path,
                                    copy->arguments->is_folder, file);
    off_t written = is_stdout ? 0 : lseek(file, 0, SEEK_CUR);
    if (is_new && code != GLB_OK && written == 0)
        (void) unlink(to);
    else if (!is_stdout && (code == GLB_OK || written > 0))
        (void) !ftruncate(file, written); /* fails for a pipe or device */
    return code == GLB_OK ? 0 : library_failed(code, err);
}

static int copy_out(struct copy *copy, const char *word, const struct look *target, bool is_check,
                    error *err)
{
    char id[SESSION_NAME_SIZE], path[COPY_PATH_SIZE], to[COPY_PATH_SIZE];
    struct look source = { .kind = LOOK_FILE };
    const char *inside = path_inside(word, id);
    if (!inside || strcmp(id, copy->id) != 0)
        return fail(err, ERR_BAD_REQUEST, "all sources must be in one session, not '%.100s'", word);
    if (clean_path(path, inside, err) < 0)
        return -1;
    (void) snprintf(to, sizeof to, "%s", copy->to);
    if (copy->arguments->is_folder)
        return is_check ? 0 : copy_file_out(copy, path, to, 0, err);
    if (look_inside(copy, path, &source, err) < 0 || check_source(copy, word, &source, err) < 0 ||
        check_pair(&source, target, copy->to, err) < 0 ||
        (target->kind == LOOK_FOLDER && !means_contents(inside) &&
         join_name(to, copy->to, path, err) < 0))
        return -1;
    if (is_check)
        return 0;
    return source.kind == LOOK_FOLDER ? copy_folder_out(copy, path, to, err)
                                      : copy_file_out(copy, path, to, source.mode, err);
}

static int copy_all_out(struct copy *copy, error *err)
{
    struct look target = { .kind = LOOK_OTHER };
    if (strcmp(copy->to, "-") != 0)
        target = look_here(copy->to);
    if (!copy->arguments->is_folder && check_target(copy->to, &target, copy->sources, err) < 0)
        return -1;
    for (int at = 0; at < 2 * copy->sources; at++)
        if (copy_out(copy, copy->arguments->words[at % copy->sources], &target, at < copy->sources,
                     err) < 0)
            return -1;
    return 0;
}

int session_copy(struct session_arguments *arguments, error *err)
{
    char ids[2][SESSION_NAME_SIZE];
    struct copy copy = { .arguments = arguments, .sources = arguments->count - 1 };
    const char *to = arguments->words[copy.sources];
    const char *path_from = path_inside(arguments->words[0], ids[0]);
    const char *path_to = path_inside(to, ids[1]);
    if (!path_from == !path_to)
        return fail(err, ERR_BAD_REQUEST,
                    "one of both must be in a session, ID:PATH, and the other a file here, or -");
    if (arguments->is_folder && (copy.sources > 1 || arguments->is_recursive))
        return fail(err, ERR_BAD_REQUEST, "--tar copies one tar; leave it out to copy folders");
    copy.id = path_from ? ids[0] : ids[1];
    copy.to = path_to ? path_to : to;
    if (session_named(arguments, copy.id, copy.session, err) < 0)
        return -1;
    return path_from ? copy_all_out(&copy, err) : copy_all_in(&copy, err);
}
