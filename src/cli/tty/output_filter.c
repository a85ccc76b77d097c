/* output_filter.c - the filter keeps only an incomplete escape sequence or character. */
#include "cli/tty/output_filter.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { ESCAPE = 0x1b };

void terminal_init(struct terminal *terminal, int fd)
{
    *terminal = (struct terminal){ .fd = fd, .is_terminal = isatty(fd) == 1 };
}

static void write_all(struct terminal *terminal, const char *data, size_t size)
{
    while (size > 0 && terminal->failed == 0) {
        ssize_t written = write(terminal->fd, data, size);
        if (written < 0 && errno == EAGAIN) { /* another process made `fd` non-blocking */
            struct pollfd watched = { .fd = terminal->fd, .events = POLLOUT };
            (void) poll(&watched, 1, 1000);
            continue;
        }
        if (written < 0) {
            if (errno != EINTR)
                terminal->failed = errno;
            continue;
        }
        data += written;
        size -= (size_t) written;
    }
}

/* What happens to a character. */
enum fate { PASS, SHOW, WAIT };

/* Recognises a colour: ESC [, digits and ;, m. */
static enum fate fate_of_escape(const char *text, size_t size, size_t *ret_size)
{
    *ret_size = 1;
    if (size == 1)
        return WAIT;
    if (text[1] != '[')
        return SHOW;
    size_t end = 2;
    while (end < size && (strchr("0123456789;:", text[end]) && text[end] != '\0'))
        end++;
    if (end == size)
        return size < 48 ? WAIT : SHOW;
    if (text[end] != 'm')
        return SHOW;
    *ret_size = end + 1;
    return PASS;
}

static enum fate fate_of(const char *text, size_t size, size_t *ret_size)
{
    unsigned char first = (unsigned char) text[0];
    *ret_size = 1;
    if (first == ESCAPE)
        return fate_of_escape(text, size, ret_size);
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f                    ? PASS
               : first == '\n' || first == '\r' || first == '\t' ? PASS
                                                                 : SHOW;
    size_t length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (length == 0 || first >= 0xf5)
        return SHOW;
    for (size_t index = 1; index < length; index++) {
        if (index == size)
            return WAIT;
        unsigned char byte = (unsigned char) text[index];
        if ((byte & 0xc0) != 0x80)
            return SHOW;
    }
    if (first == 0xc2 && (unsigned char) text[1] < 0xa0) { /* C1 controls: U+009B is ESC [ */
        *ret_size = 2;
        return SHOW;
    }
    *ret_size = length;
    return PASS;
}

static void show(struct terminal *terminal, unsigned char byte)
{
    char caret[3] = { '^', (char) (byte ^ 0x40), '\0' };
    if (byte < 0x20 || byte == 0x7f)
        write_all(terminal, caret, 2);
    else
        write_all(terminal, "\xef\xbf\xbd", 3); /* U+FFFD */
}

static void filter(struct terminal *terminal, const char *data, size_t size, bool is_end)
{
    size_t plain = 0, at = 0;
    while (at < size) {
        size_t length = 1;
        enum fate fate = fate_of(data + at, size - at, &length);
        if (fate == WAIT && !is_end)
            break;
        if (fate == PASS) {
            if (data[at] == ESCAPE)
                terminal->colours = true;
            at += length;
            continue;
        }
        write_all(terminal, data + plain, at - plain);
        show(terminal, (unsigned char) data[at]);
        at += fate == WAIT ? 1 : length;
        plain = at;
    }
    write_all(terminal, data + plain, at - plain);
    terminal->held = size - at;
    memmove(terminal->hold, data + at, terminal->held);
}

void terminal_write(struct terminal *terminal, const char *data, size_t size)
{
    if (!terminal->is_terminal) {
        write_all(terminal, data, size);
        return;
    }
    /* First completes the sequence that is held. */
    while (terminal->held > 0 && size > 0) {
        terminal->hold[terminal->held++] = *data++;
        size--;
        char held[sizeof terminal->hold];
        memcpy(held, terminal->hold, terminal->held);
        filter(terminal, held, terminal->held, false);
    }
    if (size > 0)
        filter(terminal, data, size, false);
}

void terminal_done(struct terminal *terminal)
{
    char held[sizeof terminal->hold];
    memcpy(held, terminal->hold, terminal->held);
    size_t size = terminal->held;
    terminal->held = 0;
    if (size > 0)
        filter(terminal, held, size, true);
    if (terminal->colours)
        write_all(terminal, "\x1b[0m", 4);
}
