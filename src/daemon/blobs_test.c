/* blobs_test.c - blobs in memory and in a folder; what is too much goes, the oldest first. */
#include "base/test.h"

#include "base/table.h"
#include "daemon/blobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char held[] = "0123456789abcdef";

static int keep_as(struct blob_store *store, const char *owner, const char *text,
                   char name[BLOB_NAME_SIZE])
{
    struct blob_writer writer;
    error err;
    if (blob_begin(store, owner, &writer, &err) < 0 ||
        blob_add(&writer, text, strlen(text), &err) < 0)
        return -1;
    int kept = blob_keep(&writer, mime_of("a.txt", writer.head, writer.head_size), name, &err);
    return kept == BLOB_KNOWN ? 0 : kept;
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
    require(sodium_init() >= 0 && blobs_open(state, 10, &store, &err) == 0, "open");
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

TEST(blobs_in_a_folder_survive)
{
    char state[] = "/tmp/glovebox-blobs-XXXXXX";
    require(mkdtemp(state), "a folder");
    try_store(state);
    struct blob_store *store;
    error err;
    require(blobs_open(state, 100, &store, &err) == 0, "open again");
    expect(
        is_there(store, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc"),
        "kept over a restart");
    blobs_close(store);
    char command[64];
    (void) snprintf(command, sizeof command, "rm -r '%s'", state);
    /* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a test removes its own folder */
    expect(system(command) == 0, "remove %s", state);
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

TESTS(CASE(blobs_in_memory), CASE(blobs_in_a_folder_survive), CASE(types_come_from_name_or_magic))
