/* screen_filter.c - see screen_filter.h. A complete sequence is passed on or dropped. */
#include "cli/tty/screen_filter.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ESCAPE = 0x1b, BELL = 0x07, CANCEL = 0x18, SUBSTITUTE = 0x1a };

static void write_all(struct screen *screen, const char *data, size_t size)
{
    while (size > 0 && screen->failed == 0) {
        ssize_t written = write(screen->out, data, size);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd watched = { .fd = screen->out, .events = POLLOUT };
            (void) poll(&watched, 1, 1000);
        } else if (written < 0 && errno != EINTR) {
            screen->failed = errno;
        } else if (written > 0) {
            data += written;
            size -= (size_t) written;
        }
    }
}

int screen_open(struct screen *screen, int in, int out, error *err)
{
    *screen = (struct screen){ .in = in, .out = out };
    if (!isatty(out) || tcgetattr(in, &screen->before) < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "a shell needs a terminal on stdin and stdout; use glovebox session exec");
    struct termios raw = screen->before;
    cfmakeraw(&raw);
    if (tcsetattr(in, TCSADRAIN, &raw) < 0)
        return fail_os(err, "make the terminal raw");
    screen->is_raw = true;
    return 0;
}

/* Resets what the program may have left on: colours, mouse reports, bracketed paste, a hidden
 * cursor, another character set. Drops unread answers of the terminal. */
void screen_close(struct screen *screen)
{
    static const char calm[] = "\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l"
                               "\x1b[?1l\x1b>\x1b[?25h\x1b(B\x0f";
    if (!screen->is_raw)
        return;
    screen->is_raw = false;
    if (screen->is_on_other_page)
        write_all(screen, "\x1b[?1049l", 8);
    write_all(screen, calm, sizeof calm - 1);
    (void) tcflush(screen->in, TCIFLUSH);
    (void) tcsetattr(screen->in, TCSADRAIN, &screen->before);
}

/* The last byte of ESC [ … is the command. Reports of the device, its status, modes and window are
 * answers, and `i` prints. With `?` before or an intermediate byte, more commands ask for answers;
 * of those with an intermediate byte only the soft reset `!p` passes. */
static bool csi_may_pass(const char *sequence, size_t size)
{
    char last = sequence[size - 1];
    bool is_private = sequence[2] == '?';
    bool has_mark = sequence[size - 2] >= 0x20 && sequence[size - 2] < 0x30;
    if (has_mark)
        return last == 'p' && sequence[size - 2] == '!';
    return !strchr(is_private ? "cntixyqSmu" : "cntixyq", last);
}

static void hold(struct screen *screen, char byte)
{
    if (screen->held < sizeof screen->hold)
        screen->hold[screen->held++] = byte;
}

static void end_sequence(struct screen *screen, bool passes)
{
    static const char other_page[] = "\x1b[?1049";
    if (passes && screen->held < sizeof screen->hold) {
        write_all(screen, screen->hold, screen->held);
        if (screen->held == sizeof other_page &&
            memcmp(screen->hold, other_page, screen->held - 1) == 0)
            screen->is_on_other_page = screen->hold[screen->held - 1] == 'h';
    }
    screen->held = 0;
    screen->state = SCREEN_PLAIN;
}

/* Can the byte be part of a short sequence? Control bytes and UTF-8 cannot. */
static bool is_part(char byte)
{
    return (unsigned char) byte >= 0x20 && (unsigned char) byte < 0x7f;
}

/* Begins a sequence, also inside another one: the terminal drops the outer one at that byte. */
static void begin_sequence(struct screen *screen)
{
    screen->held = 0;
    hold(screen, ESCAPE);
    screen->state = SCREEN_ESCAPE;
}

/* ESC Z asks for the terminal's type. ESC % @ ends UTF-8, so that single bytes would be
 * controls. */
static bool escape_may_pass(const struct screen *screen)
{
    return screen->hold[screen->held - 1] != 'Z' && screen->hold[1] != '%';
}

