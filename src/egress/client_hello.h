/* client_hello.h - which host a TLS client asks for, read from its first bytes (RFC 8446
 * section 4.1.2, RFC 6066 section 3). Pure; any thread. The bytes are hostile: every length is
 * checked against what encloses it, and one that does not fit makes the whole greeting none. */
#pragma once

#include "contract/egress.h"

#include <stddef.h>

enum { CLIENT_HELLO_MAX = 16384 + 512 };

enum hello_verdict {
    HELLO_MORE,    /* it is not whole yet */
    HELLO_NAMED,   /* `name` is canonical */
    HELLO_NO_NAME, /* a greeting without SNI, or whose SNI is no host name */
    HELLO_NO_TLS   /* these bytes begin no TLS connection */
};

/* A greeting may be cut into several records, and split anywhere (RFC 8446 section 5.1). */
enum hello_verdict client_hello_read(const unsigned char *bytes, size_t size,
                                     char ret_name[HOST_NAME_SIZE]);
