/* routes.c - the tables of the native door: one for each area, in the file of its handlers. */
#include "doors/rest/rest.h"

#include "doors/rest/session_ready.h"

#include <stddef.h>

const struct route_table *const route_tables[] = {
    &run_routes,
    &artifact_routes,
    &session_routes,
    &session_checkpoint_routes,
    &context_routes,
    &file_routes,
    &process_routes,
    &port_routes,
    &list_routes,
    &metrics_routes,
    &receipt_routes,
    &approval_routes,
    &status_routes,
    &network_routes,
    NULL,
};

const struct door rest_door = { route_tables, session_is_early };
