/* expect.h - the form of an expectation of outputs: the field `expect` of a request, which is
 * checked when the run is requested, or the key of a policy file. engine/review/output_check.h
 * compares outputs with it.
 *
 *     {"stdout": {"schema": …, "type": "text/csv", "min_bytes": 1, "max_bytes": 4096},
 *      "result": {"schema": …},
 *      "artifacts": [{"name": "plot.png", "type": "image/png", "max_bytes": 1000000},
 *                    {"pattern": "*.csv", "required": false}],
 *      "others": "forbid", "secrets": "forbid"}
 *
 * Strict: unknown keys, types and keywords of JSON Schema are refused, not ignored. */
#pragma once

#include "base/error.h"
#include "policy/expect_needs.h"

#include <json.h>
#include <stddef.h>

enum { EXPECT_BYTES_MAX = 256 * 1024, EXPECT_ARTIFACTS_MAX = 64, EXPECT_PATTERN_MAX = 512 };

/* Checks the whole expectation.
 * Gives  *ret_needs.
 * Fails  ERR_BAD_REQUEST  with the place in it ("expect.stdout.schema/properties/x"), cause and fix
 */
int expectation_check(struct json_object *json, struct expect_needs *ret_needs, error *err);

/* The text of `value`, borrowed; "" if it is no text or has a NUL, at which C would end it and the
 * checker would not. */
const char *expectation_text(struct json_object *value);

/* expect_schema.c: a schema, as schema_keywords.def has them; `at` is its place, for messages. */
int expectation_check_schema(struct json_object *schema, const char *at, error *err);

/* expect_pattern.c: checks a regular expression. Only what has the same meaning in ECMA-262 and
 * Python: literals, classes, groups, alternatives, quantifiers, anchors; no look-around, back
 * references or names. Fails  ERR_BAD_REQUEST  with the position. */
int expectation_check_pattern(const char *pattern, size_t size, error *err);
