/* secrets.c - see secrets.h. */
#include "egress/secrets.h"

#include "base/endpoint_url.h"
#include "http1/request_head.h"
#include "outbound/secret_file.h"
#include "policy/yaml.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SECRET_MIN = 8 /* shorter ones are too likely to occur in ordinary text */ };

/* Copies bytes, any of them, since decoded "Basic" credentials may hold NUL. */
static char *keep(const char *text, size_t size)
{
    char *kept = malloc(size + 1);
    if (kept) {
        memcpy(kept, text, size);
        kept[size] = '\0';
    }
    return kept;
}

static void add_word(struct secret *secret, const char *at, size_t size)
{
    if (size < SECRET_MIN || secret->word_count == REDACT_WORDS_MAX)
        return;
    struct redact_word *word = &secret->words[secret->word_count];
    *word = (struct redact_word){ keep(at, size), size };
    secret->word_count += word->at != NULL;
}

/* "Basic" credentials hold a name and a password (RFC 7617). False: the password is too short. */
static bool add_basic(struct secret *secret, const char *text, size_t size)
{
    unsigned char plain[REDACT_WORD_MAX];
    size_t got = 0;
    if (sodium_base642bin(plain, sizeof plain, text, size, NULL, &got, NULL,
                          sodium_base64_VARIANT_ORIGINAL) < 0)
        return true;
    const unsigned char *colon = memchr(plain, ':', got);
    add_word(secret, (const char *) plain, got);
    if (!colon)
        return true;
    size_t size_of_password = got - (size_t) (colon + 1 - plain);
    add_word(secret, (const char *) colon + 1, size_of_password);
    return size_of_password >= SECRET_MIN;
}

/* Adds the value, and the part after "Bearer ". False: it is too short to be searched for. */
static bool add_words(struct secret *secret, const char *value)
{
    const char *blank = strchr(value, ' ');
    add_word(secret, value, strlen(value));
    if (!blank)
        return true;
    add_word(secret, blank + 1, strlen(blank + 1));
    if (strncasecmp(value, "basic ", 6) == 0)
        return add_basic(secret, blank + 1, strlen(blank + 1));
    return strlen(blank + 1) >= SECRET_MIN;
}

static int read_header(const struct yaml *yaml, const struct yaml_node *name,
                       const struct yaml_node *value, struct secret *secret, error *err)
{
    if (name->kind != YAML_TEXT || name->length >= EGRESS_HEADER_SIZE ||
        !http_field_may_be_added(name->text))
        return yaml_fail(yaml, name, err, "no header that can be added; write Authorization");
    if (secret->header_count == EGRESS_HEADERS_MAX)
        return yaml_fail(yaml, name, err, "more than %d headers", EGRESS_HEADERS_MAX);
    if (value->kind != YAML_TEXT || value->length < SECRET_MIN || value->length > REDACT_WORD_MAX)
        return yaml_fail(yaml, value, err, "a secret has %d to %d bytes", SECRET_MIN,
                         REDACT_WORD_MAX);
    for (size_t i = 0; i < value->length; i++)
        if (value->text[i] < ' ' || value->text[i] == 0x7f)
            return yaml_fail(yaml, value, err, "a secret is one line of ASCII");
    struct secret_header *header = &secret->headers[secret->header_count++];
    header->name = keep(name->text, name->length);
    header->value = keep(value->text, value->length);
    if (!header->name || !header->value)
        return fail(err, ERR_SYSTEM, "no memory for secrets");
    if (!add_words(secret, header->value))
        return yaml_fail(yaml, value, err,
                         "what is secret of it (a token, a password) has less than %d bytes",
                         SECRET_MIN);
    return 0;
}

static int read_headers(const struct yaml *yaml, const struct yaml_node *value,
                        struct secret *secret, error *err)
{
    if (value->kind != YAML_MAPPING || value->children == 0)
        return yaml_fail(yaml, value, err, "headers is a mapping; write Authorization: Bearer ...");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        if (read_header(yaml, key, part, secret, err) < 0)
            return -1;
        key = yaml_next(yaml, part);
    }
    return 0;
}

static int read_secret(const struct yaml *yaml, const struct yaml_node *name,
                       const struct yaml_node *value, struct secret *secret, error *err)
{
    struct endpoint_url url = { 0 };
    if (name->kind != YAML_TEXT || value->kind != YAML_MAPPING ||
        !(secret->name = keep(name->text, name->length)))
        return yaml_fail(yaml, name, err, "no endpoint; write NAME: {url: ..., headers: {...}}");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        bool is_url = key->kind == YAML_TEXT && strcmp(key->text, "url") == 0;
        bool is_headers = key->kind == YAML_TEXT && strcmp(key->text, "headers") == 0;
        if (!is_url && !is_headers)
            return yaml_fail(yaml, key, err, "unknown key; keys are url, headers");
        if (is_headers && read_headers(yaml, part, secret, err) < 0)
            return -1;
        if (is_url && (part->kind != YAML_TEXT || endpoint_url_read(part->text, &url) < 0))
            return yaml_fail(yaml, part, err, "no URL; write https://api.example.org");
        key = yaml_next(yaml, part);
    }
    if (!url.host[0] || secret->header_count == 0)
        return yaml_fail(yaml, name, err, "it needs a url, and headers that go there");
    memcpy(secret->host, url.host, sizeof secret->host);
    secret->port = url.port;
    secret->is_tls = url.is_tls;
    return 0;
}

static int read_all(const struct yaml *yaml, struct secrets *secrets, error *err)
{
    const struct yaml_node *root = &yaml->nodes[0];
    if (root->kind != YAML_MAPPING)
        return yaml_fail(yaml, root, err, "no mapping; write NAME: {url: ..., headers: {...}}");
    for (const struct yaml_node *key = yaml_first(yaml, root); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        if (secrets->count == SECRETS_MAX)
            return yaml_fail(yaml, key, err, "more than %d endpoints", SECRETS_MAX);
        if (read_secret(yaml, key, part, &secrets->list[secrets->count++], err) < 0)
            return -1;
        key = yaml_next(yaml, part);
    }
    return 0;
}

int secrets_read(int file, const char *label, struct secrets **ret_secrets, error *err)
{
    size_t size = 0;
    static char text[SECRET_FILE_MAX];
    static struct secrets secrets;
    auto_yaml yaml = { 0 };
    const struct secret_file closed = { file, "secrets file", label };
    if (secret_file_read(&closed, text, &size, err) < 0)
        return -1;
    int done = yaml_init(&yaml, label, text, size, err);
    explicit_bzero(text, sizeof text);
    if (done < 0 || read_all(&yaml, &secrets, err) < 0)
        return under(err, "read the secrets file");
    *ret_secrets = &secrets;
    return 0;
}

static bool has_header(const struct secret *secret, const char *name)
{
    for (unsigned i = 0; i < secret->header_count; i++)
        if (strcasecmp(secret->headers[i].name, name) == 0)
            return true;
    return false;
}

const struct secret *secrets_find(const struct secrets *secrets,
                                  const struct egress_endpoint *endpoint)
{
    for (unsigned i = 0; secrets && i < secrets->count; i++) {
        const struct secret *secret = &secrets->list[i];
        if (strcmp(secret->name, endpoint->name) != 0)
            continue;
        bool is_it = strcmp(secret->host, endpoint->host) == 0 && secret->port == endpoint->port &&
                     secret->is_tls == (endpoint->is_tls != 0);
        for (unsigned h = 0; h < endpoint->header_count; h++)
            is_it &= has_header(secret, endpoint->headers[h]);
        return is_it ? secret : NULL;
    }
    return NULL;
}
