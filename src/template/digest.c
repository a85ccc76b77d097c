/* digest.c - the digest of a template: sha256 over a canonical listing of its tree.
 *
 * One line for each entry, in the order of a walk with the names of each directory sorted by bytes:
 *     PATH NUL d|f|l MODE NUL LINK-TARGET or CONTENT-SHA256 NEWLINE
 * Then the runners, since they say how code is run in it. Times, owners and files of the build are
 * not part of it, so that the same packages give the same digest. */
#include "template/build.h"

#include "base/cleanup.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h> /* uses processor instructions, for gigabytes of files */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_text(struct sha256_ctx *sum, const char *text, size_t size)
{
    sha256_update(sum, size, (const unsigned char *) text);
}

static void to_hexadecimal(struct sha256_ctx *sum, char text[SHA256_DIGEST_SIZE * 2 + 1])
{
    unsigned char bytes[SHA256_DIGEST_SIZE];
    sha256_digest(sum, sizeof(bytes), bytes);
    (void) sodium_bin2hex(text, SHA256_DIGEST_SIZE * 2 + 1, bytes, sizeof(bytes));
}

int digest_file(int directory, const char *name, char text[DIGEST_SIZE], error *err)
{
    static char bytes[256 * 1024];
    auto_fd fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_os(err, "open '%.150s'", name);
    struct sha256_ctx sum;
    sha256_init(&sum);
    ssize_t got;
    while ((got = read(fd, bytes, sizeof(bytes))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_os(err, "read '%.150s'", name);
        add_text(&sum, bytes, (size_t) got);
    }
    to_hexadecimal(&sum, text);
    return 0;
}

static int add_entry(void *context, const struct tree_entry *entry, error *err)
{
    mode_t mode = entry->status.st_mode;
    char content[PATH_MAX] = "", kind[16];
    if (entry->leaving)
        return TREE_GO_ON;
    if (S_ISREG(mode) && digest_file(entry->directory, entry->name, content, err) < 0)
        return under(err, "'%.150s'", entry->path);
    if (S_ISLNK(mode)) {
        ssize_t length = readlinkat(entry->directory, entry->name, content, sizeof(content) - 1);
        if (length < 0)
            return fail_os(err, "read link '%.150s'", entry->path);
        content[length] = '\0';
        if (strchr(content, '\n')) /* the rest could be read as another entry */
            return fail(err, ERR_BAD_REQUEST,
                        "link '%.150s' leads to a name with a line end, which no digest tells from "
                        "another tree",
                        entry->path);
    }
    (void) snprintf(kind, sizeof(kind), "%c%o",
                    S_ISDIR(mode)   ? 'd'
                    : S_ISLNK(mode) ? 'l'
                                    : 'f',
                    S_ISLNK(mode) ? 0777 : mode & 07777);
    add_text(context, entry->path, strlen(entry->path) + 1);
    add_text(context, kind, strlen(kind) + 1);
    add_text(context, content, strlen(content));
    add_text(context, "\n", 1);
    return TREE_GO_ON;
}

int digest_tree(struct build *build, error *err)
{
    static const char *const runners[] = { "languages", "env", "zygotes" };
    struct sha256_ctx sum;
    sha256_init(&sum);
    if (tree_walk(build->root, add_entry, &sum, err) < 0)
        return -1;
    for (size_t index = 0; index < sizeof(runners) / sizeof(*runners); index++) {
        const char *text = json_object_to_json_string_ext(build_key(build, runners[index]),
                                                          JSON_C_TO_STRING_PLAIN);
        add_text(&sum, runners[index], strlen(runners[index]) + 1);
        add_text(&sum, text, strlen(text));
        add_text(&sum, "\n", 1);
    }
    memcpy(build->digest, "sha256:", 7);
    to_hexadecimal(&sum, build->digest + 7);
    return 0;
}
