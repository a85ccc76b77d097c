/* tree.h - walking and changing a tree of files by descriptors, never through a link and never out.
 *
 * Every path is relative to a directory that the caller holds open. Entries come in the order of
 * their names' bytes, so that two walks over equal trees see the same sequence. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { TREE_GO_ON = 0, TREE_SKIP = 1 };

struct tree_entry {
    int directory;    /* the directory that it is in */
    const char *name; /* its name there */
    const char *path; /* from the root of the walk, without a leading '/' */
    struct stat status;
    bool leaving; /* a directory comes twice: before its entries, and after them */
};

/* Returns TREE_GO_ON, TREE_SKIP (do not enter this directory, nor come back to it) or -1. */
typedef int tree_visit(void *context, const struct tree_entry *entry, error *err);

/* Visits all that is below `root`, without `root` itself.
 * Fails  also when something is mounted in the tree: what is there is not ours. */
int tree_walk(int root, tree_visit *visit, void *context, error *err);

/* Removes `name` in `directory` with all that is in it. It is no failure if it does not exist. */
int tree_remove(int directory, const char *name, error *err);

/* Gives `root` and all that is below it to one user: the caller, or one with a group of the same
 * number. */
int tree_give(int root, uid_t owner, error *err);

/* Opens `path` below `root` (Linux 5.6, openat2(2): no link is followed, no way leads out).
 * Gives  a descriptor, or -1 with errno. */
int tree_open(int root, const char *path, int flags);

/* Makes the directory `path` below `root` and those above it, mode 0755. */
int tree_make_directory(int root, const char *path, error *err);

/* Writes a whole new file, mode 0644, in place of what was there. */
int tree_write_file(int root, const char *path, const void *bytes, size_t size, error *err);

/* The same, whole or not at all for a reader meanwhile. */
int tree_replace_file(int root, const char *path, const void *bytes, size_t size, error *err);

/* Reads a whole file of at most 256 MiB.
 * Gives  *ret_text with a NUL after its *ret_size bytes, which the caller frees. */
int tree_read_file(int root, const char *path, char **ret_text, size_t *ret_size, error *err);
