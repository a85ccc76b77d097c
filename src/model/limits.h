/* limits.h - the limits of a run as plain numbers, and the table that describes them. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KiB (UINT64_C(1) << 10)
#define MiB (UINT64_C(1) << 20)
#define GiB (UINT64_C(1) << 30)

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_MSEC, UNIT_MILLI };

struct limits {
#define LIMIT(name, ...) uint64_t name;
#include "model/limits.def"
};

enum limit_id {
#define LIMIT(name, ...) LIMIT_##name,
#include "model/limits.def"
    LIMITS
};

struct limit_row {
    const char *name;      /* policy key; the CLI flag is --name with dashes */
    const char *json_name; /* name with its unit: "memory_bytes", "wall_ms", "cpus", "processes" */
    enum unit unit;
    uint64_t start; /* default */
    uint64_t min;
    uint64_t max;
    size_t field; /* offset in struct limits */
    const char *text;
};

extern const struct limit_row limit_rows[LIMITS];

uint64_t limit_get(const struct limits *limits, enum limit_id id);
void limit_put(struct limits *limits, enum limit_id id, uint64_t value); /* unchecked */

/* Every limit at its default. */
void limits_init(struct limits *limits);

/* Finds a limit by policy key, flag name (dashes) or JSON name. Returns LIMITS if there is none. */
enum limit_id limit_find(const char *name);

/* Sets one limit after checking the row's bounds.
 * Fails  ERR_LIMIT  naming the limit, what was asked and the bounds. */
int limit_set(struct limits *limits, enum limit_id id, uint64_t value, error *err);

/* Reads a value that a person wrote: "256MiB", "30s", "500ms", "0.5", "64". A number without a unit
 * is bytes, processors or a count; a time needs a unit. Fails ERR_LIMIT if it is not clear. */
int limit_parse(enum limit_id id, const char *text, uint64_t *ret_value, error *err);

/* Writes a value for people: "256 MiB", "30 s", "0.5". */
void limit_print(enum limit_id id, uint64_t value, char *text, size_t size);

/* True if zero means "not limited" for this limit (cpus and the two disk rates). */
bool limit_may_be_off(enum limit_id id);

/* True if `value` is more than `bound`; zero is the largest value where it means "not limited". */
bool limit_exceeds(enum limit_id id, uint64_t value, uint64_t bound);

/* Writes the message for a run that reached a limit: what happened, what is kept, what to do.
 * `maximum` is that of the policy; `used` is in the row's unit, 0 if it is not known. */
void limit_sentence(enum limit_id id, uint64_t granted, uint64_t used, uint64_t maximum, char *text,
                    size_t size);
