/* client_hello.c - see client_hello.h. */
#include "egress/client_hello.h"

#include "base/host_name.h"

#include <stdbool.h>
#include <string.h>

enum {
    RECORD_HANDSHAKE = 22,
    HANDSHAKE_CLIENT_HELLO = 1,
    EXTENSION_SERVER_NAME = 0,
    NAME_IS_HOST = 0,
    RECORD_MAX = 16384,
};

/* The bytes of a field that have not been read yet. */
struct span {
    const unsigned char *at;
    size_t left;
};

static bool take(struct span *from, size_t size, struct span *ret_part)
{
    if (from->left < size)
        return false;
    *ret_part = (struct span){ from->at, size };
    from->at += size;
    from->left -= size;
    return true;
}

static bool take_number(struct span *from, size_t bytes, size_t *ret_value)
{
    struct span number;
    if (!take(from, bytes, &number))
        return false;
    *ret_value = 0;
    for (size_t i = 0; i < bytes; i++)
        *ret_value = *ret_value << 8 | number.at[i];
    return true;
}

/* Reads a vector: its length in `bytes` bytes, then its contents. */
static bool take_vector(struct span *from, size_t bytes, struct span *ret_part)
{
    size_t size;
    return take_number(from, bytes, &size) && take(from, size, ret_part);
}

/* Assembles the handshake message from its records.
 * Returns 1 if it is complete, 0 if more bytes are needed, -1 if it is no ClientHello. */
static int assemble(const unsigned char *bytes, size_t size, unsigned char *message,
                    size_t *ret_size)
{
    size_t have = 0;
    while (size > 0) {
        if (bytes[0] != RECORD_HANDSHAKE || (size > 1 && bytes[1] != 3))
            return -1;
        if (size < 5)
            return 0;
        size_t length = (size_t) bytes[3] << 8 | bytes[4];
        if (length == 0 || length > RECORD_MAX)
            return -1;
        size_t here = size - 5 < length ? size - 5 : length;
        if (have + here > CLIENT_HELLO_MAX)
            return -1;
        memcpy(message + have, bytes + 5, here);
        have += here;
        if (have > 0 && message[0] != HANDSHAKE_CLIENT_HELLO)
            return -1;
        if (have >= 4) {
            size_t wanted = (size_t) message[1] << 16 | (size_t) message[2] << 8 | message[3];
            if (wanted > CLIENT_HELLO_MAX - 4)
                return -1;
            if (have >= wanted + 4) {
                *ret_size = wanted;
                return 1;
            }
        }
        if (here < length)
            return 0;
        bytes += 5 + length;
        size -= 5 + length;
    }
    return 0;
}

/* The list must have exactly one host name: with two, it would be unclear which one counts. */
static bool read_server_name(struct span extension, char ret_name[HOST_NAME_SIZE])
{
    struct span list, host;
    size_t kind;
    if (!take_vector(&extension, 2, &list) || extension.left != 0)
        return false;
    if (!take_number(&list, 1, &kind) || kind != NAME_IS_HOST || !take_vector(&list, 2, &host) ||
        list.left != 0)
        return false;
    if (host.left > 0 && host.at[host.left - 1] == '.')
        return false; /* RFC 6066: without the dot at the end */
    return host_name_canonical((const char *) host.at, host.left, ret_name) == 0;
}

static enum hello_verdict read_extensions(struct span extensions, char ret_name[HOST_NAME_SIZE])
{
    bool is_named = false;
    while (extensions.left > 0) {
        size_t kind;
        struct span extension;
        if (!take_number(&extensions, 2, &kind) || !take_vector(&extensions, 2, &extension))
            return HELLO_NO_TLS;
        if (kind != EXTENSION_SERVER_NAME)
            continue;
        if (is_named || !read_server_name(extension, ret_name))
            return HELLO_NO_NAME;
        is_named = true;
    }
    return is_named ? HELLO_NAMED : HELLO_NO_NAME;
}

enum hello_verdict client_hello_read(const unsigned char *bytes, size_t size,
                                     char ret_name[HOST_NAME_SIZE])
{
    static _Thread_local unsigned char message[CLIENT_HELLO_MAX]; /* too large for the stack */
    size_t length;
    int whole = assemble(bytes, size, message, &length);
    if (whole <= 0)
        return whole < 0 ? HELLO_NO_TLS : HELLO_MORE;
    struct span hello = { message + 4, length }, skipped, extensions;
    if (!take(&hello, 2 + 32, &skipped) ||   /* version, random */
        !take_vector(&hello, 1, &skipped) || /* session */
        !take_vector(&hello, 2, &skipped) || /* cipher suites */
        !take_vector(&hello, 1, &skipped))   /* compression */
        return HELLO_NO_TLS;
    if (hello.left == 0)
        return HELLO_NO_NAME;
    if (!take_vector(&hello, 2, &extensions) || hello.left != 0)
        return HELLO_NO_TLS;
    return read_extensions(extensions, ret_name);
}
