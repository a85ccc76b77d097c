/* network_narrow.h - what a request asks of the network: never more than its policy allows. */
#pragma once

#include "policy/network_policy.h"
#include "policy/policy.h"

/* Zero-filled it asks for nothing: the policy's own. */
struct network_wish {
    bool is_given;
    struct network_policy rules; /* no rule: none of the network */
};

/* Reads "none", or {allow: [...], bytes, received, connections} as a policy file has it, where
 * endpoints are hosts like others ("github.endpoint"). JSON is read as well (it is YAML).
 * Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int network_wish_read(const char *text, size_t length, struct network_wish *ret_wish, error *err);

/* What is left of the policy's rules. What the wish leaves out (methods, paths, amounts) is the
 * policy's. Fails  ERR_POLICY  naming what was asked for and no rule allows. */
int network_narrow(const struct policy *policy, const struct network_wish *wish,
                   struct network_policy *ret_narrowed, error *err);
