/* tool_schema.h - describes the tool that runs code in the formats of model interfaces, with the
 * limits of a policy as constraints of its JSON Schema. */
#pragma once

#include "base/bytes.h"
#include "policy/policy.h"

/* Adds the JSON for one of the formats: "openai" (tools of a chat completion), "anthropic" (tools
 * of a message), "mcp" (what tools/list answers), "openapi" (a document of one request).
 * Fails  ERR_BAD_REQUEST  there is no such format */
int tool_schema_write(const struct policy *policy, const char *format, struct bytes *out,
                      error *err);
