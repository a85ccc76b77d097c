/* tls_authority.h - the certificate authority of one channel: what makes a sandbox believe that we
 * are the hosts whose TLS its policy intercepts. Its key is made with it, lives in this process's
 * memory alone and is wiped with the channel. The certificate is limited to those hosts, to servers
 * and to the channel's life, and cannot make another authority. One thread. */
#pragma once

#include "egress/rules.h"

struct tls_authority;
struct ssl_st;

enum {
    TLS_AUTHORITY_TEXT = EGRESS_AUTHORITY_MAX,
    TLS_AUTHORITY_NAMES_MAX = 32, /* certificates of hosts that are kept; the oldest goes */
};

/* For the hosts of rules with EGRESS_INTERCEPTED; valid for `life_s` from now on.
 * Fails  ERR_SYSTEM  no memory, or the certificate is larger than TLS_AUTHORITY_TEXT. */
int tls_authority_new(const struct rules *rules, uint32_t life_s,
                      struct tls_authority **ret_authority, error *err);
void tls_authority_free(struct tls_authority *authority); /* NULL: nothing */

/* Its certificate (PEM), which is no secret. */
const char *tls_authority_text(const struct tls_authority *authority);

/* This end of `ssl` shows a certificate for `name`, a canonical one. Returns -1 if none could be
 * made. */
int tls_authority_use(struct tls_authority *authority, const char *name, struct ssl_st *ssl);

/* How many certificates of hosts have been made. */
uint64_t tls_authority_made(const struct tls_authority *authority);
