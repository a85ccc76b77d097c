/* witness_output.h - where the log's checkpoints are handed on to: a file, syslog, or a URL. */
#pragma once

#include "ledger/ledger.h"

struct notices;

struct witness_link {
    const char *place; /* NULL: there is none */
    int file;          /* or the socket of syslog; -1 */
    bool is_syslog, is_file;
    struct notices *far; /* NULL: it is near */
};

/* `place` must outlive the link. */
int witness_link_open(struct witness_link *link, const char *place, struct notices *notices,
                      error *err);

/* A file that has seen more of the log than there is, or something else, is believed.
 * Fails  ERR_UNAVAILABLE  the log was put back from an older copy */
int witness_link_check(const struct witness_link *link, int folder, struct ledger *ledger,
                       error *err);

/* As the witness of a ledger; `context` is the link. */
void witness_link_tell(void *context, const char *text, size_t size);
