/* fixtures.h - what the public conformance suite of the Model Context Protocol calls, served by the
 * door of the product: tests/mcp/fixture_*.c, in a gloveboxd that is not installed. */
#pragma once

#include "doors/mcp/mcp.h"

#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg" \
    "gg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

/* A result whose members are this JSON. */
void fixture_result(struct mcp_call *call, const char *members);

/* fixture_asks.c: tools that ask the client. */
extern const struct mcp_tool fixture_ask_tools[];
extern const size_t fixture_ask_tool_count;

/* fixture_lists.c: prompts, resources, completion. */
extern const struct mcp_method fixture_methods[];
extern const size_t fixture_method_count;

/* fixture_tasks.c: tools that are answered with a task. */
extern const struct mcp_tool fixture_task_tools[];
extern const size_t fixture_task_tool_count;
extern const struct mcp_task_source fixture_tasks;
