/* url_signature.h - signed URLs: a key signs that a client without a key may do one thing in its
 * name: read or write one file of a session, or use its ports. A signature is valid while this
 * daemon lives and the key is valid: each use checks the key again. */
#pragma once

#include "base/bytes.h"
#include "doors/http/http.h"

enum { PASS_SIZE = 65 /* 32 bytes in hex and the end */ };

struct pass {
    const char *key; /* id of the key that has signed; "": the owner of the daemon */
    const char *session;
    const char *transfer; /* "GET" or "PUT" a file, or "ports" */
    const char *mode;     /* for a new file, as given; "": none */
    const struct bytes *path;
    uint64_t expires; /* seconds since 1970; 0: when its session ends */
};

void pass_sign(const struct pass *pass, char ret_signature[PASS_SIZE]);
bool pass_fits(const struct pass *pass, const char *signature); /* false for NULL */

/* Makes the key that has signed the caller, for rights and quotas. Fails  ERR_UNAUTHORIZED  the key
 * was revoked or has expired; as identify() */
int pass_use(struct exchange *exchange, const struct pass *pass, error *err);
