/* expect.h - what a run may carry of its output's expectation: the field `expect` of a request,
 * checked for form when the run is asked for, or the key of a policy file. Whether the output is
 * so, gate.h finds out.
 *
 *     {"stdout": {"schema": …, "type": "text/csv", "min_bytes": 1, "max_bytes": 4096},
 *      "result": {"schema": …},
 *      "artifacts": [{"name": "plot.png", "type": "image/png", "max_bytes": 1000000},
 *                    {"pattern": "*.csv", "required": false}],
 *      "others": "forbid", "secrets": "forbid"}
 *
 * Strict: a key, a type or a keyword of JSON Schema that is not checked here is refused, and never
 * passed over. */
#pragma once

#include "base/error.h"
#include "policy/expect_needs.h"

#include <json.h>
#include <stddef.h>

enum { EXPECT_BYTES_MAX = 256 * 1024, EXPECT_ARTIFACTS_MAX = 64, EXPECT_PATTERN_MAX = 512 };

/* Checks the whole of it.
 * Gives  *ret_needs.
 * Fails  ERR_BAD_REQUEST  with the place in it ("expect.stdout.schema/properties/x"), cause and fix
 */
int expectation_check(struct json_object *json, struct expect_needs *ret_needs, error *err);

/* A text that means the same to us and to the checker, which does not end it at a NUL; "" if it is
 * none. Borrowed from `value`. */
const char *expectation_text(struct json_object *value);

/* expect_schema.c: a schema, as schema_keywords.def has them; `at` is its place, for messages. */
int expectation_check_schema(struct json_object *schema, const char *at, error *err);

/* expect_pattern.c: a regular expression of the part that ECMA-262 and Python read alike: literals,
 * classes, groups, alternatives, quantifiers, anchors. No look-around, no reference back, no name.
 * Fails  ERR_BAD_REQUEST  naming the byte. */
int expectation_check_pattern(const char *pattern, size_t size, error *err);
