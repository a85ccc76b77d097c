/* diagnostics.c - prints the line on stderr with which every verb fails: "glovebox: cause; fix". */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "model/errors.h"
#include "supervisor/install_paths.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_MAX = 12 }; /* bytes of "<U+E0041>", with its NUL, and more */

/* Writes the character at `text` in a form that is safe to show. Gives  ret_size, the bytes
 * written; returns the bytes read. */
static size_t show_character(const char *text, size_t left, char ret_shown[SHOWN_MAX],
                             size_t *ret_size)
{
    const unsigned char *byte = (const unsigned char *) text;
    int length = utf8_character(byte, left);
    uint32_t point = length > 0 ? utf8_code_point(byte, length) : 0;
    size_t taken = length > 0 ? (size_t) length : 1;
    /* To a terminal of 8 bits a byte that is no character can be a control, such as CSI. */
    if (point < 0x20 || (point >= 0x7f && point < 0xa0)) {
        *ret_size = (size_t) snprintf(ret_shown, SHOWN_MAX, "\\x%02x", *byte);
        return 1;
    }
    if (length > 0 && utf8_is_hidden(point)) {
        *ret_size = (size_t) snprintf(ret_shown, SHOWN_MAX, "<U+%04X>", (unsigned) point);
        return taken;
    }
    memcpy(ret_shown, text, taken);
    *ret_size = taken;
    return taken;
}

size_t line_add_harmless(char *out, size_t used, size_t room, const char *text)
{
    char shown[SHOWN_MAX];
    size_t size = 0;
    for (size_t left = strlen(text); left > 0 && used + SHOWN_MAX <= room;) {
        size_t taken = show_character(text, left, shown, &size);
        memcpy(out + used, shown, size);
        used += size;
        text += taken;
        left -= taken;
    }
    return used;
}

void print_harmless(FILE *out, const char *text)
{
    char shown[SHOWN_MAX];
    size_t size = 0;
    for (size_t left = strlen(text); left > 0;) {
        size_t taken = show_character(text, left, shown, &size);
        (void) fwrite(shown, 1, size, out);
        text += taken;
        left -= taken;
    }
}

/* Text may come from a file name or a sandbox, and stderr may be a terminal, so control bytes are
 * made visible. One write(2), so that lines of several processes do not mix. */
static void print_cause(const char *text)
{
    char line[4096] = "glovebox: ";
    size_t used = line_add_harmless(line, strlen(line), sizeof line - 1, text);
    line[used++] = '\n';
    (void) !write(STDERR_FILENO, line, used);
}

static int say(const char *format, va_list values) PRINTF(1, 0);

static int say(const char *format, va_list values)
{
    auto_text text = NULL;
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    (void) fflush(stdout);
    print_cause(text ? text : "out of memory");
    return EXIT_OWN_FAILURE;
}

int complain(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int status = say(format, values);
    va_end(values);
    return status;
}

int complain_of(const error *err)
{
    (void) complain("%s", err->text);
    return error_row_of((enum error_code) err->code)->exit_status;
}

int complain_of_policy(const error *err, const char *state)
{
    auto_text places = NULL;
    error unused;
    if (err->code != ERR_NOT_FOUND || path_of_policies_told(state, &places, &unused) < 0)
        return complain_of(err);
    (void) complain("%s; looked in %s", err->text, places);
    return error_row_of(err->code)->exit_status;
}

/* The number of edits (insert, delete, replace, swap of neighbours) between two short words. */
static size_t word_distance(const char *left, const char *right)
{
    enum { MAX = 31 };
    size_t rows = strnlen(left, MAX + 1), columns = strnlen(right, MAX + 1);
    if (rows > MAX || columns > MAX)
        return MAX;
    size_t cost[MAX + 1][MAX + 1];
    for (size_t row = 0; row <= rows; row++)
        for (size_t column = 0; column <= columns; column++) {
            if (row == 0 || column == 0) {
                cost[row][column] = row + column;
                continue;
            }
            bool same = left[row - 1] == right[column - 1];
            size_t best = cost[row - 1][column - 1] + (same ? 0 : 1);
            if (cost[row - 1][column] + 1 < best)
                best = cost[row - 1][column] + 1;
            if (cost[row][column - 1] + 1 < best)
                best = cost[row][column - 1] + 1;
            if (row > 1 && column > 1 && left[row - 1] == right[column - 2] &&
                left[row - 2] == right[column - 1] && cost[row - 2][column - 2] + 1 < best)
                best = cost[row - 2][column - 2] + 1;
            cost[row][column] = best;
        }
    return cost[rows][columns];
}

const char *nearest_word(const char *wrong, const char *const *words)
{
    const char *nearest = NULL;
    size_t length = strlen(wrong);
    size_t min = (length > 4 ? length / 3 : 0) + 2; /* with more edits it is not a typing error */
    for (; *words; words++) {
        size_t distance = word_distance(wrong, *words);
        if (distance < min) {
            min = distance;
            nearest = *words;
        }
    }
    return nearest;
}
