/* approval_card.h - what is shown to an approver, and the digest that binds a decision to the
 * request. */
#pragma once

#include "base/bytes.h"
#include "engine/run/run.h"

/* Adds the card as a JSON object: why approval is needed (bits of policy_asks), the whole code, the
 * inputs, what is requested, and what could leave the sandbox. Fails  ERR_POLICY  the code is too
 * long for a person to read. */
int approval_card_write(const struct run *run, const struct run_request *request, uint32_t reasons,
                        struct bytes *out, error *err);

/* Digest of the whole request except its key `approval`, and of its policy, template, session and
 * context. */
int approval_bind(const struct run *run, const struct run_request *request,
                  unsigned char ret_binding[32], error *err);
