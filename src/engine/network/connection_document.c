/* connection_document.c - see connection_document.h. */
#include "engine/network/connection_document.h"

#include "engine/network/egress_client.h"
#include "json/writer.h"

#include <string.h>

static const char *unless_empty(const char *text)
{
    return text[0] ? text : NULL;
}

void connection_fact_of(const struct egress_record *record, const char *rule,
                        struct connection_texts *ret_texts, struct fact_connection *ret_fact)
{
    struct in6_addr connected;
    memcpy(&connected, record->address, sizeof connected);
    address_write(&connected, ret_texts->address);
    *ret_fact = (struct fact_connection){
        .host = record->name,
        .decision = rule && !network_is_refused(record) ? "allow" : "deny",
        .rule = rule,
        .reason = record->reason != EGRESS_ALLOWED ? network_reason_text(record->reason) : NULL,
        .address = IN6_IS_ADDR_UNSPECIFIED(&connected) ? NULL : ret_texts->address,
        .method = unless_empty(record->method),
        .path = unless_empty(record->path),
        .intercepted = record->is_intercepted,
        .port = record->port,
        .status = record->status,
        .sent = record->sent,
        .received = record->received,
        .began_ms = (int64_t) record->began_ms,
    };
}

void connection_fact(const struct egress_record *record, const struct network_policy *rules,
                     struct connection_texts *ret_texts, struct fact_connection *ret_fact)
{
    bool is_allowed = record->label < rules->count;
    if (is_allowed)
        network_rule_write(&rules->rules[record->label], ret_texts->rule);
    connection_fact_of(record, is_allowed ? ret_texts->rule : NULL, ret_texts, ret_fact);
}

void connection_write(const struct fact_connection *fact, uint32_t took_ms, struct bytes *out)
{
    json_string_field(out, "host", fact->host);
    json_number_field(out, "port", (int64_t) fact->port);
    json_string_field(out, "decision", fact->decision);
    json_string_field(out, "rule", fact->rule);
    json_string_field(out, "reason", fact->reason);
    json_string_field(out, "address", fact->address);
    json_flag_field(out, "intercepted", fact->intercepted);
    json_string_field(out, "method", fact->method);
    json_string_field(out, "path", fact->path);
    json_number_field(out, "status", (int64_t) fact->status);
    json_number_field(out, "sent", (int64_t) fact->sent);
    json_number_field(out, "received", (int64_t) fact->received);
    json_number_field(out, "took_ms", took_ms);
}
