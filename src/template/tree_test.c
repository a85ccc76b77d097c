/* tree_test.c - a walk stays inside its tree, whatever links are in it. */
#include "template/tree.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place_name[32];

/* Makes a folder with outside/kept and tree/. Returns a descriptor of it. */
static int make_place(void)
{
    error err;
    (void) snprintf(place_name, sizeof(place_name), "tree-test-XXXXXX");
    if (!mkdtemp(place_name))
        return -1;
    int place = open(place_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(place >= 0 && tree_make_directory(place, "outside", &err) == 0 &&
                tree_make_directory(place, "tree", &err) == 0 &&
                tree_write_file(place, "outside/kept", "kept", 4, &err) == 0,
            "make a place to test in");
    return place;
}

static void remove_place(void)
{
    error err;
    expect(tree_remove(AT_FDCWD, place_name, &err) == 0, "%s", err.text);
}

static bool exists(int place, const char *path)
{
    return faccessat(place, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(what_is_removed_ends_at_links)
{
    error err = { 0 };
    auto_fd place = make_place();
    require(place >= 0, "make a place to test in");
    require(symlinkat("../outside", place, "tree/link") == 0, "link to a folder");
    require(symlinkat("../outside/kept", place, "tree/file-link") == 0, "link to a file");
    require(mkdirat(place, "tree/closed", 0755) == 0, "make a folder");
    require(tree_write_file(place, "tree/closed/file", "x", 1, &err) == 0, "%s", err.text);
    require(fchmodat(place, "tree/closed", 0, 0) == 0, "close the folder");
    expect(tree_remove(place, "tree", &err) == 0, "%s", err.text);
    expect(!exists(place, "tree"), "the tree is there still");
    expect(exists(place, "outside/kept"), "a link was followed");
    expect(tree_remove(place, "tree", &err) == 0, "what is not there is removed already: %s",
           err.text);
    remove_place();
}

TEST(nothing_is_opened_or_written_through_a_link)
{
    error err = { 0 };
    auto_fd place = make_place();
    require(place >= 0, "make a place to test in");
    require(symlinkat("../outside", place, "tree/link") == 0, "link to a folder");
    auto_fd tree = tree_open(place, "tree", O_RDONLY | O_DIRECTORY);
    require(tree >= 0, "open the tree");
    static const char *const ways_out[] = { "link/kept", "../outside/kept", "/etc/passwd", "link" };
    for_each(way, ways_out) {
        auto_fd fd = tree_open(tree, *way, O_RDONLY);
        expect(fd < 0, "'%s' was opened", *way);
        auto_text text = NULL;
        size_t size = 0;
        expect(tree_read_file(tree, *way, &text, &size, &err) < 0, "'%s' was read", *way);
    }
    expect(tree_write_file(tree, "link/new", "x", 1, &err) < 0, "a file was written behind a link");
    expect(tree_make_directory(tree, "link/new", &err) < 0, "a folder was made behind a link");
    expect(!exists(place, "outside/new"), "it is outside now");
    /* A link at the path of the file is replaced, not followed. */
    expect(tree_write_file(tree, "link", "x", 1, &err) == 0, "%s", err.text);
    expect(exists(place, "outside/kept"), "a link was followed");
    remove_place();
}

struct seen {
    char text[256];
};

static int see(void *context, const struct tree_entry *entry, error *err)
{
    (void) err;
    struct seen *seen = context;
    size_t used = strlen(seen->text);
    (void) snprintf(seen->text + used, sizeof(seen->text) - used, "%s%s ",
                    entry->leaving ? "-" : "", entry->path);
    return strcmp(entry->name, "skipped") == 0 ? TREE_SKIP : TREE_GO_ON;
}

TEST(a_walk_goes_by_the_bytes_of_names)
{
    error err = { 0 };
    struct seen seen = { "" };
    auto_fd place = make_place();
    require(place >= 0, "make a place to test in");
    static const char *const folders[] = { "tree/b",          "tree/skipped", "tree/skipped/x",
                                           "tree/b/\xc3\xa4", "tree/b/z",     "tree/B" };
    for_each(folder, folders)
        require(tree_make_directory(place, *folder, &err) == 0, "%s", err.text);
    require(symlinkat("b", place, "tree/a") == 0, "link");
    auto_fd tree = tree_open(place, "tree", O_RDONLY | O_DIRECTORY);
    for (int times = 0; times < 2; times++) { /* a second walk starts again */
        seen.text[0] = '\0';
        expect(tree_walk(tree, see, &seen, &err) == 0, "%s", err.text);
        expect(strcmp(seen.text, "B -B a b b/z -b/z b/\xc3\xa4 -b/\xc3\xa4 -b skipped ") == 0,
               "'%s'", seen.text);
    }
    remove_place();
}

static void make_deep(int place, const char *name, int levels)
{
    int at = openat(place, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(at >= 0 && mkdirat(at, ".deep-1", 0755) == 0, "make a name that is in the way");
    for (int level = 0; level < levels; level++) {
        require(mkdirat(at, name, 0755) == 0, "make folder %d", level);
        int inner = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void) close(at);
        at = inner;
    }
    (void) close(at);
}

/* A tree deeper than a walk goes, with a path longer than PATH_MAX. */
TEST(a_tree_of_any_depth_is_removed)
{
    enum { LEVELS = 450, LONG_LEVELS = 40 };
    static char long_name[201];
    error err = { 0 };
    auto_fd place = make_place();
    memset(long_name, 'n', sizeof long_name - 1);
    for (int tree = 0; tree < 2; tree++) {
        make_deep(place, tree == 0 ? "d" : long_name, tree == 0 ? LEVELS : LONG_LEVELS);
        expect(tree_remove(place, "tree", &err) == 0, "%s", err.text);
        expect(!exists(place, "tree"), "the tree is there still");
        require(mkdirat(place, "tree", 0755) == 0, "make it again");
    }
    remove_place();
}

TESTS(CASE(what_is_removed_ends_at_links), CASE(a_tree_of_any_depth_is_removed),
      CASE(nothing_is_opened_or_written_through_a_link), CASE(a_walk_goes_by_the_bytes_of_names))
