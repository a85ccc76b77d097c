/* log.h - one event, one line: moment, level, fixed name, then fields.
 *
 *     log_event(RUN_ENDED, TEXT("run", id), COUNT("wall_ms", ms));
 *     2026-11-21T08:14:34.120Z debug run.ended run=run_5f wall_ms=812
 *
 * Values with blanks are quoted, control bytes escaped: some come from programs in sandboxes. */
#pragma once

#include "model/log_events.h"

#include <stdbool.h>
#include <stdint.h>

struct log_field {
    const char *name; /* NULL ends the list */
    const char *text; /* NULL: the field is a number */
    int64_t number;
};

#define TEXT(field_name, value) ((struct log_field){ .name = (field_name), .text = (value) })
#define COUNT(field_name, value) \
    ((struct log_field){ .name = (field_name), .number = (int64_t) (value) })

#define LOG_FIELDS(...) ((const struct log_field[]){ __VA_ARGS__, { 0 } })

/* `symbol` is the first word of a row of log_events.def, which gives its level. */
#define log_event(symbol, ...) \
    log_fields(LOGGED_##symbol, log_event_level(LOGGED_##symbol), LOG_FIELDS(__VA_ARGS__))

void log_fields(enum log_event event, enum log_level level, const struct log_field *fields);

/* Writes each line as a JSON object: {"time":…,"level":…,"event":…, and the fields}. */
void log_as_json(bool wanted);

/* Of lines of level info only every `count`th is written, beginning with the first. */
void log_one_in(uint32_t count);

/* Lines above this level are not written; LOG_NOTICE at the start. */
void log_until(enum log_level level);
