/* request_head.h - the head of an HTTP/1.x request: read strictly, and written again from its
 * parts, so that the server gets exactly what was checked (RFC 9112). Pure; any thread.
 *
 * What two servers might read differently is refused: line ends other than CRLF, folded lines,
 * blanks before a colon, control characters, two lengths, a length together with a transfer coding,
 * a transfer coding other than chunked. */
#pragma once

#include "base/host_name.h"
#include "http1/field.h"

enum { HTTP_HEAD_MAX = 32768, HTTP_FIELDS_MAX = 64, HTTP_METHOD_SIZE = 16 };

enum http_fault {
    HTTP_NO_FAULT,
    HTTP_MALFORMED,    /* or ambiguous */
    HTTP_BAD_HOST,     /* not a host name */
    HTTP_HOST_DIFFERS, /* from the host of the target */
    HTTP_TOO_LARGE,
    HTTP_UPGRADE,
    HTTP_FAULTS
};

enum http_target {
    HTTP_ORIGIN,   /* "/path?query": the host is in the Host field */
    HTTP_ABSOLUTE, /* "http://host:port/path" */
    HTTP_AUTHORITY /* CONNECT "host:port" */
};

struct http_head {
    struct http_text method;
    uint32_t method_bit; /* enum http_method; 0 for a method that rules cannot name */
    enum http_target target;
    char name[HOST_NAME_SIZE]; /* canonical */
    bool is_literal;           /* the host is an address; `name` holds it unchanged */
    uint16_t port;
    struct http_text path; /* with its query, "/" at least */
    bool has_length, is_chunked, expects_continue, wants_upgrade;
    bool is_old; /* HTTP/1.0 */
    uint64_t length;
    size_t size; /* of the whole head, the empty line included */
    unsigned field_count;
    struct http_field fields[HTTP_FIELDS_MAX];
};

enum http_verdict { HTTP_MORE, HTTP_WHOLE, HTTP_BAD };

/* `default_port` is used if the request names no port. Gives *ret_fault with HTTP_BAD. */
enum http_verdict http_head_read(const char *bytes, size_t size, uint16_t default_port,
                                 struct http_head *ret_head, enum http_fault *ret_fault);

/* Writes the request as it is forwarded: origin form, the Host that was checked, no hop-by-hop
 * fields, and Connection: close. Returns its size, 0 if it does not fit. */
size_t http_head_write(const struct http_head *head, char *ret_bytes, size_t size);

/* True if the field may be added to a request: a token that does not frame it. */
bool http_field_may_be_added(const char *name);

/* True if the field is forwarded: it does not belong to this hop, is not written by glovebox
 * itself, and cannot replace what was checked. */
bool http_field_goes_on(const struct http_head *head, const struct http_field *field);
