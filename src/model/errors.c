/* errors.c - errors.def as a table, indexed by code. */
#include "model/errors.h"

enum { FINAL = false, RETRY = true };

static const struct error_row rows[ERR_COUNT] = {
#define ERROR(name, json_code, http, exit, again, text) \
    [ERR_##name] = { #name, json_code, http, exit, again, text },
#include "model/errors.def"
};

const struct error_row *error_row_of(int code)
{
    if (code <= ERR_NONE || code >= ERR_COUNT || !rows[code].name)
        return &rows[ERR_INTERNAL];
    return &rows[code];
}

const char *error_fault(int code)
{
    if (code == ERR_POLICY)
        return "policy";
    return error_row_of(code)->http_status < 500 && code != ERR_BUSY ? "caller" : "glovebox";
}
