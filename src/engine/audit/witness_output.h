/* witness_output.h - sends the log's checkpoints to a file, to syslog, or to a URL. */
#pragma once

#include "ledger/ledger.h"

struct notify_client;

struct witness_output {
    const char *place; /* NULL: no witness */
    int file;          /* the file, or the socket of syslog; else -1 */
    bool is_syslog, is_file;
    struct notify_client *far; /* for a URL; else NULL */
};

/* `place` must outlive the link. */
int witness_output_open(struct witness_output *link, const char *place,
                        struct notify_client *notify_client, error *err);

/* Compares the log with the witness file, which wins if it has more records or other ones. Fails
 * ERR_UNAVAILABLE  the log was replaced by an older copy */
int witness_output_check(const struct witness_output *link, int folder, struct ledger *ledger,
                         error *err);

/* A ledger's callback for checkpoints; `context` is the link. */
void witness_output_tell(void *context, const char *text, size_t size);
