/* signature.c - the algorithms of signatures, a row each. The kind of a key decides which of them
 * may be used with it, whatever the token names. */
#include "base/table.h"
#include "oauth/oauth.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

enum { HALF = 32 }; /* bytes of r, and of s, in a signature with P-256 */

static const struct row {
    const char *name;
    enum oauth_kind kind;
    gnutls_sign_algorithm_t algorithm;
} rows[] = {
    { "RS256", OAUTH_RSA, GNUTLS_SIGN_RSA_SHA256 },
    { "PS256", OAUTH_RSA, GNUTLS_SIGN_RSA_PSS_SHA256 },
    { "ES256", OAUTH_P256, GNUTLS_SIGN_ECDSA_SHA256 },
    { "EdDSA", OAUTH_ED25519, GNUTLS_SIGN_EDDSA_ED25519 },
    { "Ed25519", OAUTH_ED25519, GNUTLS_SIGN_EDDSA_ED25519 },
};

static bool is_by(const struct oauth_key *key, const struct row *row,
                  const struct oauth_signed *said)
{
    union {
        const void *given;
        void *taken;
    } text = { said->text }, signature = { said->signature }; /* GnuTLS changes neither */
    const gnutls_datum_t data = { text.taken, (unsigned) said->size };
    gnutls_datum_t raw = { signature.taken, (unsigned) said->signature_size };
    if (row->kind != OAUTH_P256)
        return gnutls_pubkey_verify_data2(key->key, row->algorithm, 0, &data, &raw) >= 0;
    gnutls_datum_t der;
    if (said->signature_size != 2 * (size_t) HALF)
        return false;
    const gnutls_datum_t r = { raw.data, HALF }, s = { raw.data + HALF, HALF };
    if (gnutls_encode_rs_value(&der, &r, &s) < 0)
        return false;
    bool result = gnutls_pubkey_verify_data2(key->key, row->algorithm, 0, &data, &der) >= 0;
    gnutls_free(der.data);
    return result;
}

static bool may_be_by(const struct oauth_key *key, const struct row *row,
                      const struct oauth_signed *said)
{
    return key->kind == row->kind && (!said->id || strcmp(said->id, key->id) == 0) &&
           (!key->algorithm[0] || strcmp(key->algorithm, said->algorithm) == 0);
}

int oauth_verify(const struct oauth_keys *keys, const struct oauth_signed *said, error *err)
{
    const struct row *row = NULL;
    bool is_tried = false;
    for_each(other, rows)
        if (strcmp(other->name, said->algorithm) == 0)
            row = other;
    if (!row)
        return fail(err, ERR_UNAUTHORIZED,
                    "'%.16s' is not accepted as a signature; RS256, PS256, ES256 and EdDSA are",
                    said->algorithm);
    for (size_t i = 0; i < keys->count; i++) {
        if (!may_be_by(&keys->list[i], row, said))
            continue;
        is_tried = true;
        if (is_by(&keys->list[i], row, said))
            return 0;
    }
    return fail(err, ERR_UNAUTHORIZED,
                is_tried ? "the signature of the token is not that of its issuer"
                         : "no key of the issuer fits the token; its file of keys may be old");
}
