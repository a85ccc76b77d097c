/* connection_document.h - a connection as reported in results, receipts, the log and the live
 * view. */
#pragma once

#include "base/bytes.h"
#include "contract/egress.h"
#include "ledger/facts.h"
#include "policy/address.h"
#include "policy/network_policy.h"

/* Storage for texts of one connection. */
struct connection_texts {
    char rule[NETWORK_RULE_TEXT];
    char address[ADDRESS_TEXT];
};

/* Gives *ret_fact, whose texts point into `record` and *ret_texts. */
void connection_fact(const struct egress_record *record, const struct network_policy *rules,
                     struct connection_texts *ret_texts, struct fact_connection *ret_fact);

/* The same if the text of the rule is known; NULL: no rule allowed it. */
void connection_fact_of(const struct egress_record *record, const char *rule,
                        struct connection_texts *ret_texts, struct fact_connection *ret_fact);

/* Writes the fields of a connection as JSON, into an open object. */
void connection_write(const struct fact_connection *fact, uint32_t took_ms, struct bytes *out);
