/* tls_authority.h - the certificate authority of one channel, which its sandbox trusts for the
 * hosts whose TLS the policy intercepts. Its key is made with it, exists only in this process's
 * memory, and is wiped with the channel. The certificate is limited to those hosts, to servers and
 * to the channel's life, and cannot sign another authority. One thread. */
#pragma once

#include "egress/rules.h"

struct tls_authority;
struct ssl_st;

enum {
    TLS_AUTHORITY_TEXT = EGRESS_AUTHORITY_MAX,
    TLS_AUTHORITY_NAMES_MAX = 32, /* certificates of hosts that are kept, the newest */
};

/* Makes one for the hosts of rules with EGRESS_INTERCEPTED, valid for `life_s` from now on.
 * Fails  ERR_SYSTEM  no memory, or the certificate is larger than TLS_AUTHORITY_TEXT. */
int tls_authority_new(const struct rules *rules, uint32_t life_s,
                      struct tls_authority **ret_authority, error *err);
void tls_authority_free(struct tls_authority *authority); /* NULL: nothing */

/* Its certificate (PEM), which is public. */
const char *tls_authority_text(const struct tls_authority *authority);

/* Has `ssl` present a certificate for `name`, which is canonical. Returns -1 on failure. */
int tls_authority_use(struct tls_authority *authority, const char *name, struct ssl_st *ssl);

/* How many certificates of hosts have been made. */
uint64_t tls_authority_made(const struct tls_authority *authority);
