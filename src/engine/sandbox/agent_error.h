/* agent_error.h - translates failures that a sandbox's init reports. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

/* Translates the errno of an AGENT_DONE. Returns 0 for no failure, else -1 with *err. */
int error_of_agent(const struct agent_frame *frame, const unsigned char *payload, error *err);
