/* options.h - the command line of gloveboxd, which the supervisor writes.
 *
 *     gloveboxd --spawner FD [--connection FD]… [--listen-fd FD]… --policies PATH
 *               --templates DIRECTORY --state DIRECTORY [--private] [--verbose] …
 *
 * All options stand in one table (options.c). */
#pragma once

#include "engine/audit/audit_log.h"

#include <stdbool.h>

enum { SOCKETS_MAX = 64 };

struct sockets {
    size_t count;
    int list[SOCKETS_MAX];
};

struct options {
    int spawner;
    int egress; /* -1: no route leads out */
    int notify; /* -1: there are no notifications */
    int control;
    bool has_webhook;
    bool is_private;
    bool is_warm; /* a private one that keeps interpreters to fork */
    bool is_verbose;
    unsigned owner;
    struct sockets connections, listens;
    const char *policies;
    const char *state;
    const char *values; /* "key=value" a line */
    struct receipts_settings receipts;
    const char *templates;      /* their folder */
    const char *first_template; /* the one that most runs use; NULL: none in particular */
};

/* Texts are borrowed of `words`. What is not given stays as it was. Fails  ERR_BAD_REQUEST. */
int options_read(int count, char **words, struct options *options, error *err);
