/* checkpoint.h - a signed tree head: "the log of this name had so many records with this root".
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
    CHECKPOINT_SIZE = 512,      /* of one as we write it */
    CHECKPOINT_NOTE_MAX = 8192, /* with what others have added */
};

/* Gives  ret_text, ended by NUL. */
void checkpoint_print(const struct signing_key *key, const struct merkle_head *head,
                      char ret_text[CHECKPOINT_SIZE]);

/* Reads a checkpoint and checks the key's signature. Lines that extend it are signed with it and
 * otherwise passed over, and so are signatures by other keys (of witnesses, say), as the
 * specification demands. A key that came without a name takes the note's.
 * Fails  ERR_BAD_REQUEST  it is none; ERR_POLICY  it was changed, or signed by other keys alone. */
int checkpoint_read(const char *text, const struct public_key *key, struct merkle_head *ret_head,
                    error *err);
