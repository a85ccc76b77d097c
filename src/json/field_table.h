/* field_table.h - reads a flat JSON object by a table with a row for each key; other keys are
 * refused. */
#pragma once

#include "base/error.h"

#include <json.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind {
    FIELD_TEXT,   /* into struct bytes; NUL is refused */
    FIELD_BASE64, /* into struct bytes, decoded */
    FIELD_COUNT,  /* into uint64_t */
    FIELD_FLAG,   /* into bool */
    FIELD_JSON,   /* into struct json_object *, borrowed; read by the caller */
};

struct field {
    const char *name;
    enum field_kind kind;
    void *place;
    uint64_t max; /* bytes of a text, or the number itself */
};

/* Keys that are absent keep their value. `json` may be NULL, for an empty body. Fails
 * ERR_BAD_REQUEST  the key is named. */
int fields_read(struct json_object *json, const struct field *fields, size_t count, error *err);
