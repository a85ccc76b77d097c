/* host_files_message.c - calls of file_import and file_export: the file is the member
 * "glovebox/content", in base64, of the parameters of a call or of its result. */
#include "cli/mcp/host_files.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "model/errors.h"
#include "json/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char content_name[] = "glovebox/content";

static bool is_call_of(json_object *message, const char *tool)
{
    const char *method = member_text(message, "method");
    const char *name = member_text(json_member(message, "params"), "name");
    return method && name && strcmp(method, "tools/call") == 0 && strcmp(name, tool) == 0;
}

static json_object *in_base64(const struct bytes *bytes)
{
    size_t size = base64_size(bytes->size);
    auto_text text = malloc(size + 1);
    if (!text)
        return NULL;
    base64_encode(bytes->data, bytes->size, text);
    return json_object_new_string_len(text, (int) size);
}

/* "not_found: the user's folder has no 'x'" */
static json_object *failure_of(const error *err)
{
    char text[sizeof err->text + 64];
    (void) snprintf(text, sizeof text, "%s: %s", error_row_of(err->code)->json_code, err->text);
    return json_object_new_string(text);
}

bool host_files_import(const struct host_files *files, json_object *message)
{
    json_object *params = json_member(message, "params");
    const char *file = member_text(json_member(params, "arguments"), "file");
    auto_bytes bytes = { 0 };
    error err;
    if (files->folder < 0 || !file || !is_call_of(message, "file_import"))
        return false;
    int result = host_file_read(files, file, &bytes, &err);
    json_object *content = result == 0 ? in_base64(&bytes) : NULL;
    if (result == 0 && !content)
        (void) fail(&err, ERR_SYSTEM, "no memory for the file");
    if (content)
        (void) json_object_object_add(params, content_name, content);
    else
        (void) json_object_object_add(params, "glovebox/failure", failure_of(&err));
    return true;
}

bool host_files_exports(const struct host_files *files, json_object *message)
{
    return files->folder >= 0 && is_call_of(message, "file_export");
}

static int export(const struct host_files *files, json_object *arguments, json_object *content,
                  error *err)
{
    size_t length = (size_t) json_object_get_string_len(content);
    const char *path = member_text(arguments, "file");
    void *bytes = malloc(length + 1);
    if (!bytes)
        return fail(err, ERR_SYSTEM, "no memory for the file");
    int64_t size = base64_decode(json_object_get_string(content), length, bytes);
    const struct host_write order = { .path = path ? path : "",
                                      .replaces = json_object_get_boolean(
                                          json_member(arguments, "replace")),
                                      .bytes = bytes,
                                      .size = (size_t) size };
    int result = size < 0 ? fail(err, ERR_PROTOCOL, "the daemon has sent no base64")
                          : host_file_write(files, &order, err);
    free(bytes);
    return result;
}

static void replace_result(json_object *result, const error *err)
{
    json_object *list = json_object_new_array();
    json_object *part = json_object_new_object();
    (void) json_object_object_add(part, "type", json_object_new_string("text"));
    (void) json_object_object_add(part, "text", failure_of(err));
    (void) json_object_array_add(list, part);
    (void) json_object_object_add(result, "content", list);
    (void) json_object_object_add(result, "isError", json_object_new_boolean(true));
}

bool host_files_export(const struct host_files *files, json_object *arguments, json_object *message)
{
    json_object *result = json_member(message, "result");
    json_object *content = json_member(result, content_name);
    error err;
    if (!json_object_is_type(content, json_type_string))
        return false;
    if (export(files, arguments, content, &err) < 0)
        replace_result(result, &err);
    json_object_object_del(result, content_name);
    return true;
}
