/* agent_error.h - failures inside a sandbox, as its init reports them, for callers. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

/* What the errno of an AGENT_DONE means to a client. Returns 0 if it says that nothing failed, else
 * -1 with *err. */
int error_of_agent(const struct agent_frame *frame, const unsigned char *payload, error *err);
