/* blobs_test.c - blobs in memory and in a folder: beyond the bounds the oldest of the tenant with
 * most are removed; a blob that is opened has the hash in its name, whatever the disk has done. */
#include "base/test.h"

#include "base/table.h"
#include "engine/store/blobs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK UINT64_C(4096)

static const char held[] = "h123456789abcdef";
static const char other[] = "0123456789abcdef";

static int keep_for(struct blob_store *store, const struct blob_owner *owner, const char *text,
                    char name[BLOB_NAME_SIZE])
{
    struct blob_writer writer;
    error err;
    blob_begin(store, owner, &writer);
    if (blob_add(&writer, text, strlen(text), &err) < 0)
        return -1;
    const char *mime = mime_of("a.txt", writer.head, writer.head_size);
    if (blob_name(&writer, mime, name) == BLOB_KNOWN)
        return 0;
    return blob_write(&writer, name, &err) < 0 || blob_keep(&writer, mime, name, &err) < 0 ? -1 : 0;
}

static int keep_as(struct blob_store *store, const char *owner, const char *text,
                   char name[BLOB_NAME_SIZE])
{
    return keep_for(store, &(struct blob_owner){ owner, owner }, text, name);
}

static int keep(struct blob_store *store, const char *text, char name[BLOB_NAME_SIZE])
{
    return keep_as(store, "", text, name);
}

static bool is_there(struct blob_store *store, const char *name, const char *text)
{
    error err;
    struct blob_view view;
    if (blob_open(store, "", name, &view, &err) < 0)
        return false;
    char read_back[64] = "";
    ssize_t got = read(view.fd, read_back, sizeof read_back - 1);
    (void) close(view.fd);
    return got == (ssize_t) view.size && strcmp(read_back, text) == 0;
}

