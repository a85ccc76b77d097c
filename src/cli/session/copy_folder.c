/* copy_folder.c - folders of `glovebox session cp`. Into the session they go as an archive that
 * this machine's tar makes. Out of it each file is copied by itself: a tar from the sandbox is
 * never unpacked here. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/common/beneath.h"
#include "cli/daemon_request.h"
#include "cli/session/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENTRIES_MAX = 100000 }; /* of a listing, by the API */

static int start_tar(const char *from, pid_t *ret_child, int *ret_file, error *err)
{
    char *arguments[] = { (char[]){ "tar" },
                          (char[]){ "-C" },
                          (char *) (uintptr_t) from,
                          (char[]){ "-cf" },
                          (char[]){ "-" },
                          (char[]){ "." },
                          NULL };
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    (void) posix_spawn_file_actions_init(&actions);
    (void) posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int number = posix_spawnp(ret_child, "tar", &actions, NULL, arguments, environ);
    (void) posix_spawn_file_actions_destroy(&actions);
    close_fd(&ends[1]);
    if (number != 0) {
        close_fd(&ends[0]);
        return fail(err, ERR_UNAVAILABLE, "folders are copied by tar, which does not start: %s",
                    strerrordesc_np(number));
    }
    *ret_file = ends[0];
    return 0;
}

int copy_folder_in(const struct copy *copy, const char *from, const char *path, error *err)
{
    pid_t child = -1;
    int status = 0, file = -1;
    if (start_tar(from, &child, &file, err) < 0)
        return -1;
    int32_t code = glb_session_write(copy->arguments->client, copy->session, path, 1, file);
    int result = code == GLB_OK ? 0 : library_failed(code, err);
    close_fd(&file); /* tar ends when its reader has gone */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (result == 0 && status != 0)
        return fail(err, ERR_BAD_REQUEST,
                    "not all of '%.100s' could be read; tar has said what is missing", from);
    return result;
}

/* Lists a folder, depth first and sorted by path. The caller puts the answer. */
static int list_all(const struct copy *copy, const char *path, json_object **ret_answer, error *err)
{
    char address[128];
    auto_json body = json_object_new_object();
    (void) json_object_object_add(body, "path", json_object_new_string(path));
    (void) json_object_object_add(body, "depth", json_object_new_int(64));
    (void) json_object_object_add(body, "limit", json_object_new_int(ENTRIES_MAX));
    (void) snprintf(address, sizeof address, "/v1/sessions/%s/files:list", copy->session);
    const struct ask ask = { .method = "POST", .path = address, .body = body };
    auto_json answer = NULL;
    if (ask_daemon(copy->arguments->client, &ask, &answer, err) < 0)
        return -1;
    if (json_object_get_boolean(json_member(answer, "truncated")))
        return fail(err, ERR_TOO_LARGE, "'%.100s' has more than %d entries; take it with --tar",
                    path, ENTRIES_MAX);
    *ret_answer = take_json(&answer);
    return 0;
}

static int write_entry(const struct copy *copy, const char *from, int folder, json_object *entry,
                       error *err)
{
    char path[2 * COPY_PATH_SIZE];
    const char *name = answer_text(entry, "path");
    struct beneath_file file;
    if (strcmp(answer_text(entry, "type"), "folder") == 0)
        return beneath_make_folder(folder, name, err);
    (void) snprintf(path, sizeof path, "%s%s%s", from, *from ? "/" : "", name);
    mode_t mode = (mode_t) strtoul(answer_text(entry, "mode"), NULL, 8) & 0777;
    if (beneath_begin(&file, folder, name, mode, err) < 0)
        return -1;
    int32_t code = glb_session_read(copy->arguments->client, copy->session, path, 0, file.fd);
    if (code != GLB_OK)
        (void) library_failed(code, err);
    return beneath_end(&file, code == GLB_OK, err) < 0 || code != GLB_OK ? -1 : 0;
}

/* Links are neither followed nor made, because they could lead anywhere on this machine. */
static bool is_taken(json_object *entry)
{
    const char *type = answer_text(entry, "type");
    return (strcmp(type, "file") == 0 || strcmp(type, "folder") == 0) &&
           !json_member(entry, "path_base64");
}

static void tell_left_out(json_object *entry)
{
    (void) complain("left out: '%s': %s", answer_text(entry, "path"),
                    json_member(entry, "path_base64") ? "its name is no UTF-8; take it with --tar"
                                                      : "it is no file and no folder");
}

int copy_folder_out(const struct copy *copy, const char *path, const char *to, error *err)
{
    auto_json answer = NULL;
    int result = 0;
    if (list_all(copy, path, &answer, err) < 0)
        return -1;
    json_object *entries = json_member(answer, "entries");
    if (mkdir(to, 0755) < 0 && errno != EEXIST)
        result = fail_os(err, "make folder '%.100s'", to);
    auto_fd folder = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (result == 0 && folder < 0)
        result = fail_os(err, "cannot write to '%.100s'", to);
    size_t count = entries ? json_object_array_length(entries) : 0;
    for (size_t at = 0; result == 0 && at < count; at++) {
        json_object *entry = json_object_array_get_idx(entries, at);
        if (!is_taken(entry))
            tell_left_out(entry);
        else if (write_entry(copy, path, folder, entry, err) < 0)
            result = under(err, "copy '%.100s'", answer_text(entry, "path"));
    }
    return result;
}
