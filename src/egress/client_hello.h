/* client_hello.h - reads the host name (SNI) from the first bytes of a TLS client (RFC 8446
 * section 4.1.2, RFC 6066 section 3). Pure; any thread. The bytes are hostile: every length must
 * fit into the field around it, or the whole ClientHello is refused. */
#pragma once

#include "contract/egress.h"

#include <stddef.h>

enum { CLIENT_HELLO_MAX = 16384 + 512 };

enum hello_verdict {
    HELLO_MORE,    /* it is not complete yet */
    HELLO_NAMED,   /* `name` is canonical */
    HELLO_NO_NAME, /* without SNI, or the SNI is not a host name */
    HELLO_NO_TLS   /* not the beginning of a TLS connection */
};

/* A ClientHello may be split into several records, at any byte (RFC 8446 section 5.1). */
enum hello_verdict client_hello_read(const unsigned char *bytes, size_t size,
                                     char ret_name[HOST_NAME_SIZE]);
