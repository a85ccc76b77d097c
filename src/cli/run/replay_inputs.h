/* replay_inputs.h - are code and inputs those whose hashes stand in the receipt? */
#pragma once

#include "base/error.h"
#include "cli/run/run_arguments.h"

#include <json.h>

/* `payload` is that of the receipt, with its commitments opened.
 * Fails  ERR_BAD_REQUEST  one is missing, too many, or another: which. */
int replay_check_inputs(json_object *payload, struct run_arguments *arguments, error *err);
