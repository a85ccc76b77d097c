/* jwks.c - a set of public keys (RFC 7517, 7518, 8037). Keys that must not
 * check signatures are skipped: keys for encryption, secrets, weak curves and sizes. */
#include "base/table.h"
#include "oauth/oauth.h"
#include "json/member.h"
#include "json/reader.h"

#include <gnutls/gnutls.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_MAX = 1024, RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, POINT_SIZE = 32 };

struct number {
    unsigned char bytes[NUMBER_MAX];
    size_t size;
};

static bool read_number(struct json_object *object, const char *name, struct number *ret)
{
    const char *text = member_text(object, name);
    return text &&
           sodium_base642bin(ret->bytes, sizeof ret->bytes, text, strlen(text), NULL, &ret->size,
                             NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
           ret->size > 0;
}

static bool is_for_signatures(struct json_object *object)
{
    const char *use = member_text(object, "use");
    struct json_object *operations = json_member(object, "key_ops");
    if (json_member(object, "use") && (!use || strcmp(use, "sig") != 0))
        return false;
    if (!operations)
        return true;
    if (!json_object_is_type(operations, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(operations); i++) {
        struct json_object *operation = json_object_array_get_idx(operations, i);
        if (json_object_is_type(operation, json_type_string) &&
            strcmp(json_object_get_string(operation), "verify") == 0)
            return true;
    }
    return false;
}

static gnutls_datum_t datum_of(struct number *number)
{
    return (gnutls_datum_t){ number->bytes, (unsigned) number->size };
}

/* With an exponent of 1 a text is its own signature; an even exponent is never valid. */
static bool is_sound(const struct number *exponent)
{
    unsigned char last = exponent->bytes[exponent->size - 1], before = 0;
    for (size_t i = 0; i + 1 < exponent->size; i++)
        before |= exponent->bytes[i];
    return last % 2 == 1 && (last > 1 || before > 0);
}

static bool import_rsa(struct json_object *object, gnutls_pubkey_t key)
{
    struct number modulus, exponent;
    unsigned bits = 0;
    if (!read_number(object, "n", &modulus) || !read_number(object, "e", &exponent) ||
        !is_sound(&exponent))
        return false;
    gnutls_datum_t n = datum_of(&modulus), e = datum_of(&exponent);
    return gnutls_pubkey_import_rsa_raw(key, &n, &e) == 0 &&
           gnutls_pubkey_get_pk_algorithm(key, &bits) == GNUTLS_PK_RSA && bits >= RSA_BITS_MIN &&
           bits <= RSA_BITS_MAX;
}

static bool import_point(struct json_object *object, gnutls_pubkey_t key, enum oauth_kind kind)
{
    struct number x, y = { .size = 0 };
    const char *curve = member_text(object, "crv");
    bool is_edwards = kind == OAUTH_ED25519;
    if (!curve || strcmp(curve, is_edwards ? "Ed25519" : "P-256") != 0 ||
        !read_number(object, "x", &x) || x.size != POINT_SIZE)
        return false;
    if (!is_edwards && (!read_number(object, "y", &y) || y.size != POINT_SIZE))
        return false;
    gnutls_datum_t x_datum = datum_of(&x), y_datum = datum_of(&y);
    return gnutls_pubkey_import_ecc_raw(
               key, is_edwards ? GNUTLS_ECC_CURVE_ED25519 : GNUTLS_ECC_CURVE_SECP256R1, &x_datum,
               is_edwards ? NULL : &y_datum) == 0;
}

static bool import(struct json_object *object, struct oauth_key *key)
{
    static const struct {
        const char *type;
        enum oauth_kind kind;
    } kinds[] = { { "RSA", OAUTH_RSA }, { "EC", OAUTH_P256 }, { "OKP", OAUTH_ED25519 } };
    const char *type = member_text(object, "kty");
    for_each(row, kinds) {
        if (!type || strcmp(type, row->type) != 0)
            continue;
        key->kind = row->kind;
        return row->kind == OAUTH_RSA ? import_rsa(object, key->key)
                                      : import_point(object, key->key, row->kind);
    }
    return false;
}

/* Copies a text whole. False: it is not a text, or too long; then the key is skipped. */
static bool keep(struct json_object *object, const char *name, char *room, size_t size)
{
    const char *text = member_text(object, name);
    if (!json_member(object, name))
        return true;
    return text && text[0] && snprintf(room, size, "%s", text) < (int) size;
}

static void add(struct json_object *object, struct oauth_keys *keys)
{
    struct oauth_key key = { .kind = OAUTH_RSA };
    if (!is_for_signatures(object) || !keep(object, "kid", key.id, sizeof key.id) ||
        !keep(object, "alg", key.algorithm, sizeof key.algorithm) ||
        gnutls_pubkey_init(&key.key) != 0)
        return;
    if (import(object, &key))
        keys->list[keys->count++] = key;
    else
        gnutls_pubkey_deinit(key.key);
}

int oauth_keys_read(const char *json, size_t size, struct oauth_keys *ret_keys, error *err)
{
    auto_json root = NULL;
    *ret_keys = (struct oauth_keys){ .count = 0 };
    if (json_read(json, size, &root, err) < 0)
        return -1;
    struct json_object *list = json_member(root, "keys");
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count && ret_keys->count < OAUTH_KEYS_MAX; i++)
        add(json_object_array_get_idx(list, i), ret_keys);
    if (ret_keys->count > 0)
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "no key in it can check signatures: it needs RSA of 2048 bits or more, P-256 or "
                "Ed25519, in a list 'keys'");
}

void oauth_keys_done(struct oauth_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        gnutls_pubkey_deinit(keys->list[i].key);
    keys->count = 0;
}
