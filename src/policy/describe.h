/* describe.h - the prompt that tells a model about its sandbox, made of policy and template. */
#pragma once

#include "base/bytes.h"
#include "policy/policy.h"

#include <json.h>

/* Adds the text. `manifest` is that of the policy's template, borrowed. */
void policy_describe(const struct policy *policy, struct json_object *manifest, struct bytes *out);
