/* canonical_tree.h - a value that a client sent, in the one spelling that RFC 8785 gives it, so
 * that its hash can be computed elsewhere. (json/canonical_writer.h writes canonical JSON of our
 * own.) */
#pragma once

#include "base/bytes.h"

#include <json.h>

/* Adds the value. Numbers beyond 2^53 are not told apart: who takes them refuses them. */
void canonical_write(struct json_object *value, struct bytes *out);