static void try_store(const char *state)
{
    struct blob_store *store;
    error err;
    char one[BLOB_NAME_SIZE], two[BLOB_NAME_SIZE], three[BLOB_NAME_SIZE], again[BLOB_NAME_SIZE];
    const struct blob_bounds two_blocks = { 2 * BLOCK, 100 }, more = { 100 * BLOCK, 100 };
    require(sodium_init() >= 0 && blobs_open(state, &two_blocks, &store, &err) == 0, "open");
    require(keep(store, "abc", one) == 0, "keep");
    expect(strcmp(one, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0,
           "SHA-256 of abc is %s", one);
    expect(keep(store, "abc", again) == 0 && is_there(store, one, "abc"), "the same bytes twice");
    expect(keep(store, "defg", two) == 0 && is_there(store, one, "abc"), "two fit");
    expect(keep(store, "hijk", three) == 0, "three do not");
    expect(is_there(store, one, "abc") && !is_there(store, two, "defg") &&
               is_there(store, three, "hijk"),
           "the one that nobody asked for has gone");
    expect(!is_there(store, "../../etc/passwd", ""), "a path is no name");

    expect(blobs_usage(store)->count == 2 && blobs_usage(store)->bytes == 2 * BLOCK &&
               blobs_usage(store)->evicted == 1,
           "each counts as a block");
    blobs_bound(store, &more);
    blob_forget(store, "", three);
    expect(!is_there(store, three, "hijk"), "it is forgotten");
    require(keep_as(store, held, "abc", again) == 0 && keep_as(store, held, "lm", two) == 0,
            "held");
    expect(!is_there(store, two, "lm"), "what is another's");
    expect(blob_hand_over(store, held, two, "", &err) == 0 && is_there(store, two, "lm"),
           "handed over");
    expect(blob_hand_over(store, held, two, "", &err) == 0 && is_there(store, two, "lm"),
           "and again");
    blob_forget(store, held, two);
    expect(is_there(store, two, "lm"), "it is not the other's any more");
    expect(blob_hand_over(store, held, one, "", &err) == 0 && is_there(store, one, "abc"),
           "what the new owner has already");
    blob_forget(store, held, one); /* NOLINT(readability-suspicious-call-argument) */
    expect(is_there(store, one, "abc"), "the same bytes, of the new owner");
    blob_forget(store, "", two);
    blobs_close(store);
}

TEST(blobs_in_memory)
{
    try_store(NULL);
}

/* --- shares ----------------------------------------------------------------------------------- */

static bool has(struct blob_store *store, const char *owner, const char *name)
{
    struct blob_view view;
    error err;
    if (blob_open(store, owner, name, &view, &err) < 0)
        return false;
    (void) close(view.fd);
    return true;
}

static void flood(struct blob_store *store, const struct blob_owner *owner, int count)
{
    char text[32], name[BLOB_NAME_SIZE];
    for (int i = 0; i < count; i++) {
        (void) snprintf(text, sizeof text, "%s %d", owner->name, i);
        expect(keep_for(store, owner, text, name) == 0, "flood with %s", text);
    }
}

static void try_shares(const struct blob_bounds *bounds)
{
    struct blob_store *store;
    error err;
    char mine[4][BLOB_NAME_SIZE], both[BLOB_NAME_SIZE];
    require(sodium_init() >= 0 && blobs_open(NULL, bounds, &store, &err) == 0, "open");
    for (int i = 0; i < 4; i++)
        require(keep(store, (char[]){ (char) ('a' + i), '\0' }, mine[i]) == 0, "keep");
    flood(store, &(struct blob_owner){ other, other }, 50);
    flood(store, &(struct blob_owner){ held, other }, 50);
    for (int i = 0; i < 4; i++)
        expect(has(store, "", mine[i]), "blob %d of a tenant within its share is kept", i);
    expect(blobs_usage(store)->count == 8, "%d are kept", (int) blobs_usage(store)->count);
    flood(store, &(struct blob_owner){ "", "" }, 50);
    expect(!has(store, "", mine[0]), "what is above one's own share goes");
    expect(blobs_usage(store)->count == 8, "%d are kept", (int) blobs_usage(store)->count);

    require(keep(store, "both", both) == 0 && keep_as(store, other, "both", both) == 0, "both");
    blob_forget(store, "", both);
    expect(has(store, other, both) && !has(store, "", both), "each has bytes of its own");
    blobs_close(store);
}

TEST(a_tenant_within_its_share_loses_nothing_to_others)
{
    try_shares(&(struct blob_bounds){ 8 * BLOCK, 1000 });
    try_shares(&(struct blob_bounds){ 1000 * BLOCK, 8 });
}

TEST(a_blob_larger_than_the_store_takes_nothing_of_others)
{
    const struct blob_bounds bounds = { 2 * BLOCK, 100 };
    struct blob_store *store;
    error err;
    char small[BLOB_NAME_SIZE], large[BLOB_NAME_SIZE];
    char *text = calloc(1, 5 * BLOCK);
    require(text && blobs_open(NULL, &bounds, &store, &err) == 0, "open");
    memset(text, 'x', 5 * BLOCK - 1);
    expect(keep(store, "small", small) == 0 && keep_as(store, other, text, large) == 0, "keep");
    expect(has(store, "", small) && has(store, other, large), "both are there");
    expect(keep(store, "next", small) == 0, "another");
    expect(!has(store, other, large) && has(store, "", small), "then the large one goes");
    blobs_close(store);
    free(text);
}

/* --- a folder --------------------------------------------------------------------------------- */

static const struct blob_bounds plenty = { 100 * BLOCK, 100 };
static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static char state_folder[] = "/tmp/glovebox-blobs-XXXXXX";
static uv_loop_t loop;

static struct blob_store *open_store(void)
{
    struct blob_store *store = NULL;
    error err = { 0 };
    require(uv_loop_init(&loop) == 0 && blobs_open(state_folder, &plenty, &store, &err) == 0, "%s",
            err.text);
    blobs_sync_on(store, &loop);
    return store;
}

static void close_store(struct blob_store *store)
{
    blobs_leave(store);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(uv_loop_close(&loop) == 0, "the loop is empty");
    blobs_close(store);
}

static void keep_cause(void *user, const error *why)
{
    *(error *) user = why ? *why : (error){ 0 };
}

/* Gives  the result of the check. */
static error check(struct blob_store *store, const char *name)
{
    struct blob_check *in_flight;
    error found = { 0 };
    int result = blob_check(store, "", name, &in_flight, &found);
    if (result > 0) {
        blob_check_tell(in_flight, keep_cause, &found);
        (void) uv_run(&loop, UV_RUN_DEFAULT);
    }
    return found;
}

static void overwrite(const char *name, const char *text)
{
    char path[160];
    (void) snprintf(path, sizeof path, "%s/blobs/%s", state_folder, name);
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    expect(file >= 0 && write(file, text, strlen(text)) == (ssize_t) strlen(text), "%s", path);
    (void) close(file);
}

TEST(blobs_in_a_folder_survive)
{
    char name[BLOB_NAME_SIZE];
    require(sodium_init() >= 0 && mkdtemp(state_folder), "a folder");
    try_store(state_folder);
    struct blob_store *store = open_store();
    expect(!is_there(store, abc, "abc"), "what was not hashed since the start is not handed out");
    expect(check(store, abc).code == ERR_NONE && is_there(store, abc, "abc"),
           "kept over a restart");
    expect(keep(store, "abc", name) == 0 && is_there(store, abc, "abc"), "and made again");
    close_store(store);
}

/* A power cut may leave a file that was not synced shorter, or with other bytes. */
TEST(damaged_files_are_not_handed_out)
{
    static const char *const damages[] = { "", "ab", "abd", "abcd" };
    char name[BLOB_NAME_SIZE];
    for_each(damage, damages) {
        struct blob_store *store = open_store();
        require(keep(store, "abc", name) == 0, "keep");
        close_store(store);
        overwrite(abc, *damage);

        store = open_store();
        expect(check(store, abc).code == ERR_NOT_FOUND, "'%s' is found", *damage);
        expect(!is_there(store, abc, *damage) && blobs_usage(store)->damaged == 1, "and removed");
        expect(keep(store, "abc", name) == 0 && is_there(store, abc, "abc"), "and mended");
        close_store(store);
        overwrite(abc, *damage);

        store = open_store();
        expect(keep(store, "abc", name) == 0 && is_there(store, abc, "abc"),
               "'%s' is mended by the same bytes, without a look at it", *damage);
        overwrite(abc, "");
        expect(!is_there(store, abc, ""), "cut short while we run");
        expect(keep(store, "abc", name) == 0 && is_there(store, abc, "abc"), "and mended");
        overwrite(abc, "");
        expect(keep(store, "abc", name) == 0 && is_there(store, abc, "abc"), "or at once");
        close_store(store);
    }
}

TEST(a_file_that_has_gone_is_not_there)
{
    char path[160], name[BLOB_NAME_SIZE];
    struct blob_store *store = open_store();
    require(keep(store, "abc", name) == 0, "keep");
    (void) snprintf(path, sizeof path, "%s/blobs/%s", state_folder, abc);
    error err;
    struct blob_view view;
    expect(unlink(path) == 0 && blob_open(store, "", abc, &view, &err) < 0 &&
               err.code == ERR_NOT_FOUND && blobs_usage(store)->count == 0,
           "gone");
    close_store(store);
    char command[64];
    (void) snprintf(command, sizeof command, "rm -r '%s'", state_folder);
    /* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a test removes its own folder */
    expect(system(command) == 0, "remove %s", state_folder);
}

/* Large blobs are written in pieces. */
static void keep_of_size(struct blob_store *store, size_t size, int expected)
{
    enum { PIECE = 1000, LARGE = 65536 };
    static unsigned char data[200000], read_back[sizeof data + 1];
    char name[BLOB_NAME_SIZE];
    struct blob_writer writer;
    struct blob_view view;
    error err;
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char) (i * i / PIECE);
    blob_begin(store, &(struct blob_owner){ other, other }, &writer);
    for (size_t at = 0; at < size; at += PIECE) {
        size_t piece = size - at < PIECE ? size - at : PIECE;
        require(blob_add(&writer, data + at, piece, &err) == 0, "%s", err.text);
    }
    if (size > LARGE)
        require(blob_write(&writer, NULL, &err) == 0 && !writer.held.data, "%s", err.text);
    expect(blob_name(&writer, "text/plain", name) == expected, "name %zu bytes", size);
    if (expected != BLOB_KNOWN)
        expect(blob_write(&writer, name, &err) == 0 &&
                   blob_keep(&writer, "text/plain", name, &err) == 0,
               "keep %zu bytes", size);
    expect(writer.fd < 0 && !writer.held.data, "nothing is left of the writer");
    require(blob_open(store, other, name, &view, &err) == 0, "open %zu bytes: %s", size, err.text);
    ssize_t got = read(view.fd, read_back, sizeof read_back);
    expect(view.size == size && got == (ssize_t) size && memcmp(read_back, data, size) == 0,
           "%zu bytes come back", size);
    (void) close(view.fd);
}

