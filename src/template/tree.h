/* tree.h - walks and changes a tree of files by descriptors, and never follows a link.
 *
 * Every path is relative to a directory that the caller has open. Entries are visited in the order
 * of their names' bytes, so that walks over equal trees give the same sequence. */
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
    bool leaving; /* a directory is visited twice: before and after its entries */
};

/* Returns TREE_GO_ON, TREE_SKIP (do not enter this directory, nor visit it again) or -1. */
typedef int tree_visit(void *context, const struct tree_entry *entry, error *err);

/* Visits everything below `root`, but not `root` itself.
 * Fails  also if something is mounted in the tree, since that does not belong to it. */
int tree_walk(int root, tree_visit *visit, void *context, error *err);

/* Removes `name` in `directory` with its contents. Does not fail if it does not exist. */
int tree_remove(int directory, const char *name, error *err);

/* Changes the owner of `root` and all below it: to the caller, or to a user and group of one id. */
int tree_give(int root, uid_t owner, error *err);

/* Opens `path` below `root` (Linux 5.6, openat2(2): follows no link, and cannot leave `root`).
 * Returns a descriptor, or -1 with errno. */
int tree_open(int root, const char *path, int flags);

/* Makes the directory `path` below `root` and those above it, mode 0755. */
int tree_make_directory(int root, const char *path, error *err);

/* Writes a new file, mode 0644, in place of an old one. */
int tree_write_file(int root, const char *path, const void *bytes, size_t size, error *err);

/* The same by rename(2), so that readers never see an incomplete file. */
int tree_replace_file(int root, const char *path, const void *bytes, size_t size, error *err);

/* Reads a whole file of at most 256 MiB.
 * Gives  *ret_text with a NUL after its *ret_size bytes, which the caller frees. */
int tree_read_file(int root, const char *path, char **ret_text, size_t *ret_size, error *err);
