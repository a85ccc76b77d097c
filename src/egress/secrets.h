/* secrets.h - the file of headers with secrets that endpoints get, and code never sees. Read once,
 * before confine_outside().
 *
 *     github:
 *       url: https://api.github.example    # it is sent nowhere else
 *       headers:
 *         Authorization: Bearer 0123456789abcdef */
#pragma once

#include "base/error.h"
#include "contract/egress.h"
#include "egress/redact.h"

enum { SECRETS_MAX = 32 };

struct secret_header {
    const char *name, *value;
};

struct secret {
    const char *name; /* of the endpoint */
    char host[HOST_NAME_SIZE];
    uint16_t port;
    bool is_tls;
    unsigned header_count;
    struct secret_header headers[EGRESS_HEADERS_MAX];
    unsigned word_count;
    struct redact_word words[REDACT_WORDS_MAX]; /* to be removed from answers */
};

struct secrets {
    unsigned count;
    struct secret list[SECRETS_MAX];
};

/* Reads the open file; `label` is its path, for failures. It must belong to root or to this user,
 * without permissions for others. Gives *ret_secrets, which is never freed.
 * Fails  ERR_BAD_REQUEST  with cause, fix and the file's path. */
int secrets_read(int file, const char *label, struct secrets **ret_secrets, error *err);

/* The secret of this endpoint: with the same name and upstream, and every header that it needs.
 * NULL if there is none. `secrets` may be NULL. */
const struct secret *secrets_find(const struct secrets *secrets,
                                  const struct egress_endpoint *endpoint);
