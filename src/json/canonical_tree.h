/* canonical_tree.h - writes a value that a client sent as canonical JSON (RFC 8785), so that its
 * hash can be computed elsewhere. (canonical_writer.h writes canonical JSON from our own data.) */
#pragma once

#include "base/bytes.h"

#include <json.h>

/* Adds the value. Integers beyond 2^53 lose digits: a caller that accepts numbers refuses those. */
void canonical_write(struct json_object *value, struct bytes *out);
