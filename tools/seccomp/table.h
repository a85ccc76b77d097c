/* table.h - a table of system calls, as it is read, checked and laid out at build time. */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum action { ALLOW, REFUSE, FAIL };

enum { ROWS_MOST = 1024, TESTS_MOST = 3, CALLS_MOST = 512, X32_BIT = 0x40000000 };

struct test {
    unsigned argument;
    bool whole; /* all 64 bits, else the low 32 */
    bool equal;
    uint64_t mask, value;
};

struct row {
    char name[32];
    char why[200];
    const char *file;
    int line;
    unsigned call;
    enum action action;
    bool counted; /* REFUSE: not while few are open */
    int os;
    unsigned tests;
    struct test test[TESTS_MOST];
};

struct table {
    struct row row[ROWS_MOST];
    unsigned rows;
};

struct program {
    struct sock_filter code[BPF_MAXINSNS];
    unsigned length;
    bool overflowed;
};

/* libc_stubs.c: names that stand for numbers. Give -1 if there is no such name. */
int word_value(const char *name, uint64_t *ret_value);
int error_value(const char *name, uint64_t *ret_value);

/* read.c: one table, and the one that it includes. Complaints begin with file and line. */
int read_table(const char *path, struct table *table, int depth, error *err);

/* precheck.c: sorts the rows by number; every call must be decided, once, by rows that can be
 * reached.
 */
int check_table(struct table *table, error *err);

/* Arguments that reach `row`, of the call whose rows begin at `first`; -1 if there are none. */
int reach_row(const struct row *first, const struct row *row, uint64_t *ret_arguments);

/* child_process.c: lays the filter out. Fails  ERR_TOO_LARGE. */
int compile(const struct table *table, struct program *program, error *err);

#define complain(place, err, format, ...) \
    fail(err, ERR_BAD_REQUEST, "%s:%d: " format, (place)->file, (place)->line, ##__VA_ARGS__)

static inline void close_file(FILE **file)
{
    if (*file)
        (void) fclose(*file);
}

#define auto_file __attribute__((cleanup(close_file))) FILE *
