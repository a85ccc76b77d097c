/* approval_card.h - what an approver is shown before a decision, and what that decision is bound
 * to. */
#pragma once

#include "base/bytes.h"
#include "engine/run/run.h"

/* Adds the card as a JSON object: why approval is needed (bits of policy_asks), all of the code,
 * what goes in, what is asked for, what can leave. Fails  ERR_POLICY  the code is too large to be
 * read by a person. */
int approval_card_write(const struct run *run, const struct run_request *request, uint32_t reasons,
                        struct bytes *out, error *err);

/* Digest of everything that the request says, whatever it may say, and of where it is said: policy,
 * template, session, context. Its key `approval` alone is left out. */
int approval_bind(const struct run *run, const struct run_request *request,
                  unsigned char ret_binding[32], error *err);
