/* describe.h - what a model should know before it writes code: made of the policy and the template
 * that hold it. */
#pragma once

#include "base/bytes.h"
#include "policy/policy.h"

#include <json.h>

/* Adds the text. `manifest` is that of the policy's template, borrowed. */
void policy_describe(const struct policy *policy, struct json_object *manifest, struct bytes *out);
