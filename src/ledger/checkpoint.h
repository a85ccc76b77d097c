/* checkpoint.h - a signed tree head: name, number of records and root hash of a log.
 *
 *     glovebox/0123456789abcdef
 *     128
 *     BASE64 OF THE ROOT
 *
 *     — glovebox/0123456789abcdef BASE64
 *
 *   See  https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note */
#pragma once

#include "ledger/key.h"
#include "ledger/merkle.h"

enum {
    CHECKPOINT_SIZE = 512,      /* as glovebox writes it */
    CHECKPOINT_NOTE_MAX = 8192, /* with extensions and signatures of others */
};

/* Gives  ret_text, ended by NUL. */
void checkpoint_print(const struct signing_key *key, const struct merkle_head *head,
                      char ret_text[CHECKPOINT_SIZE]);

/* Reads a checkpoint and checks the key's signature. Extension lines, which are signed too, and
 * signatures by other keys (such as witnesses) are skipped, as the specification requires. A key
 * without a name takes the note's.
 * Fails  ERR_BAD_REQUEST  no checkpoint; ERR_POLICY  changed, or signed only by other keys. */
int checkpoint_read(const char *text, const struct public_key *key, struct merkle_head *ret_head,
                    error *err);
