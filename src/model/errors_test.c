/* errors_test.c - each code has a row, and the rows are plausible. */
#include "model/errors.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(every_code_has_a_row)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        if (code == ERR_INTERNAL + 1)
            continue; /* the library's own */
        const struct error_row *row = error_row_of(code);
        require(row->name && row->json_code && row->text, "code %d has no row", code);
        expect(row->http_status >= 400 && row->http_status < 600, "%s has status %d", row->name,
               row->http_status);
        expect(row->exit_status == (code == ERR_NO_PROGRAM ? 127 : 125) || row->exit_status == 126,
               "%s has exit status %d", row->name, row->exit_status);
        for (int other = ERR_NONE + 1; other < code; other++)
            expect(strcmp(error_row_of(other)->json_code, row->json_code) != 0, "%s is there twice",
                   row->json_code);
    }
}

TEST(codes_mean_what_clients_rely_on)
{
    static const struct {
        int code;
        const char *json_code;
        int http_status, exit_status;
        bool retryable;
        const char *fault;
    } facts[] = {
        { ERR_BAD_REQUEST, "bad_request", 400, 125, false, "caller" },
        { ERR_LIMIT, "limit", 422, 126, false, "caller" },
        { ERR_POLICY, "policy", 403, 126, false, "policy" },
        { ERR_BUSY, "busy", 429, 125, true, "glovebox" },
        { ERR_QUOTA, "quota", 429, 125, true, "caller" },
        { ERR_NO_PROGRAM, "no_program", 400, 127, false, "caller" },
        { ERR_NOT_EXECUTABLE, "not_executable", 400, 126, false, "caller" },
        { ERR_SYSTEM, "system", 500, 125, true, "glovebox" },
        { ERR_UNAVAILABLE, "unavailable", 503, 125, false, "glovebox" },
        { ERR_FORBIDDEN, "forbidden", 403, 126, false, "caller" },
        { ERR_NONE, "internal", 500, 125, false, "glovebox" }, /* no failure */
        { -1, "internal", 500, 125, false, "glovebox" },
        { ERR_COUNT, "internal", 500, 125, false, "glovebox" },
    };
    for_each(fact, facts) {
        const struct error_row *row = error_row_of(fact->code);
        expect(strcmp(row->json_code, fact->json_code) == 0 &&
                   row->http_status == fact->http_status && row->exit_status == fact->exit_status &&
                   row->retryable == fact->retryable,
               "code %d is %s, %d, %d", fact->code, row->json_code, row->http_status,
               row->exit_status);
        expect(strcmp(error_fault(fact->code), fact->fault) == 0, "code %d is the fault of %s",
               fact->code, error_fault(fact->code));
    }
}

TESTS(CASE(every_code_has_a_row), CASE(codes_mean_what_clients_rely_on))
