/* tls_authority.h - the certificate authority of one channel: what makes a sandbox believe that we
 * are the hosts whose TLS its policy intercepts. Its key is made with it, lives in this process's
 * memory alone and is wiped with the channel. The certificate is limited to those hosts, to servers
 * and to the channel's life, and cannot make another authority. One thread. */
#pragma once

#include "egress/rules.h"

#include <stddef.h>

struct authority;
struct ssl_st;

enum {
    AUTHORITY_TEXT = EGRESS_AUTHORITY_MOST,
    AUTHORITY_NAMES_MOST = 32, /* certificates of hosts that are kept; the oldest goes */
};

/* For the hosts of rules with EGRESS_INTERCEPTED; valid for `life_s` from now on.
 * Fails  ERR_SYSTEM  no memory, or the certificate is larger than AUTHORITY_TEXT. */
int authority_new(const struct rules *rules, uint32_t life_s, struct authority **ret_authority,
                  error *err);
void authority_free(struct authority *authority); /* NULL: nothing */

/* Its certificate (PEM), which is no secret. */
const char *authority_text(const struct authority *authority);

/* This end of `ssl` shows a certificate for `name`, a canonical one. Returns -1 if none could be
 * made. */
int authority_use(struct authority *authority, const char *name, struct ssl_st *ssl);

/* How many certificates of hosts have been made. */
uint64_t authority_made(const struct authority *authority);
