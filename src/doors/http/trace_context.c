/* trace_context.c - the headers traceparent and tracestate: https://www.w3.org/TR/trace-context/ An
 * invalid one is ignored. */
#include "base/text.h"
#include "doors/http/http_internal.h"
#include "model/client_claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void read_trace_context(struct exchange *exchange)
{
    const char *parent = exchange_header(exchange, "traceparent");
    const char *state = exchange_header(exchange, "tracestate");
    if (!traceparent_is_valid(parent))
        return;
    exchange->claim = calloc(1, sizeof *exchange->claim);
    if (!exchange->claim)
        return;
    (void) snprintf(exchange->claim->traceparent, sizeof exchange->claim->traceparent, "%s",
                    parent);
    if (state && strlen(state) < sizeof exchange->claim->tracestate &&
        text_find_unclean(state, strlen(state)) == strlen(state))
        (void) snprintf(exchange->claim->tracestate, sizeof exchange->claim->tracestate, "%s",
                        state);
    exchange->caller.claim = exchange->claim;
}
