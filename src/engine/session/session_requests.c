/* session_requests.c - what a client asks of a session, a context or a cell: a door reads it. */
#include "engine/session/session_registry.h"

void session_request_done(struct session_request *request)
{
    request_free(request->place);
    *request = (struct session_request){ 0 };
}

void context_request_done(struct context_request *request)
{
    request_free(request->given);
    *request = (struct context_request){ 0 };
}
