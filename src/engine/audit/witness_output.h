/* witness_output.h - where the log's checkpoints are handed on to: a file, syslog, or a URL. */
#pragma once

#include "ledger/ledger.h"

struct notify_client;

struct witness_output {
    const char *place; /* NULL: there is none */
    int file;          /* or the socket of syslog; -1 */
    bool is_syslog, is_file;
    struct notify_client *far; /* NULL: it is near */
};

/* `place` must outlive the link. */
int witness_output_open(struct witness_output *link, const char *place,
                        struct notify_client *notify_client, error *err);

/* A file that has seen more of the log than there is, or something else, is believed.
 * Fails  ERR_UNAVAILABLE  the log was put back from an older copy */
int witness_output_check(const struct witness_output *link, int folder, struct ledger *ledger,
                         error *err);

/* As the witness of a ledger; `context` is the link. */
void witness_output_tell(void *context, const char *text, size_t size);
