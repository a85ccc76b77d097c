/* run_request_test.c - requests, whole or in pieces, and the errors that they get. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/run_request.h"
#include "json/reader.h"

#include <stdlib.h>
#include <string.h>

static int read_request(const char *text, size_t size, size_t piece,
                        struct run_request **ret_request, error *err)
{
    struct json_reader reader;
    struct json_object *json;
    if (json_reader_open(&reader, err) < 0)
        return -1;
    for (size_t at = 0; at < size; at += piece)
        json_reader_take(&reader, text + at, size - at < piece ? size - at : piece);
    int result = json_reader_end(&reader, &json, err);
    json_reader_close(&reader);
    return result < 0 ? -1 : request_read(json, ret_request, err);
}

TEST(a_request_is_refused_with_its_cause)
{
    static const struct {
        const char *body;
        int code;
        const char *says;
    } facts[] = {
        { "", ERR_BAD_REQUEST, "empty" },
        { "{", ERR_BAD_REQUEST, "ends after" },
        { "[]", ERR_BAD_REQUEST, "not a JSON object" },
        { "7", ERR_BAD_REQUEST, "not a JSON object" },
        { "{\"code\":\"1\"} {}", ERR_BAD_REQUEST, "" },
        { "{'code':\"1\"}", ERR_BAD_REQUEST, "not JSON" },
        { "{\"code\":\"\xff\"}", ERR_BAD_REQUEST, "not UTF-8 at byte 9" },
        { "{\"code\":NaN}", ERR_BAD_REQUEST, "not JSON" },
        { "{\"limits\":{\"wall_ms\":-Infinity}}", ERR_BAD_REQUEST, "not JSON" },
        { "{}", ERR_BAD_REQUEST, "neither 'code' nor 'command'" },
        { "{\"code\":\"1\",\"command\":[\"ls\"]}", ERR_BAD_REQUEST, "give one of them" },
        { "{\"code\":\"\"}", ERR_BAD_REQUEST, "empty" },
        { "{\"code\":7}", ERR_BAD_REQUEST, "must be a text" },
        { "{\"code\":\"a\\u0000b\"}", ERR_BAD_REQUEST, "NUL byte at 1" },
        { "{\"cod\":\"1\"}", ERR_BAD_REQUEST, "'cod' is unknown" },
        { "{\"command\":[]}", ERR_BAD_REQUEST, "empty" },
        { "{\"command\":[\"ls\"],\"args\":[\"x\"]}", ERR_BAD_REQUEST, "belong to 'code'" },
        { "{\"code\":\"1\",\"mode\":\"other\"}", ERR_BAD_REQUEST, "does not exist" },
        { "{\"code\":\"1\",\"env\":{\"LD_PRELOAD\":\"x\"}}", ERR_BAD_REQUEST, "LD_PRELOAD" },
        { "{\"code\":\"1\",\"env\":{\"A B\":\"x\"}}", ERR_BAD_REQUEST, "" },
        { "{\"code\":\"1\",\"limits\":{\"wall\":1}}", ERR_LIMIT, "'wall_ms'" },
        { "{\"code\":\"1\",\"limits\":{\"speed\":1}}", ERR_LIMIT, "no limit is named 'speed'" },
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":-1}}", ERR_LIMIT, "number" },
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":1.5}}", ERR_LIMIT, "whole number" },
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":\"1\"}}", ERR_LIMIT, "number" },
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":1e300}}", ERR_LIMIT, "number" },
        { "{\"code\":\"1\",\"limits\":{\"cpus\":0.0001}}", ERR_LIMIT, "least" }, /* 0 lifts it */
        { "{\"code\":\"1\",\"files\":[{\"path\":\"a\"}]}", ERR_BAD_REQUEST, "lacks its 'content'" },
        { "{\"code\":\"1\",\"files\":[{\"content\":\"a\"}]}", ERR_BAD_REQUEST, "lacks its 'path'" },
        { "{\"code\":\"1\",\"files\":[{\"path\":\"a\",\"mode\":1}]}", ERR_BAD_REQUEST,
          "files.mode" },
        { "{\"code\":\"1\",\"stdin\":\"\",\"stdin_base64\":\"\"}", ERR_BAD_REQUEST, "not both" },
        { "{\"code\":\"1\",\"stdin_base64\":\"a=b=\"}", ERR_BAD_REQUEST, "not base64" },
        { "{\"code\":\"1\",\"filename\":\"/etc/passwd\"}", ERR_BAD_REQUEST, "absolute" },
        { "{\"code\":\"1\",\"files\":[{\"path\":\"a\",\"content\":\"\"},"
          "{\"path\":\"b\",\"content\":\"\"},{\"path\":\"a\",\"content\":\"\"}]}",
          ERR_BAD_REQUEST, "'a' is given twice" },
        { "{\"code\":\"1\",\"filename\":\"a\",\"files\":[{\"path\":\"a\",\"content\":\"\"}]}",
          ERR_BAD_REQUEST, "'a' is given twice" },
        { "{\"code\":\"1\",\"files\":[{\"path\":\"a/b/c\",\"content\":\"\"},"
          "{\"path\":\"a.b\",\"content\":\"\"},{\"path\":\"a\",\"content\":\"\"}]}",
          ERR_BAD_REQUEST, "'a' is a file, and 'a/b/c' would lie in it" },
    };
    for_each(fact, facts)
        for (size_t piece = 1; piece < 100; piece += 33) {
            error err = { 0 };
            struct run_request *request;
            int result = read_request(fact->body, strlen(fact->body), piece, &request, &err);
            expect(result < 0 && err.code == fact->code && strstr(err.text, fact->says),
                   "%s in pieces of %zu: %d, code %d, '%s'", fact->body, piece, result, err.code,
                   err.text);
            if (result == 0)
                request_free(request);
        }
}

