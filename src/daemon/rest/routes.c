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
    { "GET",    "/v1/policies",          BODY_NONE, get_policies,   "What runs may do" },
    { "GET",    "/v1/templates",         BODY_NONE, get_templates,  "What runs stand on" },
    { "GET",    "/v1/limits",            BODY_NONE, get_limits,     "Every limit with its bounds" },
    { "GET",    "/healthz",              BODY_NONE, get_health,     "Whether runs can be started" },
    /* clang-format on */
};

const size_t route_count = COUNT_OF(routes);
