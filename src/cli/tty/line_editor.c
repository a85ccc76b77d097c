/* line_editor.c - see line_editor.h. Each key redraws the line with one write. If the line is wider
 * than the terminal, only the part around the cursor is shown. */
#include "cli/tty/line_editor.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    CTRL_A = 1,
    CTRL_B,
    CTRL_C,
    CTRL_D,
    CTRL_E,
    CTRL_F,
    CTRL_H = 8,
    TAB,
    NEW_LINE,
    CTRL_K,
    CTRL_L,
    RETURN,
    CTRL_N,
    CTRL_P = 16,
    CTRL_U = 21,
    CTRL_W = 23,
    ESCAPE = 27,
    DELETE = 127,
    BETWEEN_LINES = 30 /* record separator: an entry is a line of the history file */
};

struct editor {
    struct line_reader *reader;
    const char *prompt;
    size_t length, cursor; /* bytes */
    size_t past;           /* index of the history line shown; history_count: the new one */
};

static char line[LINE_MAX];  /* what is being typed */
static char fresh[LINE_MAX]; /* the new line, while one of the history is shown */

/* --- the history ------------------------------------------------------------------------------ */

static void push(struct line_reader *reader, const char *text)
{
    if (reader->history_count == HISTORY_MAX) {
        free(reader->history[0]);
        memmove(reader->history, reader->history + 1, (HISTORY_MAX - 1) * sizeof *reader->history);
        reader->history_count--;
    }
    reader->history[reader->history_count] = strdup(text);
    if (reader->history[reader->history_count])
        reader->history_count++;
}

void line_remember(struct line_reader *reader, const char *text)
{
    size_t count = reader->history_count;
    if (!*text || strlen(text) >= LINE_MAX ||
        (count > 0 && strcmp(reader->history[count - 1], text) == 0))
        return;
    push(reader, text);
    if (!reader->kept)
        return;
    for (const char *at = text; *at; at++)
        (void) fputc(*at == '\n' ? BETWEEN_LINES : *at, reader->kept);
    (void) fputc('\n', reader->kept);
    (void) fflush(reader->kept);
}

void line_open(struct line_reader *reader, const char *kept, int stop)
{
    *reader = (struct line_reader){ .is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
                                    .stop = stop };
    int file = kept ? open(kept, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    reader->kept = file < 0 ? NULL : fdopen(file, "a+");
    if (!reader->kept)
        return;
    while (fgets(line, sizeof line, reader->kept)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *at = line; (at = strchr(at, BETWEEN_LINES));)
            *at = '\n';
        push(reader, line);
    }
}

void line_close(struct line_reader *reader)
{
    for (size_t i = 0; i < reader->history_count; i++)
        free(reader->history[i]);
    if (reader->kept)
        (void) fclose(reader->kept);
    *reader = (struct line_reader){ 0 };
}

/* --- drawing ---------------------------------------------------------------------------------- */

static bool begins_character(char byte)
{
    return ((unsigned char) byte & 0xc0) != 0x80;
}

static size_t columns_of(const char *text, size_t size)
{
    size_t columns = 0;
    for (size_t i = 0; i < size; i++)
        columns += begins_character(text[i]);
    return columns;
}

/* Shows an entry of several lines as one line, with a sign at the end of each. */
static void show_lines(const char *text, size_t size, char *shown, size_t room)
{
    static const char sign[] = "\u21b5";
    size_t used = 0;
    for (size_t i = 0; i < size && used + sizeof sign < room; i++)
        if (text[i] == '\n')
            used += (size_t) snprintf(shown + used, room - used, "%s", sign);
        else
            shown[used++] = text[i];
    shown[used] = '\0';
}

