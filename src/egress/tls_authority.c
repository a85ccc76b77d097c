/* tls_authority.c - see tls_authority.h. EC P-256: a key takes some ten microseconds, and every
 * client with TLS 1.2 supports it. All certificates of hosts share one key: separate keys would be
 * in the same memory. */
#include "egress/tls_authority.h"

#include "base/cleanup.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BEFORE_S = 300, /* valid from so long before, for clocks that are slow */
    VERSION_3 = 2,  /* X.509 counts from 0 */
};

struct host {
    char name[HOST_NAME_SIZE];
    X509 *certificate;
};

struct tls_authority {
    EVP_PKEY *key, *key_of_hosts;
    X509 *certificate;
    uint32_t life_s;
    uint64_t made;
    struct host hosts[TLS_AUTHORITY_NAMES_MAX];
    char text[TLS_AUTHORITY_TEXT];
};

/* --- parts of both kinds of certificate ------------------------------------------------------- */

struct extension {
    int kind;
    const char *value; /* as in a file of OpenSSL's, x509v3_config(5) */
};

static int add_extensions(X509 *certificate, X509 *issuer, const struct extension *list,
                          size_t count)
{
    X509V3_CTX context = { 0 };
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, &context, list[i].kind, list[i].value);
        int added = extension ? X509_add_ext(certificate, extension, -1) : 0;
        X509_EXTENSION_free(extension);
        if (added != 1)
            return -1;
    }
    return 0;
}

static int set_number(X509 *certificate)
{
    unsigned char random[16];
    if (RAND_bytes(random, sizeof random) != 1)
        return -1;
    random[0] = (unsigned char) ((random[0] & 0x7fU) | 0x40U); /* positive, of fixed length */
    BIGNUM *number = BN_bin2bn(random, sizeof random, NULL);
    bool is_set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return is_set ? 0 : -1;
}

static int add_word(X509_NAME *name, const char *kind, const char *word)
{
    return X509_NAME_add_entry_by_txt(name, kind, MBSTRING_ASC, (const unsigned char *) word, -1,
                                      -1, 0) == 1
               ? 0
               : -1;
}

/* Makes a certificate, unsigned and without extensions; NULL if there is no memory. */
static X509 *draft(EVP_PKEY *key, uint32_t life_s)
{
    X509 *certificate = X509_new();
    if (certificate && X509_set_version(certificate, VERSION_3) == 1 &&
        set_number(certificate) == 0 && X509_set_pubkey(certificate, key) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -BEFORE_S) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), (long) life_s))
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* --- the authority ---------------------------------------------------------------------------- */

/* "critical,permitted;DNS:api.example.org,…": only names of the policy, and no address. A name also
 * permits its subdomains (RFC 5280 section 4.2.1.10); the rules are narrower. */
static char *write_constraints(const struct rules *rules)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    (void) fputs("critical,excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::", out);
    for (uint32_t i = 0; i < rules->count; i++) {
        bool is_first = rules->list[i].flags & EGRESS_INTERCEPTED;
        for (uint32_t before = 0; before < i; before++)
            if ((rules->list[before].flags & EGRESS_INTERCEPTED) &&
                strcmp(rules->list[before].host, rules->list[i].host) == 0)
                is_first = false;
        if (is_first)
            (void) fprintf(out, ",permitted;DNS:%s", rules->list[i].host);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int certify_self(struct tls_authority *authority, const struct rules *rules)
{
    unsigned char random[8];
    char name[64] = "glovebox, one run: ";
    auto_text constraints = write_constraints(rules);
    X509 *certificate = authority->certificate = draft(authority->key, authority->life_s);
    if (!constraints || !certificate || RAND_bytes(random, sizeof random) != 1)
        return -1;
    size_t used = strlen(name);
    for (size_t i = 0; i < sizeof random; i++) /* so that no two authorities have the same name */
        (void) snprintf(name + used + 2 * i, 3, "%02x", random[i]);
    const struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
        { NID_key_usage, "critical,keyCertSign" },
        { NID_ext_key_usage, "serverAuth" },
        { NID_name_constraints, constraints },
        { NID_subject_key_identifier, "hash" },
    };
    X509_NAME *subject = X509_get_subject_name(certificate);
    return add_word(subject, "CN", name) == 0 && X509_set_issuer_name(certificate, subject) == 1 &&
                   add_extensions(certificate, certificate, extensions,
                                  sizeof extensions / sizeof *extensions) == 0 &&
                   X509_sign(certificate, authority->key, EVP_sha256()) > 0
               ? 0
               : -1;
}

