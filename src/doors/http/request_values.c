/* request_values.c - headers and query of a request for handlers, and its undecoded target. */
#include "base/hex.h"
#include "doors/http/http_internal.h"
#include "doors/http/request_guard.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

const char *exchange_query(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct visit {
    visit_value *each;
    void *context;
};

static enum MHD_Result visit_one(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    (void) kind;
    const struct visit *visit = context;
    visit->each(visit->context, name, value);
    return MHD_YES;
}

void exchange_each_header(const struct exchange *exchange, visit_value *each, void *context)
{
    struct visit visit = { each, context };
    (void) MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, visit_one, &visit);
}

void exchange_each_query(const struct exchange *exchange, visit_value *each, void *context)
{
    struct visit visit = { each, context };
    (void) MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, visit_one,
                                     &visit);
}

uint64_t exchange_query_count(const struct exchange *exchange, const char *name, uint64_t otherwise)
{
    const char *text = exchange_query(exchange, name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Decodes as RFC 3986 says, except %00, which would end the text. */
size_t unescape_url(void *context, struct MHD_Connection *mhd, char *text)
{
    (void) context;
    (void) mhd;
    char *to = text;
    for (const char *from = text; *from;) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low < 0 || (high == 0 && low == 0)) {
            *to++ = *from++;
            continue;
        }
        *to++ = (char) (high * 16 + low);
        from += 3;
    }
    *to = '\0';
    return (size_t) (to - text);
}

/* The first call for a request, with its target before percent-decoding. */
void *look_at_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    (void) context;
    if (!connection)
        return NULL;
    connection->is_odd = !guard_target(target);
    connection->target = target;
    return NULL; /* the exchange is made when the header has come */
}
