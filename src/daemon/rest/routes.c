/* routes.c - everything that the native door serves, on one screen. */
#include "base/table.h"
#include "daemon/rest/rest.h"

const struct route routes[] = {
    /* clang-format off */
    { "POST",   "/v1/runs",              BODY_JSON, post_run,       "Runs code or a command and answers with the result; "
                                                                    "as a stream of events with Accept: text/event-stream or ?stream=1" },
    { "GET",    "/v1/runs/{id}",         BODY_NONE, get_run,        "The result of a run, or where it stands" },
    { "DELETE", "/v1/runs/{id}",         BODY_NONE, delete_run,     "Cancels a run and answers with its result" },
    { "GET",    "/v1/runs/{id}/events",  BODY_NONE, get_run_events, "The events of a run from its beginning" },
    { "GET",    "/v1/artifacts/{sha256}", BODY_NONE, get_artifact,  "The bytes of a file that a run made" },
    { "POST",   "/v1/sessions",          BODY_JSON, post_session,   "Begins a session: a sandbox that is kept between runs" },
    { "GET",    "/v1/sessions",          BODY_NONE, get_sessions,   "Sessions, the newest first; ?metadata= and ?state= choose, ?limit= and ?after= page" },
    { "GET",    "/v1/sessions/{id}",     BODY_NONE, get_session,    "A session, or its tombstone: when and why it ended, and what was kept" },
    { "PATCH",  "/v1/sessions/{id}",     BODY_JSON, patch_session,  "Touches a session; changes its deadlines and metadata" },
    { "DELETE", "/v1/sessions/{id}",     BODY_NONE, delete_session, "Ends a session and everything in it" },
    { "POST",   "/v1/sessions/{id}/contexts", BODY_JSON, post_context, "Makes a context: an interpreter with a state of its own" },
    { "GET",    "/v1/sessions/{id}/contexts", BODY_NONE, get_contexts, "The contexts of a session" },
    { "DELETE", "/v1/sessions/{id}/contexts/{context}", BODY_NONE, delete_context, "Ends a context; its session goes on" },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/run", BODY_JSON, post_cell, "Runs a cell and answers with its result, or with events, as /v1/runs" },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/interrupt", BODY_NONE, post_interrupt, "Interrupts the cell that runs" },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/restart", BODY_NONE, post_restart, "Gives the context a fresh interpreter" },
    { "GET",    "/v1/policies",          BODY_NONE, get_policies,   "What runs may do" },
    { "GET",    "/v1/templates",         BODY_NONE, get_templates,  "What runs stand on" },
    { "GET",    "/v1/limits",            BODY_NONE, get_limits,     "Every limit with its bounds" },
    { "GET",    "/healthz",              BODY_NONE, get_health,     "Whether runs can be started" },
    /* clang-format on */
};

const size_t route_count = COUNT_OF(routes);
