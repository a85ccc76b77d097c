/* token_test.c - tokens that are accepted, and tokens that are refused. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/test.h"
#include "oauth/oauth.h"

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define EDDSA    "{\"alg\":\"EdDSA\",\"kid\":\"e1\"}"
#define ISSUER   "https://login.example.com"
#define AUDIENCE "https://sandbox.example.com/mcp"

enum { TEXT_MAX = 2048 };

struct signer {
    gnutls_privkey_t private;
    gnutls_sign_algorithm_t algorithm;
    const char *id, *name;
    char jwk[3 * TEXT_MAX];
};

static struct signer rsa, other_rsa, curve, edwards, small;

static void encode(const void *data, size_t size, char *room)
{
    (void) sodium_bin2base64(room, TEXT_MAX, data, size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Numbers in keys have no leading zeros, except to fill up the size of the curve. */
static void encode_number(const gnutls_datum_t *number, size_t size, char *room)
{
    unsigned char bytes[1024] = { 0 };
    const unsigned char *from = number->data;
    size_t left = number->size;
    while (left > 1 && *from == 0)
        from++, left--;
    size_t pad = size > left ? size - left : 0;
    memcpy(bytes + pad, from, left);
    encode(bytes, pad + left, room);
}

static void make_rsa(struct signer *signer, const char *id, unsigned bits)
{
    static char n_text[TEXT_MAX], e_text[TEXT_MAX];
    gnutls_datum_t n, e;
    gnutls_pubkey_t public;
    *signer = (struct signer){ .algorithm = GNUTLS_SIGN_RSA_SHA256, .id = id, .name = "RS256" };
    (void) gnutls_privkey_init(&signer->private);
    require(gnutls_privkey_generate(signer->private, GNUTLS_PK_RSA, bits, 0) == 0, "a key");
    (void) gnutls_pubkey_init(&public);
    (void) gnutls_pubkey_import_privkey(public, signer->private, 0, 0);
    (void) gnutls_pubkey_export_rsa_raw(public, &n, &e);
    encode_number(&n, 0, n_text);
    encode_number(&e, 0, e_text);
    (void) snprintf(signer->jwk, sizeof signer->jwk,
                    "{\"kty\":\"RSA\",\"kid\":\"%s\",\"use\":\"sig\",\"n\":\"%s\",\"e\":\"%s\"}",
                    id, n_text, e_text);
    gnutls_free(n.data);
    gnutls_free(e.data);
    gnutls_pubkey_deinit(public);
}

static void make_point(struct signer *signer, const char *id, bool is_edwards)
{
    static char x_text[TEXT_MAX], y_text[TEXT_MAX];
    gnutls_datum_t x, y = { 0 };
    gnutls_pubkey_t public;
    gnutls_ecc_curve_t its;
    *signer = (struct signer){ .algorithm = is_edwards ? GNUTLS_SIGN_EDDSA_ED25519
                                                       : GNUTLS_SIGN_ECDSA_SHA256,
                               .id = id,
                               .name = is_edwards ? "EdDSA" : "ES256" };
    (void) gnutls_privkey_init(&signer->private);
    unsigned bits =
        GNUTLS_CURVE_TO_BITS(is_edwards ? GNUTLS_ECC_CURVE_ED25519 : GNUTLS_ECC_CURVE_SECP256R1);
    require(gnutls_privkey_generate(signer->private,
                                    is_edwards ? GNUTLS_PK_EDDSA_ED25519 : GNUTLS_PK_ECDSA, bits,
                                    0) == 0,
            "a key");
    (void) gnutls_pubkey_init(&public);
    (void) gnutls_pubkey_import_privkey(public, signer->private, 0, 0);
    (void) gnutls_pubkey_export_ecc_raw(public, &its, &x, &y);
    if (is_edwards)
        encode(x.data, x.size, x_text);
    else
        encode_number(&x, 32, x_text), encode_number(&y, 32, y_text);
    (void) snprintf(
        signer->jwk, sizeof signer->jwk,
        is_edwards ? "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"%s\",\"x\":\"%s\"%s}"
                   : "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"}",
        id, x_text, is_edwards ? "" : y_text);
    gnutls_free(x.data);
    gnutls_free(y.data);
    gnutls_pubkey_deinit(public);
}