static void after_escape(struct screen *screen, char byte)
{
    if (!is_part(byte)) {
        end_sequence(screen, false);
        return;
    }
    if (byte == '[') {
        screen->state = SCREEN_CSI;
    } else if (byte == ']' || byte == 'P' || byte == 'X' || byte == '^' || byte == '_') {
        screen->held = 0;
        screen->state = SCREEN_STRING;
    } else if (byte < 0x30) {
        hold(screen, byte); /* ESC ( B: the character set follows */
        return;
    } else {
        hold(screen, byte);
        end_sequence(screen, escape_may_pass(screen));
        return;
    }
    hold(screen, byte);
}

/* A byte that cannot be part of the sequence ends it, because a terminal would obey that byte in
 * the middle. */
static void in_csi(struct screen *screen, char byte)
{
    if (!is_part(byte)) {
        end_sequence(screen, false);
        return;
    }
    hold(screen, byte);
    if (byte >= 0x40)
        end_sequence(screen, csi_may_pass(screen->hold, screen->held));
}

static void in_string(struct screen *screen, char byte)
{
    bool was_escape = screen->state == SCREEN_STRING_ESCAPE;
    screen->state = byte == ESCAPE ? SCREEN_STRING_ESCAPE : SCREEN_STRING;
    if (byte == BELL || (was_escape && byte == '\\'))
        end_sequence(screen, false);
}

/* C1 controls in UTF-8: C2 9B is ESC [, C2 90, 98, 9D, 9E and 9F begin long sequences, C2 9A asks
 * for an answer. Terminals do not draw them, so they are dropped, and so is a C2 that begins no
 * character, since bytes after a dropped part could complete it. */
static bool is_c1(struct screen *screen, char byte)
{
    unsigned char value = (unsigned char) byte;
    bool is = screen->after_c2 && value >= 0x80 && value < 0xa0;
    if (screen->after_c2 && value >= 0xa0 && value < 0xc0)
        write_all(screen, "\xc2", 1);
    screen->after_c2 = value == 0xc2;
    return is || screen->after_c2;
}

static void take(struct screen *screen, char byte)
{
    if (byte == CANCEL || byte == SUBSTITUTE) {
        end_sequence(screen, false);
        return;
    }
    if (byte == ESCAPE && screen->state <= SCREEN_CSI)
        begin_sequence(screen);
    else if (screen->state == SCREEN_ESCAPE)
        after_escape(screen, byte);
    else if (screen->state == SCREEN_CSI)
        in_csi(screen, byte);
    else
        in_string(screen, byte);
}

void screen_draw(struct screen *screen, const char *data, size_t size)
{
    size_t plain = 0;
    for (size_t at = 0; at < size; at++) {
        if (screen->state != SCREEN_PLAIN) {
            take(screen, data[at]);
            plain = at + 1;
            continue;
        }
        bool begins = data[at] == ESCAPE || data[at] == 0x05; /* ENQ asks for an answer */
        if (!begins && !screen->after_c2 && (unsigned char) data[at] != 0xc2)
            continue;
        write_all(screen, data + plain, at - plain);
        plain = at + 1;
        if (is_c1(screen, data[at]))
            continue;
        if (data[at] == ESCAPE) {
            begin_sequence(screen);
        } else if (data[at] != 0x05) {
            plain = at;
        }
    }
    write_all(screen, data + plain, size - plain);
}

bool screen_typed(struct screen *screen, const char *data, size_t *size)
{
    for (size_t at = 0; at < *size; at++) {
        char key = data[at];
        if (screen->keys == KEYS_TILDE && key == '.') {
            *size = 0;
            return true;
        }
        screen->keys = key == '\r' || key == '\n'                      ? KEYS_LINE_START
                       : screen->keys == KEYS_LINE_START && key == '~' ? KEYS_TILDE
                                                                       : KEYS_ELSEWHERE;
    }
    return false;
}

void screen_size(const struct screen *screen, uint16_t *rows, uint16_t *columns)
{
    struct winsize size;
    if (ioctl(screen->out, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return;
    *rows = size.ws_row;
    *columns = size.ws_col;
}
