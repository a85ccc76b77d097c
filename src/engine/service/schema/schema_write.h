/* schema_write.h - JSON Schema of the types and schemas that openapi.h describes. */
#pragma once

#include "base/bytes.h"

struct schema;

/* {"$ref": …} to a schema by its name. */
void schema_reference_write(struct bytes *out, const char *name);

/* The schema of a type; `text` says what it means and may be NULL. */
void schema_type_write(struct bytes *out, const char *type, const char *text);

/* Of schema_tables; NULL: there is none of this name. */
const struct schema *schema_find(const char *name);
/* "Name": and its schema, as a member. */
void schema_write(struct bytes *out, const struct schema *schema);
void schema_limits_write(struct bytes *out); /* of Limits, out of limits.def */

/* "schemas": all of schema_tables, and Limits out of limits.def. */
void schemas_write(struct bytes *out);