TEST(blobs_of_any_size_come_back)
{
    static const size_t sizes[] = { 0, 1, 999, 65536, 65537, 200000 };
    static const struct blob_bounds bounds = { 1000 * BLOCK, 100 };
    char folder[] = "/tmp/glovebox-blobs-XXXXXX", command[64];
    error err;
    require(mkdtemp(folder) != NULL, "make %s", folder);
    const char *const states[] = { NULL, folder };
    for_each(state, states) {
        struct blob_store *store;
        require(blobs_open(*state, &bounds, &store, &err) == 0, "%s", err.text);
        for_each(size, sizes) {
            keep_of_size(store, *size, 0);
            keep_of_size(store, *size, BLOB_KNOWN);
        }
        blobs_close(store);
    }
    (void) snprintf(command, sizeof command, "rm -r '%s'", folder);
    /* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a test removes its own folder */
    expect(system(command) == 0, "remove %s", folder);
}

TEST(types_come_from_name_or_magic)
{
    static const struct {
        const char *path, *head, *mime;
    } facts[] = {
        { "plot.png", "", "image/png" },
        { "a/b.CSV", "", "text/csv" },
        { "noname", "\x89PNG\r\n\x1a\n", "image/png" },
        { "noname", "%PDF-1.7", "application/pdf" },
        { "a.b/noname", "x", "application/octet-stream" },
        { ".png", "", "image/png" },
    };
    for_each(fact, facts) {
        const char *mime =
            mime_of(fact->path, (const unsigned char *) fact->head, strlen(fact->head));
        expect(strcmp(mime, fact->mime) == 0, "%s is %s", fact->path, mime);
    }
}

TESTS(CASE(blobs_in_memory), CASE(blobs_of_any_size_come_back),
      CASE(a_tenant_within_its_share_loses_nothing_to_others),
      CASE(a_blob_larger_than_the_store_takes_nothing_of_others), CASE(blobs_in_a_folder_survive),
      CASE(damaged_files_are_not_handed_out), CASE(a_file_that_has_gone_is_not_there),
      CASE(types_come_from_name_or_magic))
