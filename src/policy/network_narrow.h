/* network_narrow.h - narrows the network of a policy to what a request asks for. */
#pragma once

#include "policy/network_policy.h"
#include "policy/policy.h"

/* Zero-filled: the request does not ask, and gets the network of the policy. */
struct network_wish {
    bool is_given;
    struct network_policy rules; /* without rules: no network */
};

/* Reads "none", or {allow: [...], bytes, received, connections} as a policy file has it, where
 * endpoints are hosts like others ("github.endpoint"). JSON is read as well (it is YAML).
 * Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int network_wish_read(const char *text, size_t length, struct network_wish *ret_wish, error *err);

/* Gives the narrowed rules. What the request does not say (methods, paths, amounts) is the
 * policy's. Fails  ERR_POLICY  naming what no rule of the policy allows. */
int network_narrow(const struct policy *policy, const struct network_wish *wish,
                   struct network_policy *ret_narrowed, error *err);
