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

#include "receipt/key.h"
#include "receipt/merkle.h"

enum { CHECKPOINT_SIZE = 512 };

/* Gives  ret_text, ended by NUL. */
void checkpoint_print(const struct signing_key *key, const struct merkle_head *head,
                      char ret_text[CHECKPOINT_SIZE]);

/* Reads a checkpoint and checks its signature.
 * Fails  ERR_BAD_REQUEST  it is none; ERR_POLICY  it was changed, or signed by another key. */
int checkpoint_read(const char *text, const struct public_key *key, struct merkle_head *ret_head,
                    error *err);