static void add_part(const void *data, size_t size, char *token)
{
    size_t at = strlen(token);
    if (at > 0)
        token[at++] = '.';
    (void) sodium_bin2base64(token + at, TEXT_MAX - at, data, size,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static void sign(const struct signer *signer, const char *header, const char *claims, char *token)
{
    unsigned char raw[64] = { 0 };
    token[0] = '\0';
    add_part(header, strlen(header), token);
    add_part(claims, strlen(claims), token);
    gnutls_datum_t data = { (unsigned char *) token, (unsigned) strlen(token) }, signature, r, s;
    require(gnutls_privkey_sign_data2(signer->private, signer->algorithm, 0, &data, &signature) ==
                0,
            "a signature");
    if (signer->algorithm == GNUTLS_SIGN_ECDSA_SHA256) {
        (void) gnutls_decode_rs_value(&signature, &r, &s);
        for (size_t i = 0; i < 32 && i < r.size; i++)
            raw[31 - i] = r.data[r.size - 1 - i];
        for (size_t i = 0; i < 32 && i < s.size; i++)
            raw[63 - i] = s.data[s.size - 1 - i];
        add_part(raw, sizeof raw, token);
        gnutls_free(r.data);
        gnutls_free(s.data);
    } else {
        add_part(signature.data, signature.size, token);
    }
    gnutls_free(signature.data);
}

static void open_all(struct oauth *oauth)
{
    auto_bytes json = { 0 };
    error err;
    if (!rsa.private) {
        make_rsa(&rsa, "r1", 2048);
        make_rsa(&other_rsa, "r1", 2048);
        make_rsa(&small, "small", 1024);
        make_point(&curve, "c1", false);
        make_point(&edwards, "e1", true);
    }
    *oauth = (struct oauth){ .issuer = ISSUER, .audience = AUDIENCE };
    bytes_print(&json, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"h1\"},%s,%s,%s,%s]}",
                rsa.jwk, curve.jwk, edwards.jwk, small.jwk);
    require(oauth_keys_read(json.data, json.size, &oauth->keys, &err) == 0, "%s", err.text);
    expect(oauth->keys.count == 3, "%zu: neither the secret nor 1,024 bits", oauth->keys.count);
}

/* Valid claims, with one of them replaced or added, as "name":value. */
static const char *claims_with(const char *name, const char *value)
{
    static char text[1024];
    static const char *const usual[][2] = {
        { "iss", "\"" ISSUER "\"" },
        { "aud", "\"" AUDIENCE "\"" },
        { "sub", "\"ada\"" },
        { "exp", NULL },
        { "scope", "\"openid glovebox:run glovebox:admin glovebox:sessions\"" },
    };
    char moment[32];
    bool is_there = false;
    size_t at = (size_t) snprintf(text, sizeof text, "{");
    (void) snprintf(moment, sizeof moment, "%lld", (long long) (wall_clock_ms() / 1000 + 300));
    for_each(row, usual) {
        bool is_it = name && strcmp((*row)[0], name) == 0;
        const char *own = (*row)[1] ? (*row)[1] : moment;
        is_there |= is_it;
        if (!is_it || value)
            at += (size_t) snprintf(text + at, sizeof text - at, "%s\"%s\":%s", at > 1 ? "," : "",
                                    (*row)[0], is_it ? value : own);
    }
    if (name && value && !is_there)
        at += (size_t) snprintf(text + at, sizeof text - at, ",\"%s\":%s", name, value);
    (void) snprintf(text + at, sizeof text - at, "}");
    return text;
}

TEST(a_token_of_each_algorithm_is_taken)
{
    struct oauth oauth;
    open_all(&oauth);
    const struct signer *const signers[] = { &rsa, &curve, &edwards, NULL };
    for (const struct signer *const *next = signers; *next; next++) {
        const struct signer *signer = *next;
        char token[TEXT_MAX], header[200];
        struct oauth_token told;
        error err = { .code = ERR_NONE };
        (void) snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"%s\",\"typ\":\"at+jwt\"}",
                        signer->name, signer->id);
        sign(signer, header, claims_with(NULL, NULL), token);
        expect(oauth_check(&oauth, token, &told, &err) == 0, "%s: %s", signer->name, err.text);
        expect(strcmp(told.subject, "ada") == 0 && told.scopes == (SCOPE_RUN | SCOPE_SESSIONS),
               "%s %x: a token never gives admin", told.subject, told.scopes);
        (void) snprintf(header, sizeof header, "{\"alg\":\"%s\"}", signer->name);
        sign(signer, header, claims_with("aud", "[\"x\",\"" AUDIENCE "\"]"), token);
        expect(oauth_check(&oauth, token, &told, &err) == 0, "without kid: %s", err.text);
        for (size_t i = 0; token[i]; i += 7) { /* one byte changed */
            char kept = token[i];
            token[i] = kept == 'A' ? 'B' : 'A';
            expect(oauth_check(&oauth, token, &told, &err) < 0, "byte %zu of %s", i, token);
            token[i] = kept;
        }
    }
    oauth_keys_done(&oauth.keys);
}

TEST(malformed_headers_are_refused)
{
    struct oauth oauth;
    open_all(&oauth);
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":null}",
        "{}",
        "[]",
        "\"x\"",
        "{\"alg\":\"HS256\",\"kid\":\"h1\"}",
        "{\"alg\":\"HS256\",\"kid\":\"r1\"}",
        "{\"alg\":\"RS512\",\"kid\":\"r1\"}",
        "{\"alg\":\"rs256\",\"kid\":\"r1\"}",
        "{\"alg\":\"ES256\",\"kid\":\"r1\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"r1\"}",
        "{\"alg\":\"PS256\",\"kid\":\"r1\"}",
        "{\"alg\":\"RS256\",\"kid\":\"c1\"}",
        "{\"alg\":\"RS256\",\"kid\":\"\"}",
        "{\"alg\":\"RS256\",\"kid\":1}",
        "{\"alg\":\"RS256\",\"kid\":\"r1\\u0000\"}",
        "{\"alg\":\"RS256\\u0000\",\"kid\":\"r1\"}",
        "{\"alg\":\"RS256\",\"kid\":\"r1\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"RS256\",\"kid\":\"r1\",\"crit\":null}",
        "{\"alg\":\"RS256\",\"kid\":\"r1\",\"typ\":\"dpop+jwt\"}",
        "{\"alg\":\"RS256\",\"kid\":\"r1\",\"typ\":1}",
        "{\"alg\":\"RS256\",\"kid\":\"r2\",\"jku\":\"https://attacker.example/keys\"}",
    };
    for_each(header, headers) {
        char token[TEXT_MAX];
        struct oauth_token told;
        error err;
        sign(&rsa, *header, claims_with(NULL, NULL), token);
        expect(oauth_check(&oauth, token, &told, &err) < 0 && err.code == ERR_UNAUTHORIZED, "%s",
               *header);
        *(strrchr(token, '.') + 1) = '\0';
        expect(oauth_check(&oauth, token, &told, &err) < 0, "%s without a signature", *header);
    }
    oauth_keys_done(&oauth.keys);
}