TEST(a_whole_request_is_understood)
{
    static const char body[] = "{\"code\":\"print('\xc3\xa9')\",\"language\":\"python\","
                               "\"filename\":\"a/b.py\",\"args\":[\"1\",\"\"],"
                               "\"policy\":\"data\",\"template\":null,\"limits\":{\"wall_ms\":1000,"
                               "\"cpus\":0.5},\"env\":{\"A\":\"b\"},"
                               "\"stdin_base64\":\"Zm9v\",\"files\":[{\"path\":\"x.csv\","
                               "\"content\":\"a\\u0000\",\"read_only\":true},"
                               "{\"path\":\"y\",\"content_base64\":\"\"}]}";
    for (size_t piece = 1; piece < sizeof body; piece += 7) {
        error err = { 0 };
        struct run_request *request;
        int result = read_request(body, sizeof body - 1, piece, &request, &err);
        require(result == 0, "refused: %s", err.text);
        expect(strcmp(request->code.text, "print('\xc3\xa9')") == 0, "code");
        expect(strcmp(request->filename, "a/b.py") == 0 && !request->template, "names");
        expect(request->argument_count == 2 && request->arguments[1][0] == '\0', "arguments");
        expect(request->limits.values.wall == 1000 && request->limits.values.cpus == 500, "limits");
        expect(request->stdin_content.size == 3 && request->file_count == 2, "stdin and files");
        expect(request->files[0].content.size == 2 && request->files[0].read_only,
               "a file with a NUL");
        expect(request->files[1].content.size == 0 && !request->files[1].read_only,
               "an empty file");
        request_free(request);
    }
}

TEST(too_many_values_are_refused_early)
{
    size_t size = 300000;
    char *body = malloc(size);
    require(body, "memory");
    memset(body, ',', size);
    memcpy(body, "{\"args\":[", 9);
    for (size_t i = 9; i < size; i += 2)
        body[i] = '1';
    error err = { 0 };
    struct run_request *request;
    expect(read_request(body, size, 4096, &request, &err) < 0 && strstr(err.text, "values"), "'%s'",
           err.text);
    free(body);
}

TEST(paths_stay_beneath_the_workspace)
{
    static const struct {
        const char *path;
        int result;
    } facts[] = {
        { "a", 0 },    { "a/b/c.txt", 0 }, { "\xc3\xa9", 0 }, { ".hidden", 0 },
        { "..a", 0 },  { "", -1 },         { "/a", -1 },      { "a//b", -1 },
        { "a/", -1 },  { ".", -1 },        { "..", -1 },      { "a/../b", -1 },
        { "a/.", -1 }, { "a\nb", -1 },     { "\xff", -1 },    { "a\x7f", -1 },
    };
    for_each(fact, facts) {
        error err;
        expect(request_check_path(fact->path, strlen(fact->path), &err) == fact->result, "'%s'",
               fact->path);
    }
    char deep[400];
    memset(deep, '/', sizeof deep);
    for (size_t i = 0; i < sizeof deep; i += 2)
        deep[i] = 'a';
    error err;
    expect(request_check_path(deep, 129, &err) == 0, "64 folders");
    expect(request_check_path(deep, 131, &err) < 0, "65 folders");
}

TEST(base64_is_read_in_pieces)
{
    struct payload content;
    error err;
    require(payload_from_base64(&content, "Zm9vYmFyYmE=", 12, &err) == 0, "%s", err.text);
    unsigned char bytes[9];
    size_t got = payload_read(&content, 0, bytes, 3);
    got += payload_read(&content, 3, bytes + got, 3);
    got += payload_read(&content, 6, bytes + got, 3);
    expect(got == 8 && memcmp(bytes, "foobarba", 8) == 0, "%zu bytes", got);
}

TESTS(CASE(a_request_is_refused_with_its_cause), CASE(a_whole_request_is_understood),
      CASE(too_many_values_are_refused_early), CASE(paths_stay_beneath_the_workspace),
      CASE(base64_is_read_in_pieces))
