/* log.c - lines to stderr, each in one write. A long line is cut; if the reader is slow, lines wait
 * or are dropped (log_writer.h). */
#include "engine/observe/log.h"

#include "base/clock.h"
#include "base/timestamp.h"
#include "engine/observe/log_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of a line in JSON, before its closing bracket. */
enum { ROOM = 1020 };

static enum log_level max = LOG_NOTICE;
static bool is_json;
static uint32_t sample = 1, skipped; /* for level info: one in `sample` lines is written */

struct line {
    size_t size;
    char text[1024];
};

static void put(struct line *line, char byte)
{
    if (line->size < sizeof line->text - 1) /* the last byte is for the newline */
        line->text[line->size++] = byte;
}

static void put_text(struct line *line, const char *text)
{
    while (*text)
        put(line, *text++);
}

static void put_value(struct line *line, const char *text)
{
    bool quoted = *text == '\0' || strpbrk(text, " \"=");
    if (quoted)
        put(line, '"');
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char) *at;
        if (byte < 0x20 || byte == 0x7F || byte >= 0x80) {
            char escaped[8];
            (void) snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned) byte);
            put_text(line, escaped);
            continue;
        }
        if (byte == '"' || byte == '\\')
            put(line, '\\');
        put(line, *at);
    }
    if (quoted)
        put(line, '"');
}

/* Bytes that are not ASCII are escaped as in the text format, so that a line is always valid
 * JSON. */
static void put_json_text(struct line *line, const char *text)
{
    put(line, '"');
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char) *at;
        char escaped[8] = { *at, '\0' };
        if (byte >= 0x80)
            (void) snprintf(escaped, sizeof escaped, "\\\\x%02x", (unsigned) byte);
        else if (byte < 0x20 || byte == 0x7F || byte == '"' || byte == '\\')
            (void) snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned) byte);
        put_text(line, escaped);
    }
    put(line, '"');
}

static void put_field(struct line *line, const struct log_field *field)
{
    char number[24];
    (void) snprintf(number, sizeof number, "%" PRId64, field->number);
    if (is_json) {
        put(line, ',');
        put_json_text(line, field->name);
        put(line, ':');
    } else {
        put(line, ' ');
        put_text(line, field->name);
        put(line, '=');
    }
    if (!field->text)
        put_text(line, number);
    else if (is_json)
        put_json_text(line, field->text);
    else
        put_value(line, field->text);
}

void log_as_json(bool wanted)
{
    is_json = wanted;
}

void log_one_in(uint32_t count)
{
    sample = count;
    skipped = 0;
}

/* Is this one of the lines that are sampled? */
static bool is_next(void)
{
    bool is_turn = skipped == 0;
    skipped = (skipped + 1) % sample;
    return is_turn;
}

void log_until(enum log_level level)
{
    max = level;
}

static void begin_line(struct line *line, enum log_event event, enum log_level level)
{
    static const char *const levels[] = { "error", "warning", "notice", "info", "debug" };
    char moment[TIMESTAMP_SIZE];
    put_text(line, is_json ? "{\"time\":\"" : "");
    put_text(line, timestamp_write(wall_clock_ms(), moment));
    put_text(line, is_json ? "\",\"level\":\"" : " ");
    put_text(line, levels[level]);
    put_text(line, is_json ? "\",\"event\":\"" : " ");
    put_text(line, log_event_name(event));
    put_text(line, is_json ? "\"" : "");
}

static void end_line(struct line *line)
{
    put_text(line, is_json ? "}" : "");
    line->text[line->size++] = '\n';
    log_writer(line->text, line->size);
}

/* Logs that lines were dropped because the reader of stderr was slow. */
static void tell_dropped(void)
{
    uint64_t count = log_writer_take_dropped();
    if (count == 0)
        return;
    struct line line = { 0 };
    struct log_field field = COUNT("lines", count);
    begin_line(&line, LOGGED_LOG_DROPPED, log_event_level(LOGGED_LOG_DROPPED));
    put_field(&line, &field);
    end_line(&line);
}

void log_fields(enum log_event event, enum log_level level, const struct log_field *fields)
{
    bool is_sampled = level == LOG_INFO && sample > 1;
    if (level > max || (is_sampled && !is_next()))
        return;
    struct line line = { 0 };
    log_writer_flush();
    tell_dropped();
    begin_line(&line, event, level);
    if (is_sampled)
        put_field(&line, &COUNT("sample", sample));
    for (const struct log_field *field = fields; field->name; field++) {
        size_t before = line.size;
        put_field(&line, field);
        if (is_json && line.size >= ROOM) { /* a field that does not fit is left out */
            line.size = before;
            break;
        }
    }
    end_line(&line);
}
