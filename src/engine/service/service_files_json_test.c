/* service_files_json_test.c - listings are sorted by path, whatever the order of the file system,
 * and may be read in pieces of any size. */
#include "engine/service/service_files_json.h"

#include "base/test.h"
#include "engine/service/service_files_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MANY = 1000 };

static void add(struct file_task *task, const char *path)
{
    task->entries[task->entry_count++] = (struct listed_entry){ .facts.mode = S_IFREG,
                                                                .path = task->names.size,
                                                                .path_size = strlen(path) };
    bytes_add(&task->names, path, strlen(path));
    directory_order_last(task);
}

static void read_all(struct listing *listing, size_t piece, struct bytes *all)
{
    char block[64];
    ssize_t got;
    while ((got = listing_read(listing, block, piece)) > 0)
        bytes_add(all, block, (size_t) got);
    expect(got == 0, "the end is %zd", got);
    bytes_add(all, "", 1);
}

TEST(entries_come_in_the_order_of_their_paths)
{
    static struct listed_entry entries[MANY];
    for (size_t piece = 1; piece <= 64; piece += 21) {
        struct file_task task = { .entries = entries };
        struct bytes all = { 0 };
        for (unsigned i = 0; i < MANY; i++) {
            char name[16];
            (void) snprintf(name, sizeof name, "%03u", i * 619 % MANY); /* each once, mixed */
            add(&task, name);
        }
        struct listing listing = { .task = &task };
        read_all(&listing, piece, &all);
        const char *at = all.data;
        for (unsigned i = 0; i < MANY && at; i++) {
            char wanted[32];
            (void) snprintf(wanted, sizeof wanted, "{\"path\":\"%03u\",", i);
            at = strstr(at, "{\"path\":\"");
            at = at && i == 0 ? strstr(at + 1, "{\"path\":\"") : at; /* the first is the folder's */
            expect(at && strncmp(at, wanted, strlen(wanted)) == 0, "%u is not there: %.40s", i,
                   at ? at : "the end");
            at = at ? at + 1 : NULL;
        }
        expect(strstr(all.data, "},]") == NULL && strcmp(all.data + all.size - 4, "}]}") == 0,
               "its end is %s", all.data + (all.size > 40 ? all.size - 40 : 0));
        listing_done(&listing);
        bytes_done(&task.names);
        bytes_done(&all);
    }
}

TEST(a_mode_is_octal_with_three_digits_at_least)
{
    static const struct {
        uint32_t mode;
        const char *facts;
    } cases[] = {
        { S_IFREG | 0644,
          "\"bytes\":7,\"mode\":\"644\",\"modified_at\":\"1970-01-01T00:00:01.500Z\"" },
        { S_IFREG, "\"bytes\":7,\"mode\":\"000\",\"modified_at\":\"1970-01-01T00:00:01.500Z\"" },
        { S_IFDIR | 07777,
          "\"bytes\":7,\"mode\":\"7777\",\"modified_at\":\"1970-01-01T00:00:01.500Z\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_bytes all = { 0 };
        file_facts_write(
            &(struct file_entry){ .mode = cases[i].mode, .size = 7, .mtime_ns = 1500999999 }, &all);
        bytes_add(&all, "", 1);
        expect(strcmp(all.data, cases[i].facts) == 0, "%s", all.data);
    }
}

TEST(a_path_stands_before_those_that_it_begins)
{
    struct listed_entry entries[8];
    struct file_task task = { .entries = entries };
    struct bytes all = { 0 };
    static const char *const mixed[] = { "b", "a/b", "a", "a-", "ab" };
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
        add(&task, mixed[i]);
    struct listing listing = { .task = &task };
    read_all(&listing, 64, &all);
    static const char *const sorted[] = { "\"a\",\"n", "\"a-\",\"n", "\"a/b\",\"n", "\"ab\",\"n",
                                          "\"b\",\"n" };
    const char *at = all.data;
    for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++) {
        at = at ? strstr(at, sorted[i]) : NULL;
        expect(at != NULL, "%s is not in its place: %s", sorted[i], all.data);
    }
    listing_done(&listing);
    bytes_done(&task.names);
    bytes_done(&all);
}

TEST(an_empty_folder_is_a_list_of_nothing)
{
    struct file_task task = { .is_cut = true };
    struct bytes all = { 0 };
    struct listing listing = { .task = &task };
    read_all(&listing, 7, &all);
    expect(strcmp(all.data, "{\"path\":\"\",\"truncated\":true,\"entries\":[]}") == 0, "it is %s",
           all.data);
    listing_done(&listing);
    bytes_done(&all);
}

TESTS(CASE(entries_come_in_the_order_of_their_paths),
      CASE(a_mode_is_octal_with_three_digits_at_least),
      CASE(a_path_stands_before_those_that_it_begins), CASE(an_empty_folder_is_a_list_of_nothing))
