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
    int egress; /* -1: no runs have a network */
    int notify; /* -1: no notifications are sent */
    int control;
    bool has_webhook;
    bool is_private;
    bool is_warm; /* a private one that keeps interpreters to fork */
    bool is_verbose;
    unsigned owner;
    struct sockets connections, listens;
    const char *policies;
    const char *state;
    const char *values; /* lines "key=value" */
    struct receipts_settings receipts;
    const char *templates;      /* their folder */
    const char *first_template; /* the one that most runs use; NULL: unknown */
};

/* Texts point into `words`. Options that are not given keep their value. Fails ERR_BAD_REQUEST. */
int options_read(int count, char **words, struct options *options, error *err);
