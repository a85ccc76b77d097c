/* inline_images.c - see inline_images.h. Escape sequences of the terminal carry the picture in
 * base64, so no byte of it reaches the terminal as it is. */
#include "cli/tty/inline_images.h"

#include "base/auto_free.h"
#include "base/base64.h"
#include "base/table.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 4096, /* of kitty's graphics protocol */
    PIXELS_MAX = 64 << 20,
};

static bool is_variable(const char *name, const char *value)
{
    const char *set = getenv(name); /* NOLINT(concurrency-mt-unsafe): no thread sets variables */
    return set && (!value || strcmp(set, value) == 0);
}

void images_open(struct images *images, const char *folder, bool is_terminal)
{
    *images = (struct images){ .folder = folder };
    images->is_kitty = is_variable("KITTY_WINDOW_ID", NULL) || is_variable("TERM", "xterm-kitty");
    images->is_drawn = is_terminal && !folder &&
                       (images->is_kitty || is_variable("TERM_PROGRAM", "iTerm.app") ||
                        is_variable("TERM_PROGRAM", "WezTerm"));
}

struct kind {
    const char *mime, *ending, *begins;
    size_t size;
};

/* clang-format off */
static const struct kind kinds[] = {
    { "image/png",  "png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16 },
    { "image/jpeg", "jpg", "\xff\xd8\xff",                   3 },
    { "image/gif",  "gif", "GIF8",                            4 },
};
/* clang-format on */

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

/* Checks that the data begin as their type requires, since a terminal or a viewer will open them,
 * and refuses a PNG that unpacks to gigabytes. */
static const struct kind *kind_of(const char *mime, const unsigned char *data, size_t size)
{
    for_each(kind, kinds) {
        if (strcmp(kind->mime, mime) != 0)
            continue;
        if (size < kind->size || memcmp(data, kind->begins, kind->size) != 0)
            return NULL;
        bool is_png = kind == kinds;
        if (is_png && (size < kind->size + 8 ||
                       (uint64_t) big_endian(data + 16) * big_endian(data + 20) > PIXELS_MAX))
            return NULL;
        return kind;
    }
    return NULL;
}

static void draw(const struct images *images, const char *base64, size_t size)
{
    if (!images->is_kitty) {
        (void) printf("\x1b]1337;File=inline=1:%s\a\n", base64);
        return;
    }
    for (size_t at = 0; at < size; at += CHUNK) {
        size_t part = size - at < CHUNK ? size - at : CHUNK;
        (void) printf("\x1b_G%sm=%d;%.*s\x1b\\", at == 0 ? "a=T,f=100," : "", at + part < size,
                      (int) part, base64 + at);
    }
    (void) printf("\n");
}

/* Returns -1 with errno on failure. */
static int save(struct images *images, const char *ending, const void *data, size_t size,
                char path[static 512])
{
    if (!images->folder) {
        (void) snprintf(images->made, sizeof images->made, "/tmp/glovebox-XXXXXX");
        images->folder = mkdtemp(images->made);
    }
    if (!images->folder)
        return -1;
    (void) mkdir(images->folder, 0700);
    (void) snprintf(path, 512, "%.400s/figure-%u.%s", images->folder, ++images->count, ending);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (file < 0 && images->count < 10000 && access(path, F_OK) == 0) {
        (void) snprintf(path, 512, "%.400s/figure-%u.%s", images->folder, ++images->count, ending);
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (file < 0)
        return -1;
    bool is_whole = write(file, data, size) == (ssize_t) size;
    return close(file) == 0 && is_whole ? 0 : -1;
}

void images_show(struct images *images, struct terminal *terminal, const char *mime,
                 const char *base64)
{
    char path[512], said[640];
    size_t length = strlen(base64);
    auto_free unsigned char *data = malloc(length + 1);
    int64_t size = data ? base64_decode(base64, length, data) : -1;
    const struct kind *kind = size >= 0 ? kind_of(mime, data, (size_t) size) : NULL;
    (void) fflush(stdout);
    if (kind && images->is_drawn && kind == kinds) {
        draw(images, base64, length);
        (void) fflush(stdout);
    } else {
        if (!kind)
            (void) snprintf(said, sizeof said, "[%.40s: it is none, and is left out]\n", mime);
        else if (save(images, kind->ending, data, (size_t) size, path) == 0)
            (void) snprintf(said, sizeof said, "[%.40s: %s]\n", mime, path);
        else
            (void) snprintf(said, sizeof said, "[%.40s; it cannot be saved]\n", mime);
        terminal_write(terminal, said, strlen(said));
    }
}