TEST(malformed_claims_are_refused)
{
    struct oauth oauth;
    open_all(&oauth);
    static const char *const rows[][2] = {
        { "iss", "\"https://login.example.com/\"" },
        { "iss", "\"https://LOGIN.example.com\"" },
        { "iss", NULL },
        { "iss", "[\"" ISSUER "\"]" },
        { "iss", "\"" ISSUER "\\u0000\"" },
        { "aud", "\"https://other.example.com\"" },
        { "aud", "\"" AUDIENCE "/\"" },
        { "aud", "\"https://sandbox.example.com\"" },
        { "aud", NULL },
        { "aud", "[]" },
        { "aud", "[[\"" AUDIENCE "\"]]" },
        { "aud", "{\"a\":\"" AUDIENCE "\"}" },
        { "aud", "[\"" AUDIENCE "\\u0000\"]" },
        { "exp", "1" },
        { "exp", "0" },
        { "exp", "-1" },
        { "exp", NULL },
        { "exp", "null" },
        { "exp", "\"9999999999\"" },
        { "exp", "1e300" },
        { "exp", "[9999999999]" },
        { "nbf", "9999999999" },
        { "nbf", "\"1\"" },
        { "iat", "9999999999" },
        { "sub", "\"\"" },
        { "sub", NULL },
        { "sub", "1" },
        { "sub", "\"a\\u0000b\"" },
    };
    for_each(row, rows) {
        char token[TEXT_MAX];
        struct oauth_token told;
        error err;
        sign(&rsa, "{\"alg\":\"RS256\",\"kid\":\"r1\"}", claims_with((*row)[0], (*row)[1]), token);
        expect(oauth_check(&oauth, token, &told, &err) < 0 && err.code == ERR_UNAUTHORIZED,
               "%s: %s", (*row)[0], (*row)[1] ? (*row)[1] : "missing");
    }
    oauth_keys_done(&oauth.keys);
}