static void draw(const struct editor *editor)
{
    static char shown[2 * LINE_MAX];
    char out[2 * LINE_MAX];
    struct winsize size = { .ws_col = 80 };
    (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    size_t prompt = columns_of(editor->prompt, strlen(editor->prompt));
    size_t room = size.ws_col > prompt + 8 ? size.ws_col - prompt - 1 : 8, begin = 0;
    while (columns_of(line + begin, editor->cursor - begin) >= room)
        begin++;
    while (begin < editor->length && !begins_character(line[begin]))
        begin++;
    size_t end = editor->length;
    while (columns_of(line + begin, end - begin) > room)
        end--;
    show_lines(line + begin, end - begin, shown, sizeof shown);
    int used = snprintf(out, sizeof out, "\r%s%s\x1b[K\r\x1b[%zuC", editor->prompt, shown,
                        prompt + columns_of(line + begin, editor->cursor - begin));
    (void) !write(STDOUT_FILENO, out, used < (int) sizeof out ? (size_t) used : sizeof out - 1);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Returns false if the terminal is gone. */
static bool wait_for_keys(struct line_reader *reader)
{
    struct pollfd watched[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                { .fd = reader->stop, .events = POLLIN } };
    int ready;
    do {
        if (reader->beat && deadline_has_passed(reader->next_beat)) {
            reader->beat(reader->user);
            reader->next_beat = deadline_in(reader->beat_ms);
        }
        ready = poll(watched, 2, reader->beat ? (int) deadline_left_ms(reader->next_beat) : -1);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    return ready > 0 && !watched[1].revents;
}

static int next_byte(struct line_reader *reader)
{
    if (reader->at == reader->size) {
        if (!wait_for_keys(reader))
            return -1;
        ssize_t got = read(STDIN_FILENO, reader->typed, sizeof reader->typed);
        if (got <= 0)
            return -1;
        reader->at = 0;
        reader->size = (size_t) got;
    }
    return (unsigned char) reader->typed[reader->at++];
}

static size_t before(const char *text, size_t at)
{
    if (at == 0)
        return 0;
    do
        at--;
    while (at > 0 && !begins_character(text[at]));
    return at;
}

static size_t after(const struct editor *editor, size_t at)
{
    if (at < editor->length)
        at++;
    while (at < editor->length && !begins_character(line[at]))
        at++;
    return at;
}

static void cut(struct editor *editor, size_t from, size_t to)
{
    memmove(line + from, line + to, editor->length - to);
    editor->length -= to - from;
    editor->cursor = from;
}

static void put(struct editor *editor, char byte)
{
    if (editor->length + 1 >= LINE_MAX)
        return;
    memmove(line + editor->cursor + 1, line + editor->cursor, editor->length - editor->cursor);
    line[editor->cursor++] = byte;
    editor->length++;
}

static void look_back(struct editor *editor, bool is_back)
{
    const struct line_reader *reader = editor->reader;
    if (is_back ? editor->past == 0 : editor->past == reader->history_count)
        return;
    line[editor->length] = '\0';
    if (editor->past == reader->history_count)
        memcpy(fresh, line, sizeof fresh);
    editor->past += is_back ? (size_t) -1 : 1;
    const char *text =
        editor->past == reader->history_count ? fresh : reader->history[editor->past];
    (void) snprintf(line, sizeof line, "%s", text);
    editor->length = editor->cursor = strlen(line);
}

/* Reads sequences like ESC [ A, and ESC O A of other terminals. */
static void escape(struct editor *editor)
{
    int kind = next_byte(editor->reader);
    int key = kind == '[' || kind == 'O' ? next_byte(editor->reader) : kind, number = key;
    while (key >= '0' && key <= ';')
        key = next_byte(editor->reader);
    if (key == 'A' || key == 'B')
        look_back(editor, key == 'A');
    else if (key == 'C')
        editor->cursor = after(editor, editor->cursor);
    else if (key == 'D')
        editor->cursor = before(line, editor->cursor);
    else if (key == 'H' || (key == '~' && number == '1'))
        editor->cursor = 0;
    else if (key == 'F' || (key == '~' && number == '4'))
        editor->cursor = editor->length;
    else if (key == '~' && number == '3')
        cut(editor, editor->cursor, after(editor, editor->cursor));
}

static size_t word_before(size_t at)
{
    while (at > 0 && line[at - 1] == ' ')
        at--;
    while (at > 0 && line[at - 1] != ' ')
        at--;
    return at;
}

/* --- completion ------------------------------------------------------------------------------- */

static bool is_of_word(char byte)
{
    return byte == '_' || isalnum((unsigned char) byte) || (unsigned char) byte >= 0x80;
}

/* Shortens *common to the prefix that it shares with all words of the text that begin with the
 * `size` bytes of `begun`; *common_size is 0 before the first word. */
static void find_words(const char *text, const char *begun, size_t size, const char **common,
                       size_t *common_size)
{
    for (const char *at = text; *at;) {
        size_t length = 0;
        while (is_of_word(at[length]))
            length++;
        if (length > size && strncmp(at, begun, size) == 0) {
            size_t same = *common_size > 0 ? size : length;
            while (*common_size > 0 && same < length && same < *common_size &&
                   at[same] == (*common)[same])
                same++;
            *common = at;
            *common_size = same;
        }
        at += length > 0 ? length : 1;
    }
}

/* Extends the word before the cursor as far as all words of the history with that beginning agree;
 * indents if there is no word. */
static void complete(struct editor *editor)
{
    const struct line_reader *reader = editor->reader;
    size_t begin = editor->cursor;
    const char *common = "";
    size_t common_size = 0;
    while (begin > 0 && is_of_word(line[begin - 1]))
        begin--;
    size_t size = editor->cursor - begin;
    for (int i = 0; size == 0 && i < 4; i++)
        put(editor, ' ');
    for (size_t i = 0; size > 0 && i < reader->history_count; i++)
        find_words(reader->history[i], line + begin, size, &common, &common_size);
    for (size_t i = size; i < common_size; i++)
        put(editor, common[i]);
}

static void change(struct editor *editor, int key)
{
    switch (key) {
    case CTRL_A:
        editor->cursor = 0;
        break;
    case CTRL_E:
        editor->cursor = editor->length;
        break;
    case CTRL_B:
        editor->cursor = before(line, editor->cursor);
        break;
    case CTRL_F:
        editor->cursor = after(editor, editor->cursor);
        break;
    case CTRL_H:
    case DELETE:
        cut(editor, before(line, editor->cursor), editor->cursor);
        break;
    case CTRL_D:
        cut(editor, editor->cursor, after(editor, editor->cursor));
        break;
    case CTRL_K:
        editor->length = editor->cursor;
        break;
    case CTRL_U:
        cut(editor, 0, editor->cursor);
        break;
    case CTRL_W:
        cut(editor, word_before(editor->cursor), editor->cursor);
        break;
    case CTRL_L:
        (void) !write(STDOUT_FILENO, "\x1b[H\x1b[2J", 7);
        break;
    case CTRL_P:
    case CTRL_N:
        look_back(editor, key == CTRL_P);
        break;
    case TAB:
        complete(editor);
        break;
    case ESCAPE:
        escape(editor);
        break;
    default:
        if (key >= ' ')
            put(editor, (char) key);
    }
}

static int edit(struct editor *editor)
{
    for (;;) {
        struct line_reader *reader = editor->reader;
        if (reader->at == reader->size)
            draw(editor); /* once for pasted text, not for each byte */
        int key = next_byte(reader);
        if (key < 0 || (key == CTRL_D && editor->length == 0))
            return LINE_ENDED;
        if (key == CTRL_C)
            return LINE_THROWN_AWAY;
        if (key == RETURN || key == NEW_LINE) {
            editor->cursor = editor->length;
            draw(editor);
            return LINE_TYPED;
        }
        change(editor, key);
    }
}

static int read_plain(struct line_reader *reader)
{
    size_t length = 0;
    int byte;
    while ((byte = next_byte(reader)) >= 0 && byte != '\n')
        if (length + 1 < LINE_MAX)
            line[length++] = (char) byte;
    line[length] = '\0';
    return byte < 0 && length == 0 ? LINE_ENDED : LINE_TYPED;
}

int line_read(struct line_reader *reader, const char *prompt, const char **ret_line)
{
    struct editor editor = { .reader = reader, .prompt = prompt, .past = reader->history_count };
    *ret_line = line;
    if (!reader->is_terminal)
        return read_plain(reader);
    if (tcgetattr(STDIN_FILENO, &reader->before) < 0)
        return LINE_ENDED;
    struct termios raw = reader->before;
    cfmakeraw(&raw);
    raw.c_oflag |= OPOST;
    (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    int outcome = edit(&editor);
    line[editor.length] = '\0';
    (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &reader->before);
    (void) !write(STDOUT_FILENO, "\r\n", 2);
    return outcome;
}
