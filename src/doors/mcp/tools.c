/* tools.c - tools/list and tools/call: finds the tool, checks rights and arguments, begins. */
#include "base/utf8.h"
#include "doors/mcp/mcp.h"
#include "engine/service/service_tools.h"
#include "model/errors.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

void mcp_content_text(struct bytes *out, const char *text, size_t size)
{
    json_open(out, '{');
    json_string_field(out, "type", "text");
    json_key(out, "text");
    json_text(out, text, size);
    json_close(out, '}');
}

void mcp_add_name(struct bytes *text, const char *name, size_t size)
{
    for (size_t at = 0; at < size;) {
        const unsigned char *here = (const unsigned char *) name + at;
        int length = utf8_character(here, size - at);
        uint32_t point = length > 0 ? utf8_code_point(here, length) : 0;
        size_t taken = length > 0 ? (size_t) length : 1;
        if (point >= ' ' && !utf8_is_hidden(point))
            bytes_add(text, here, taken);
        else
            for (size_t i = 0; i < taken; i++)
                bytes_print(text, "\\x%02x", here[i]);
        at += taken;
    }
}

struct bytes *mcp_result_open_text(struct mcp_call *call, const char *text)
{
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "content", '[');
    mcp_content_text(out, text, strlen(text));
    json_close(out, ']');
    return out;
}

void mcp_tool_text(struct mcp_call *call, const char *text, bool is_error)
{
    struct bytes *out = mcp_result_open_text(call, text);
    json_flag_field(out, "isError", is_error);
    mcp_result_close(call);
}

void mcp_tool_fail(struct mcp_call *call, const error *cause)
{
    char text[sizeof cause->text + 160];
    const struct error_row *row = error_row_of(cause->code);
    int size = snprintf(text, sizeof text, "%s: %s", row->json_code, cause->text);
    if (row->retryable)
        (void) snprintf(text + size, sizeof text - (size_t) size,
                        ". The same call may succeed in a moment.");
    if (call->work.note[0]) {
        auto_bytes all = { 0 };
        bytes_print(&all, "%s\n%s", text, call->work.note);
        mcp_tool_text(call, bytes_text(&all), true);
        return;
    }
    mcp_tool_text(call, text, true);
}

static void write_hints(const struct mcp_tool *tool, bool has_network, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "title", tool->title);
    json_flag_field(out, "readOnlyHint", tool->hints & READS_ONLY);
    json_flag_field(out, "destructiveHint", tool->hints & DESTROYS);
    json_flag_field(out, "idempotentHint", tool->hints & (IS_IDEMPOTENT | READS_ONLY));
    json_flag_field(out, "openWorldHint", (tool->hints & IS_OPEN_WORLD) && has_network);
    json_close(out, '}');
}

static void write_tool(const struct mcp_tool *tool, const struct tool_words *words,
                       struct bytes *out)
{
    auto_bytes text = { 0 };
    bytes_add_text(&text, tool->text);
    if (tool->tells_policy && words->text.size > 0) {
        bytes_add_text(&text, "\n\n");
        bytes_add(&text, words->text.data, words->text.size);
    }
    json_open(out, '{');
    json_string_field(out, "name", tool->name);
    if (tool->title)
        json_string_field(out, "title", tool->title);
    json_string_field(out, "description", bytes_text(&text));
    json_key(out, "inputSchema");
    mcp_input_schema_write(tool, out);
    if (tool->gives) {
        json_key(out, "outputSchema");
        mcp_output_schema_write(tool->gives, out);
    }
    if (tool->annotations) {
        json_key(out, "annotations");
        json_raw(out, tool->annotations, strlen(tool->annotations));
    } else if (tool->title) {
        json_key(out, "annotations");
        write_hints(tool, words->has_network, out);
    }
    json_close(out, '}');
}

static bool is_offered(const struct mcp_call *call, const struct mcp_tool *tool)
{
    return tool->files <= (call->process ? call->process->files : FILES_NONE);
}

void mcp_tools_list(struct mcp_call *call)
{
    const struct mcp_catalogue *catalogue = call->catalogue;
    struct tool_words words = { 0 };
    struct exchange *exchange = call->exchange;
    error err;
    if (json_member(call->params, "cursor")) {
        mcp_fail(call, MCP_INVALID_PARAMS, "there is one page of tools; leave 'cursor' out");
        return;
    }
    if (service_tool_words(exchange->service, &exchange->caller, &words, &err) < 0)
        words.text.size = 0; /* a faulty policy file: a run reports the error */
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "tools", '[');
    for (size_t i = 0; i < catalogue->tool_count; i++)
        if (is_offered(call, &catalogue->tools[i]) &&
            service_check_right(&exchange->caller, catalogue->tools[i].right, &err) == 0)
            write_tool(&catalogue->tools[i], &words, out);
    json_close(out, ']');
    mcp_write_caching(call, out);
    mcp_result_close(call);
    bytes_done(&words.text);
}

static const struct mcp_tool *find_tool(const struct mcp_call *call, const char *name)
{
    const struct mcp_catalogue *catalogue = call->catalogue;
    for (size_t i = 0; i < catalogue->tool_count; i++)
        if (strcmp(catalogue->tools[i].name, name) == 0 && is_offered(call, &catalogue->tools[i]))
            return &catalogue->tools[i];
    return NULL;
}

void mcp_tools_call(struct mcp_call *call)
{
    error err;
    const char *name = member_text(call->params, "name");
    call->tool = name ? find_tool(call, name) : NULL;
    call->arguments = json_member(call->params, "arguments");
    if (!call->tool) {
        mcp_fail(call, MCP_INVALID_PARAMS, "no tool is named '%.80s'; tools/list names them",
                 name ? name : "");
        return;
    }
    if (call->arguments && !json_object_is_type(call->arguments, json_type_object)) {
        mcp_fail(call, MCP_INVALID_PARAMS, "'arguments' is an object");
        return;
    }
    if (mcp_header_check_arguments(call) < 0)
        return;
    if (service_check_right(&call->exchange->caller, call->tool->right, &err) < 0 ||
        mcp_arguments_check(call->tool, call->arguments, &err) < 0) {
        mcp_tool_fail(call, &err);
        return;
    }
    mcp_claim(call);
    call->tool->begin(call);
}
