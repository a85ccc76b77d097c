/* connections.c - see connections.h. */
#include "daemon/connections.h"

#include "daemon/network.h"

#include <string.h>

static const char *unless_empty(const char *text)
{
    return text[0] ? text : NULL;
}

void connection_fact(const struct egress_record *record, const struct network_policy *rules,
                     struct connection_texts *ret_texts, struct fact_connection *ret_fact)
{
    bool is_allowed = record->label < rules->count;
    struct in6_addr connected;
    ret_texts->rule[0] = '\0';
    if (is_allowed)
        network_rule_write(&rules->rules[record->label], ret_texts->rule);
    memcpy(&connected, record->address, sizeof connected);
    address_write(&connected, ret_texts->address);
    *ret_fact = (struct fact_connection){
        .host = record->name,
        .decision = is_allowed ? "allow" : "deny",
        .rule = unless_empty(ret_texts->rule),
        .reason = record->reason != EGRESS_ALLOWED ? network_reason_text(record->reason) : NULL,
        .address = IN6_IS_ADDR_UNSPECIFIED(&connected) ? NULL : ret_texts->address,
        .method = unless_empty(record->method),
        .path = unless_empty(record->path),
        .port = record->port,
        .status = record->status,
        .sent = record->sent,
        .received = record->received,
        .began_ms = (int64_t) record->began_ms,
    };
}
