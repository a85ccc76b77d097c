/* schema_write.h - writes JSON Schema for the types and schemas that schema.h describes. */
#pragma once

#include "base/bytes.h"

struct schema;

/* {"$ref": …} to the schema of this name. */
void schema_reference_write(struct bytes *out, const char *name);

/* The schema of a type; `text` describes it and may be NULL. */
void schema_type_write(struct bytes *out, const char *type, const char *text);

/* In schema_tables; NULL: there is none of this name. */
const struct schema *schema_find(const char *name);
/* "Name": and its schema, as a member. */
void schema_write(struct bytes *out, const struct schema *schema);
void schema_limits_write(struct bytes *out); /* the schema Limits, from limits.def */

/* "schemas": all of schema_tables, and Limits. */
void schemas_write(struct bytes *out);
