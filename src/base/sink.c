/* sink.c - see sink.h. */
#include "base/sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes of the character at `text`, 0 if it is none (RFC 3629: no surrogates, no overlong forms).
 */
static size_t character_size(const unsigned char *text, size_t size)
{
    unsigned char first = text[0];
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length == 0 || length > size)
        return 0;
    for (size_t index = 1; index < length; index++)
        if ((text[index] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
        (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

size_t text_first_bad_byte(const void *text, size_t size)
{
    const unsigned char *bytes = text;
    size_t at = 0;
    while (at < size) {
        size_t length = bytes[at] == '\0' ? 0 : character_size(bytes + at, size - at);
        if (length == 0)
            return at;
        at += length;
    }
    return size;
}

static int base64_value(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

int64_t base64_decode(const char *text, size_t length, void *ret_data)
{
    if (length % 4 != 0)
        return -1;
    unsigned char *out = ret_data;
    for (size_t at = 0; at < length; at += 4) {
        int padding = 0;
        uint32_t group = 0;
        for (size_t index = 0; index < 4; index++) {
            char letter = text[at + index];
            int value = letter == '=' ? 0 : base64_value(letter);
            if (letter == '=')
                padding++;
            if (value < 0 || (letter == '=' && (at + 4 < length || index < 2)) ||
                (letter != '=' && padding > 0))
                return -1;
            group = group << 6 | (uint32_t) value;
        }
        *out++ = (unsigned char) (group >> 16);
        if (padding < 2)
            *out++ = (unsigned char) (group >> 8);
        if (padding < 1)
            *out++ = (unsigned char) group;
    }
    return out - (unsigned char *) ret_data;
}

void sink_init(struct sink *sink, int fd)
{
    sink->fd = fd;
    sink->total = 0;
    sink->used = 0;
    sink->failed = 0;
}

static void send_all(struct sink *sink, const char *data, size_t size)
{
    while (size > 0 && sink->failed == 0) {
        ssize_t sent = send(sink->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EINTR)
                sink->failed = errno;
            continue;
        }
        data += sent;
        size -= (size_t) sent;
    }
}

void sink_bytes(struct sink *sink, const void *data, size_t size)
{
    sink->total += size;
    if (sink->fd < 0)
        return;
    if (size > sizeof sink->buffer - sink->used) {
        send_all(sink, sink->buffer, sink->used);
        sink->used = 0;
    }
    if (size > sizeof sink->buffer) {
        send_all(sink, data, size);
        return;
    }
    memcpy(sink->buffer + sink->used, data, size);
    sink->used += size;
}

void sink_text(struct sink *sink, const char *text)
{
    sink_bytes(sink, text, strlen(text));
}

void sink_json_string(struct sink *sink, const char *text, size_t size)
{
    sink_bytes(sink, "\"", 1);
    size_t plain = 0; /* start of what needs no escape */
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char) text[at];
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        sink_bytes(sink, text + plain, at - plain);
        plain = at + 1;
        char escape[8];
        int length = byte == '\n'   ? snprintf(escape, sizeof escape, "\\n")
                     : byte >= 0x20 ? snprintf(escape, sizeof escape, "\\%c", byte)
                                    : snprintf(escape, sizeof escape, "\\u%04x", byte);
        sink_bytes(sink, escape, (size_t) length);
    }
    sink_bytes(sink, text + plain, size - plain);
    sink_bytes(sink, "\"", 1);
}

void sink_base64(struct sink *sink, const void *data, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char block[4096];
    size_t used = 0;
    sink_bytes(sink, "\"", 1);
    if (sink->fd < 0) {
        sink->total += (size + 2) / 3 * 4 + 1;
        return;
    }
    for (size_t at = 0; at < size; at += 3) {
        const unsigned char *bytes = (const unsigned char *) data + at;
        size_t here = size - at < 3 ? size - at : 3;
        uint32_t group = (uint32_t) bytes[0] << 16;
        if (here > 1)
            group |= (uint32_t) bytes[1] << 8;
        if (here > 2)
            group |= bytes[2];
        const char four[4] = { letters[group >> 18], letters[group >> 12 & 63],
                               letters[group >> 6 & 63], letters[group & 63] };
        memset(block + used, '=', sizeof four);
        memcpy(block + used, four, here + 1);
        used += sizeof four;
        if (used == sizeof block) {
            sink_bytes(sink, block, used);
            used = 0;
        }
    }
    sink_bytes(sink, block, used);
    sink_bytes(sink, "\"", 1);
}

int sink_flush(struct sink *sink, error *err)
{
    if (sink->fd >= 0)
        send_all(sink, sink->buffer, sink->used);
    sink->used = 0;
    if (sink->failed != 0) {
        errno = sink->failed;
        return fail_os(err, "send the request");
    }
    return 0;
}