static int write_text(struct tls_authority *authority)
{
    char *bytes = NULL;
    BIO *out = BIO_new(BIO_s_mem());
    long size =
        out && PEM_write_bio_X509(out, authority->certificate) ? BIO_get_mem_data(out, &bytes) : 0;
    bool fits = size > 0 && size < TLS_AUTHORITY_TEXT;
    if (fits)
        memcpy(authority->text, bytes, (size_t) size);
    BIO_free(out);
    return fits ? 0 : -1;
}

int tls_authority_new(const struct rules *rules, uint32_t life_s,
                      struct tls_authority **ret_authority, error *err)
{
    struct tls_authority *authority = calloc(1, sizeof *authority);
    if (authority) {
        authority->life_s = life_s;
        authority->key = EVP_EC_gen("P-256");
        authority->key_of_hosts = EVP_EC_gen("P-256");
    }
    if (!authority || !authority->key || !authority->key_of_hosts ||
        certify_self(authority, rules) < 0 || write_text(authority) < 0) {
        tls_authority_free(authority);
        return fail(err, ERR_SYSTEM, "make a certificate authority for a channel");
    }
    *ret_authority = authority;
    return 0;
}

void tls_authority_free(struct tls_authority *authority)
{
    if (!authority)
        return;
    for (unsigned i = 0; i < TLS_AUTHORITY_NAMES_MAX; i++)
        X509_free(authority->hosts[i].certificate);
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key_of_hosts);
    EVP_PKEY_free(authority->key);
    free(authority);
}

const char *tls_authority_text(const struct tls_authority *authority)
{
    return authority->text;
}

uint64_t tls_authority_made(const struct tls_authority *authority)
{
    return authority->made;
}

/* --- certificates of hosts -------------------------------------------------------------------- */

static X509 *certify(const struct tls_authority *authority, const char *name)
{
    char names[HOST_NAME_SIZE + 8];
    X509 *certificate = draft(authority->key_of_hosts, authority->life_s);
    (void) snprintf(names, sizeof names, "DNS:%s", name);
    const struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:FALSE" },
        { NID_key_usage, "critical,digitalSignature" },
        { NID_ext_key_usage, "serverAuth" },
        { NID_subject_alt_name, names },
        { NID_subject_key_identifier, "hash" },
        { NID_authority_key_identifier, "keyid:always" },
    };
    if (certificate &&
        add_word(X509_get_subject_name(certificate), "CN", "shown by glovebox") == 0 &&
        X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate)) == 1 &&
        add_extensions(certificate, authority->certificate, extensions,
                       sizeof extensions / sizeof *extensions) == 0 &&
        X509_sign(certificate, authority->key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

static X509 *find_or_certify(struct tls_authority *authority, const char *name)
{
    for (unsigned i = 0; i < TLS_AUTHORITY_NAMES_MAX; i++)
        if (authority->hosts[i].certificate && strcmp(authority->hosts[i].name, name) == 0)
            return authority->hosts[i].certificate;
    struct host *oldest = &authority->hosts[authority->made % TLS_AUTHORITY_NAMES_MAX];
    X509 *certificate = certify(authority, name);
    if (!certificate)
        return NULL;
    X509_free(oldest->certificate); /* connections that use it hold references */
    oldest->certificate = certificate;
    (void) snprintf(oldest->name, sizeof oldest->name, "%s", name);
    authority->made++;
    return certificate;
}

int tls_authority_use(struct tls_authority *authority, const char *name, struct ssl_st *ssl)
{
    X509 *certificate = find_or_certify(authority, name);
    return certificate && SSL_use_certificate(ssl, certificate) == 1 &&
                   SSL_use_PrivateKey(ssl, authority->key_of_hosts) == 1
               ? 0
               : -1;
}
