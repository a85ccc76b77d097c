/* tls_authority_test.c - certificates of hosts whose TLS is intercepted, checked as a client
 * does. */
#include "egress/tls_authority.h"

#include "base/table.h"
#include "base/test.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

static struct tls_authority *make(const char *const *hosts, uint32_t life_s)
{
    static struct rules rules;
    struct tls_authority *authority = NULL;
    error err = { 0 };
    rules = (struct rules){ 0 };
    for (; *hosts; hosts++) {
        struct egress_rule rule = { .flags = EGRESS_INTERCEPTED,
                                    .port_count = 1,
                                    .ports = { 443 } };
        (void) snprintf(rule.host, sizeof rule.host, "%s", *hosts);
        require(rules_add(&rules, &rule, &err) == 0, "%s", err.text);
    }
    require(tls_authority_new(&rules, life_s, &authority, &err) == 0, "%s", err.text);
    return authority;
}

static X509 *read_text(const struct tls_authority *authority)
{
    BIO *text = BIO_new_mem_buf(tls_authority_text(authority), -1);
    X509 *certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
    BIO_free(text);
    require(certificate != NULL, "the text is no certificate");
    return certificate;
}

/* The result of a strict client: X509_V_OK, or why it refuses. */
static int verify(const struct tls_authority *trusted, struct tls_authority *shown,
                  const char *name, long later_s)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL *ssl = SSL_new(context);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    X509 *root = read_text(trusted);
    require(tls_authority_use(shown, name, ssl) == 0, "no certificate for %s", name);
    require(X509_STORE_add_cert(store, root) == 1, "no memory");
    require(X509_STORE_CTX_init(check, store, SSL_get_certificate(ssl), NULL) == 1, "no memory");
    X509_VERIFY_PARAM *terms = X509_STORE_CTX_get0_param(check);
    X509_VERIFY_PARAM_set_flags(terms, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_time(terms, time(NULL) + later_s);
    X509_VERIFY_PARAM_set_purpose(terms, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set1_host(terms, name, 0);
    (void) X509_verify_cert(check);
    int result = X509_STORE_CTX_get_error(check);
    X509_STORE_CTX_free(check);
    X509_STORE_free(store);
    X509_free(root);
    SSL_free(ssl);
    SSL_CTX_free(context);
    return result;
}

static const char *const hosts[] = { "api.example.org", "files.example.org", "api.example.org",
                                     NULL };

TEST(a_strict_client_believes_the_hosts_of_the_policy_and_no_other)
{
    static const struct {
        const char *name;
        long later_s;
        int result;
    } facts[] = {
        { "api.example.org", 0, X509_V_OK },
        { "files.example.org", 0, X509_V_OK },
        { "deep.files.example.org", 0, X509_V_OK },
        { "example.org", 0, X509_V_ERR_PERMITTED_VIOLATION },
        { "evil.example.net", 0, X509_V_ERR_PERMITTED_VIOLATION },
        { "xapi.example.org", 0, X509_V_ERR_PERMITTED_VIOLATION },
        { "api.example.org", 3500, X509_V_OK },
        { "api.example.org", 3700, X509_V_ERR_CERT_HAS_EXPIRED },
        { "api.example.org", -3600, X509_V_ERR_CERT_NOT_YET_VALID },
    };
    struct tls_authority *authority = make(hosts, 3600);
    for_each(fact, facts) {
        int result = verify(authority, authority, fact->name, fact->later_s);
        expect(result == fact->result, "%s after %ld s gave %s", fact->name, fact->later_s,
               X509_verify_cert_error_string(result));
    }
    tls_authority_free(authority);
}

TEST(one_authority_is_not_another)
{
    struct tls_authority *one = make(hosts, 3600);
    struct tls_authority *other = make(hosts, 3600);
    expect(strcmp(tls_authority_text(one), tls_authority_text(other)) != 0,
           "both have one certificate");
    int result = verify(one, other, "api.example.org", 0);
    expect(result != X509_V_OK, "one is believed for the other");
    tls_authority_free(one);
    tls_authority_free(other);
}

TEST(the_text_is_a_certificate_without_a_key)
{
    struct tls_authority *authority = make(hosts, 3600);
    X509 *root = read_text(authority);
    expect(!strstr(tls_authority_text(authority), "KEY"), "the text holds a key");
    expect(X509_get_pathlen(root) == 0, "it may make authorities");
    expect(X509_get_key_usage(root) == KU_KEY_CERT_SIGN, "its key is for more than certificates");
    expect(X509_get_extended_key_usage(root) == XKU_SSL_SERVER, "it is for more than servers");
    X509_free(root);
    tls_authority_free(authority);
}

TEST(many_names_are_not_kept)
{
    static const char *const below[] = { "example.org", NULL };
    struct tls_authority *authority = make(below, 3600);
    char name[32];
    for (unsigned i = 0; i < 3 * TLS_AUTHORITY_NAMES_MAX; i++) {
        (void) snprintf(name, sizeof name, "n%u.example.org", i);
        expect(verify(authority, authority, name, 0) == X509_V_OK, "%s is not believed", name);
    }
    uint64_t made = tls_authority_made(authority);
    expect(made == 3UL * TLS_AUTHORITY_NAMES_MAX, "%llu certificates", (unsigned long long) made);
    (void) verify(authority, authority, name, 0); /* the last is cached, the first not */
    expect(tls_authority_made(authority) == made, "the last one was made anew");
    (void) verify(authority, authority, "n0.example.org", 0);
    expect(tls_authority_made(authority) == made + 1, "the first one was kept");
    tls_authority_free(authority);
}

TESTS(CASE(a_strict_client_believes_the_hosts_of_the_policy_and_no_other),
      CASE(one_authority_is_not_another), CASE(the_text_is_a_certificate_without_a_key),
      CASE(many_names_are_not_kept))