TEST(another_issuers_key_with_the_same_id_is_not_accepted)
{
    struct oauth oauth;
    open_all(&oauth);
    char token[TEXT_MAX];
    struct oauth_token told;
    error err;
    sign(&other_rsa, "{\"alg\":\"RS256\",\"kid\":\"r1\"}", claims_with(NULL, NULL), token);
    expect(oauth_check(&oauth, token, &told, &err) < 0 && strstr(err.text, "signature"), "%s",
           err.text);
    sign(&small, "{\"alg\":\"RS256\",\"kid\":\"small\"}", claims_with(NULL, NULL), token);
    expect(oauth_check(&oauth, token, &told, &err) < 0 && strstr(err.text, "no key"), "%s",
           err.text);
    oauth_keys_done(&oauth.keys);
}

TEST(scopes_are_words_of_their_own)
{
    static const struct {
        const char *name, *value;
        uint32_t scopes;
    } rows[] = {
        { "scope", "\"glovebox:run\"", SCOPE_RUN },
        { "scope", "\"run\"", 0 },
        { "scope", "\"glovebox:runs\"", 0 },
        { "scope", "\"xglovebox:run\"", 0 },
        { "scope", "\"glovebox:\"", 0 },
        { "scope", "\"\"", 0 },
        { "scope", "[\"glovebox:run\",\"glovebox:audit\"]", SCOPE_RUN | SCOPE_AUDIT },
        { "scope", "\"glovebox:approve glovebox:admin\"", 0 },
        { "scope", "1", 0 },
        { "scope", NULL, 0 },
        { "scope", "\"glovebox:run,glovebox:sessions\"", 0 },
    };
    struct oauth oauth;
    open_all(&oauth);
    for_each(row, rows) {
        char token[TEXT_MAX];
        struct oauth_token told;
        error err = { .code = ERR_NONE };
        sign(&edwards, EDDSA, claims_with(row->name, row->value), token);
        expect(oauth_check(&oauth, token, &told, &err) == 0 && told.scopes == row->scopes,
               "%s: %x %s", row->value ? row->value : "none", told.scopes, err.text);
    }
    oauth_keys_done(&oauth.keys);
}

TEST(scopes_that_name_policies_bound_a_token)
{
    static char long_name[API_KEY_POLICIES_SIZE + 64], longest[API_KEY_POLICIES_SIZE + 64];
    const struct {
        const char *value, *policies; /* NULL: it is refused */
    } rows[] = {
        { "\"glovebox:run glovebox:policy:data\"", "data" },
        { "\"glovebox:policy:data glovebox:run glovebox:policy:minimal\"", "data,minimal" },
        { "[\"glovebox:run\",\"glovebox:policy:data\"]", "data" },
        { "\"glovebox:run policy:data xglovebox:policy:data glovebox:policies:data\"", "" },
        { "\"glovebox:run glovebox:policy:\"", NULL },
        { "\"glovebox:run glovebox:policy:a,b\"", NULL },
        { longest, longest + sizeof "\"glovebox:run glovebox:policy:" - 1 },
        { long_name, NULL },
    };
    struct oauth oauth;
    open_all(&oauth);
    (void) snprintf(long_name, sizeof long_name, "\"glovebox:run glovebox:policy:%0*d\"",
                    API_KEY_POLICIES_SIZE - 1, 0);
    (void) snprintf(longest, sizeof longest, "\"glovebox:run glovebox:policy:%0*d\"",
                    API_KEY_POLICIES_SIZE - 2, 0);
    for_each(row, rows) {
        char token[TEXT_MAX];
        struct oauth_token told;
        error err = { .code = ERR_NONE };
        sign(&edwards, EDDSA, claims_with("scope", row->value), token);
        int result = oauth_check(&oauth, token, &told, &err);
        expect((result == 0) == (row->policies != NULL) &&
                   (result == 0 || strstr(err.text, "policy")),
               "%s: %s", row->value, err.text);
        if (result == 0)
            expect(strncmp(told.policies, row->policies, strlen(told.policies)) == 0 &&
                       strlen(told.policies) == strcspn(row->policies, "\"") &&
                       told.scopes == SCOPE_RUN,
                   "%s: %s", row->value, told.policies);
    }
    oauth_keys_done(&oauth.keys);
}

