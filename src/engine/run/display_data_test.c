/* display_data_test.c - which fields of a program's results are kept, and how they are written. */
#include "engine/run/display_data.h"

#include "base/table.h"
#include "base/test.h"

#include <stdio.h>
#include <string.h>

struct fact {
    const char *given, *written; /* NULL: refused as a whole */
};

static void check(const struct fact *fact, bool is_failure)
{
    size_t size = strlen(fact->given);
    for (size_t piece = 1; piece <= size; piece += piece < 8 ? 1 : size) { /* cut anywhere */
        struct display_data display_data;
        auto_bytes out = { 0 };
        display_data_begin(&display_data, is_failure);
        for (size_t at = 0; at < size; at += piece)
            display_data_take(&display_data, fact->given + at,
                              size - at < piece ? size - at : piece);
        bool is_written = is_failure ? display_data_write_failure(&display_data, &out)
                                     : display_data_write(&display_data, &out, true);
        expect(is_written == (fact->written != NULL), "%s", fact->given);
        if (is_written && fact->written)
            expect(strcmp(bytes_text(&out), fact->written) == 0, "%s: %s", fact->given,
                   bytes_text(&out));
        expect(is_written || out.size == 0, "%s: %zu bytes", fact->given, out.size);
        display_data_done(&display_data);
    }
}

TEST(a_result_is_written_anew)
{
    static const struct fact facts[] = {
        { "{\"data\":{\"text/plain\":\"1\"}}",
          "{\"main\":true,\"data\":{\"text/plain\":\"1\"},\"chart\":null}" },
        { "{\"data\":{\"a/b\":[1,{\"c\":\"\\t</d>\"}]},\"chart\":{\"type\":\"line\"}}",
          "{\"main\":true,\"data\":{\"a/b\":[1,{\"c\":\"\\t</"
          "d>\"}]},\"chart\":{\"type\":\"line\"}}" },
        { "{\"data\":{},\"metadata\":{\"a/b\":{\"width\":5}},\"id\":\"x\",\"update\":true}",
          "{\"main\":true,\"data\":{},\"chart\":null,\"metadata\":{\"a/b\":{\"width\":5}},"
          "\"id\":\"x\",\"update\":true}" },
        { "{\"data\":{},\"id\":\"x\"}",
          "{\"main\":true,\"data\":{},\"chart\":null,\"id\":\"x\",\"update\":false}" },
        /* A wrong type, an unknown field, an invalid MIME type: left out. */
        { "{\"data\":{\"text\":1,\"/\":1,\"a/\":1,\"a/b/c\":1,\"a b/c\":1,\"a/b\\u0001\":1},"
          "\"chart\":5,\"metadata\":[],\"id\":7,\"update\":true,\"main\":false,\"else\":1}",
          "{\"main\":true,\"data\":{},\"chart\":null}" },
        { "{\"data\":[]}", NULL },
        { "{\"text/plain\":\"1\"}", NULL },
        { "{}", NULL },
        { "{\"data\":{\"a/b\":NaN}}", NULL },
        { "{\"data\":{\"a/b\":Infinity}}", NULL },
        { "{\"data\":{\"a/b\":\"", NULL },
        { "[]", NULL },
        { "{\"data\":{}}{}", NULL },
        /* Blanks are removed; of duplicate members the first is kept, at each depth. */
        { " { \"data\" : { \"a/b\" : [ 1 , { \"x\" : 1 , \"x\" : 2 } ] , \"a/b\" : 2 } , \"data\" "
          ": { } } ",
          "{\"main\":true,\"data\":{\"a/b\":[1,{\"x\":1}]},\"chart\":null}" },
    };
    for_each(fact, facts)
        check(fact, false);
}

TEST(an_id_is_bounded)
{
    char given[400];
    (void) snprintf(given, sizeof given, "{\"data\":{},\"id\":\"%0300d\"}", 7);
    struct fact fact = { given, "{\"main\":true,\"data\":{},\"chart\":null}" };
    check(&fact, false);
}

TEST(a_failure_is_written_anew)
{
    static const struct fact facts[] = {
        { "{\"name\":\"E\",\"value\":\"v\",\"traceback\":\"t\",\"frames\":[{\"line\":1}]}",
          "{\"name\":\"E\",\"value\":\"v\",\"traceback\":\"t\",\"frames\":[{\"line\":1}]}" },
        { "{\"name\":\"E\"}", "{\"name\":\"E\",\"value\":\"\",\"traceback\":\"\",\"frames\":[]}" },
        { "{\"name\":\"E\",\"value\":1,\"frames\":{},\"causes\":[{}],\"exceptions\":7,\"z\":1}",
          "{\"name\":\"E\",\"value\":\"\",\"traceback\":\"\",\"frames\":[],\"causes\":[{}]}" },
        { "{\"name\":5}", NULL },
        { "{}", NULL },
    };
    for_each(fact, facts)
        check(fact, true);
}

TESTS(CASE(a_result_is_written_anew), CASE(an_id_is_bounded), CASE(a_failure_is_written_anew))
