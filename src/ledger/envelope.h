/* envelope.h - a signed statement as a DSSE envelope, in one exact form.
 *
 *     {"payload":"BASE64","payloadType":"TYPE","signatures":[{"keyid":"HEX","sig":"BASE64"}]}
 *
 * The signature covers the pre-authentication encoding of type and payload, so any DSSE library can
 * check it. Only the form above is accepted, so that no byte can be changed without notice.
 *
 *   See  https://github.com/secure-systems-lab/dsse/blob/master/protocol.md */
#pragma once

#include "base/bytes.h"
#include "ledger/key.h"

#define TYPE_STATEMENT "application/vnd.in-toto+json"
#define TYPE_EVENT     "application/vnd.glovebox.event+json"

enum { ENVELOPE_TYPE_SIZE = 64, ENVELOPE_MAX = 4 * 1024 * 1024 };

struct envelope {
    char type[ENVELOPE_TYPE_SIZE];
    struct bytes payload;
    char key_id[KEY_ID_SIZE];
    unsigned char signature[SIGNATURE_SIZE];
};

/* Adds the signed envelope to `out`. */
int envelope_write(const struct signing_key *key, const char *type, const struct bytes *payload,
                   struct bytes *out, error *err);

/* Reads an envelope; one newline may follow it. Gives *ret_envelope, for envelope_done() or an
 * auto_envelope; it is empty after a failure.
 * Fails  ERR_BAD_REQUEST  with the position of the first wrong byte. */
int envelope_read(const char *text, size_t size, struct envelope *ret_envelope, error *err);
void envelope_done(struct envelope *envelope);

#define auto_envelope __attribute__((cleanup(envelope_done))) struct envelope

/* Fails  ERR_POLICY  signed by another key, or changed since. */
int envelope_check(const struct envelope *envelope, const struct public_key *key, error *err);