TEST(members_that_stand_twice_are_refused)
{
    static const char *const rows[][3] = { { EDDSA, "sub\":\"eve\",\"sub", "\"ada\"" },
                                           { "{\"alg\":\"none\",\"alg\":\"EdDSA\"}", NULL, NULL } };
    struct oauth oauth;
    open_all(&oauth);
    for_each(row, rows) {
        char token[TEXT_MAX];
        struct oauth_token told;
        error err;
        sign(&edwards, (*row)[0], claims_with((*row)[1], (*row)[2]), token);
        expect(oauth_check(&oauth, token, &told, &err) < 0 && strstr(err.text, "malformed"), "%s",
               err.text);
    }
    oauth_keys_done(&oauth.keys);
}

TEST(keys_are_read_again_when_their_file_has_changed)
{
    char path[] = "/tmp/oauth-keys-XXXXXX";
    int fd = mkstemp(path);
    char token[TEXT_MAX], text[4096];
    struct oauth oauth;
    struct api_key key;
    error err;
    open_all(&oauth);
    oauth_keys_done(&oauth.keys);
    oauth = (struct oauth){ .looked_ms = 0 };
    sign(&edwards, EDDSA, claims_with(NULL, NULL), token);
    expect(oauth_identify(&oauth, token, &key, &err) < 0, "no issuer is set");
    oauth_configure(&oauth, ISSUER, AUDIENCE, path);
    expect(oauth_identify(&oauth, token, &key, &err) < 0 && strstr(err.text, path), "%s", err.text);
    int size = snprintf(text, sizeof text, "{\"keys\":[%s]}", edwards.jwk);
    require(pwrite(fd, text, (size_t) size, 0) == size, "written");
    oauth.looked_ms = now_ms() - 2000;
    expect(oauth_identify(&oauth, token, &key, &err) == 0, "%s", err.text);
    expect(key.id[0] == 'o' && strlen(key.id) == 16 && strncmp(key.tenant, "oauth-", 6) == 0,
           "%s %s", key.id, key.tenant);
    static char bounded[TEXT_MAX];
    struct api_key narrow;
    sign(&edwards, EDDSA, claims_with("scp", "\"glovebox:policy:data\""), bounded);
    expect(oauth_identify(&oauth, bounded, &narrow, &err) == 0, "%s", err.text);
    expect(strcmp(narrow.policies, "data") == 0 && key.policies[0] == '\0' &&
               strcmp(narrow.tenant, key.tenant) == 0 && strcmp(narrow.id, key.id) != 0,
           "%s %s %s", narrow.policies, narrow.tenant, narrow.id);
    require(ftruncate(fd, 0) == 0, "emptied");
    oauth.looked_ms = now_ms() - 2000;
    expect(oauth_identify(&oauth, token, &key, &err) == 0, "those that were good stay: %s",
           err.text);
    size = snprintf(text, sizeof text, "{\"keys\":[%s]}", rsa.jwk);
    require(pwrite(fd, text, (size_t) size, 0) == size, "written");
    oauth.looked_ms = now_ms() - 2000;
    expect(oauth_identify(&oauth, token, &key, &err) < 0, "the key was taken out");
    oauth_done(&oauth);
    (void) close(fd);
    (void) unlink(path);
}

TESTS(CASE(a_token_of_each_algorithm_is_taken), CASE(malformed_headers_are_refused),
      CASE(malformed_claims_are_refused),
      CASE(another_issuers_key_with_the_same_id_is_not_accepted),
      CASE(scopes_are_words_of_their_own), CASE(scopes_that_name_policies_bound_a_token),
      CASE(members_that_stand_twice_are_refused),
      CASE(keys_are_read_again_when_their_file_has_changed))
