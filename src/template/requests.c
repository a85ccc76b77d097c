/* requests.c - a folder for each request; the one above is locked while a command works in it. */
#include "template/requests.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "request.json";

bool request_id_is_valid(const char *id)
{
    return strncmp(id, "lib_", 4) == 0 && strlen(id) == 12 &&
           strspn(id + 4, "0123456789abcdef") == 8;
}

int requests_open(const char *state, bool make, error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/libs", state) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "path '%.100s…' is too long", state);
    if (make && make_folder(path, 0755, err) < 0)
        return -1;
    auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "no package was requested yet; request one: glovebox libs request NAME");
    if (fd < 0)
        return fail_os(err, "open '%s'", path);
    if (make && faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
        return fail(
            err, ERR_UNAVAILABLE,
            "'%s' belongs to another user; request as the owner of these templates (sudo), or "
            "use --state DIR",
            path);
    if (make && flock(fd, LOCK_EX) < 0)
        return fail_os(err, "lock '%s'", path);
    return take_fd(&fd);
}

static int open_one(int requests, const char *id, error *err)
{
    if (!request_id_is_valid(id))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no id of a request; see glovebox libs review",
                    id);
    int fd = openat(requests, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND, "there is no request %s; see glovebox libs review --all",
                    id);
    return fd < 0 ? fail_os(err, "open request %s", id) : fd;
}

int request_add(int requests, struct json_object *request, error *err)
{
    unsigned number = 0;
    char id[REQUEST_ID_SIZE];
    auto_json all = NULL;
    if (request_list(requests, &all, err) < 0)
        return -1;
    size_t count = json_object_array_length(all);
    if (count >= REQUESTS_MAX)
        return fail(err, ERR_LIMIT, "%zu requests are kept, which is the most; remove old ones",
                    count);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return fail_os(err, "make an id");
    (void) snprintf(id, sizeof id, "lib_%08x", number);
    if (mkdirat(requests, id, 0755) < 0)
        return fail_os(err, "keep the request");
    (void) json_object_object_add(request, "id", json_object_new_string(id));
    return request_write(requests, request, err);
}

int request_read(int requests, const char *id, struct json_object **ret_request, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    auto_fd folder = open_one(requests, id, err);
    if (folder < 0 || tree_read_file(folder, file_name, &text, &size, err) < 0)
        return -1;
    auto_json request = json_tokener_parse(text);
    if (!json_object_is_type(request, json_type_object))
        return fail(err, ERR_UNAVAILABLE, "request %s is damaged; ask again", id);
    *ret_request = take_json(&request);
    return 0;
}

int request_write(int requests, struct json_object *request, error *err)
{
    struct json_object *id = json_object_object_get(request, "id");
    auto_fd folder = open_one(requests, json_object_get_string(id), err);
    const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PRETTY |
                                                                   JSON_C_TO_STRING_NOSLASHESCAPE);
    return folder < 0 ? -1 : tree_replace_file(folder, file_name, text, strlen(text), err);
}

int request_archives(int requests, const char *id, bool fresh, error *err)
{
    auto_fd folder = open_one(requests, id, err);
    if (folder < 0 || (fresh && tree_remove(folder, "archives", err) < 0))
        return -1;
    if (fresh && mkdirat(folder, "archives", 0755) < 0)
        return fail_os(err, "make a folder for archives");
    int archives = openat(folder, "archives", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return archives < 0 ? fail_os(err, "open the archives of %s", id) : archives;
}

static int by_time(const void *left, const void *right)
{
    struct json_object *const *const pair[] = { left, right };
    return strcmp(json_object_get_string(json_object_object_get(*pair[0], "asked")),
                  json_object_get_string(json_object_object_get(*pair[1], "asked")));
}

int request_list(int requests, struct json_object **ret_requests, error *err)
{
    int own = openat(requests, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    if (!directory) {
        close_fd(&own);
        return fail_os(err, "read the requests");
    }
    struct json_object *found = json_object_new_array();
    struct dirent *entry;
    while ((entry = readdir(directory))) { /* NOLINT(concurrency-mt-unsafe): ours alone */
        auto_json one = NULL;
        error ignored; /* incomplete requests are not listed */
        if (request_id_is_valid(entry->d_name) &&
            request_read(requests, entry->d_name, &one, &ignored) == 0 &&
            json_object_object_get(one, "asked"))
            (void) json_object_array_add(found, take_json(&one));
    }
    (void) closedir(directory);
    json_object_array_sort(found, by_time);
    *ret_requests = found;
    return 0;
}
