/* url_signature.h - what a key hands on: a signature with which a client without a key does one
 * thing in its name, to read or write one file of a session, or to reach its ports. It is good for
 * as long as this daemon lives, and no longer than its key: each use asks for the key again. */
#pragma once

#include "base/bytes.h"
#include "doors/http/http.h"

enum { PASS_SIZE = 65 /* 32 bytes in hex and the end */ };

struct pass {
    const char *key; /* id of the key that has signed; "": the owner of the daemon */
    const char *session;
    const char *transfer; /* "GET" or "PUT" a file, or "ports" */
    const char *mode;     /* of a file that is made, as it was given; "": none was */
    const struct bytes *path;
    uint64_t expires; /* seconds since 1970; 0: with its session */
};

void pass_sign(const struct pass *pass, char ret_signature[PASS_SIZE]);
bool pass_fits(const struct pass *pass, const char *signature); /* NULL fits nothing */

/* The caller is the key that has signed, from now on, and is counted as it.
 * Fails  ERR_UNAUTHORIZED  the key was revoked or has expired; as identify() */
int pass_use(struct exchange *exchange, const struct pass *pass, error *err);
