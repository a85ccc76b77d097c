/* connection_document.h - what is reported of a connection, in results, receipts, the log and the
 * live view. */
#pragma once

#include "base/bytes.h"
#include "contract/egress.h"
#include "ledger/facts.h"
#include "policy/address.h"
#include "policy/network_policy.h"

/* Where the texts of one lie that have no other place. */
struct connection_texts {
    char rule[NETWORK_RULE_TEXT];
    char address[ADDRESS_TEXT];
};

/* Gives *ret_fact, whose texts lie in `record` and in *ret_texts. */
void connection_fact(const struct egress_record *record, const struct network_policy *rules,
                     struct connection_texts *ret_texts, struct fact_connection *ret_fact);

/* The same where the rule is known as it is written; NULL: none allowed it. */
void connection_fact_of(const struct egress_record *record, const char *rule,
                        struct connection_texts *ret_texts, struct fact_connection *ret_fact);

/* The fields of one in JSON, in an object that is open. */
void connection_write(const struct fact_connection *fact, uint32_t took_ms, struct bytes *out);
