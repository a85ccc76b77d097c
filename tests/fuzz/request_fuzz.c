/* request_fuzz.c - any bytes as the body of POST /v1/runs: a request that keeps its own promises
 * comes out, or a failure in words. The first byte says in how large pieces the body comes. */
#include "engine/run/run_request.h"
#include "json/reader.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_content(const struct payload *content)
{
    unsigned char bytes[300];
    uint64_t offset = 0;
    for (size_t got; (got = payload_read(content, offset, bytes, sizeof bytes)) > 0;)
        offset += got;
    assert(offset == content->size);
}

static void check_request(const struct run_request *request)
{
    error err;
    assert(request->has_code != (request->command_count > 0));
    assert(request->argument_count <= AGENT_ARGUMENTS_MAX);
    assert(request->variable_count <= AGENT_ARGUMENTS_MAX);
    assert(request->file_count <= REQUEST_FILES_MAX);
    if (request->has_code) {
        assert(request->code.size > 0 && request->code.size <= REQUEST_CODE_MAX);
        assert(!memchr(request->code.text, '\0', request->code.size));
    }
    if (request->has_stdin)
        check_content(&request->stdin_content);
    for (size_t i = 0; i < request->file_count; i++) {
        const char *path = request->files[i].path;
        assert(request_check_path(path, strlen(path), &err) == 0);
        check_content(&request->files[i].content);
    }
    for (size_t i = 0; i < request->variable_count; i++)
        assert(policy_check_variable(request->variables[i].name, request->variables[i].value,
                                     &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    error err = { 0 };
    struct json_reader reader;
    if (size < 1 || json_reader_open(&reader, &err) < 0)
        return 0;
    size_t piece = 1 + data[0];
    for (size_t at = 1; at < size; at += piece)
        json_reader_take(&reader, (const char *) data + at, size - at < piece ? size - at : piece);
    struct json_object *json;
    struct run_request *request;
    int result = json_reader_end(&reader, &json, &err);
    json_reader_close(&reader);
    if (result == 0)
        result = request_read(json, &request, &err);
    if (result == 0) {
        check_request(request);
        request_free(request);
    } else {
        assert(err.code != ERR_NONE && err.text[0] != '\0');
    }
    return 0;
}
