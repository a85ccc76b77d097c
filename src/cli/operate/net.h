/* net.h - what `glovebox net` shows, out of the daemon's answers. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

/* The answer of GET /v1/network/rules, policy by policy; then how many rules were never used. */
void net_print_rules(json_object *answer, bool only_unused);

/* An event of GET /v1/network/connections, one line. */
void net_print_event(json_object *event);
void net_print_missed(json_object *event);
