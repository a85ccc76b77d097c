/* net.h - prints the daemon's answers for `glovebox net`. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

/* Prints an answer of GET /v1/network/rules by policy, then the number of rules never used. */
void net_print_rules(json_object *answer, bool only_unused);

/* Prints an event of GET /v1/network/connections as one line. */
void net_print_event(json_object *event);
void net_print_missed(json_object *event);
