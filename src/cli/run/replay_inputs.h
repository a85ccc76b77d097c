/* replay_inputs.h - do code and inputs match the hashes in the receipt? */
#pragma once

#include "base/error.h"
#include "cli/run/run_arguments.h"

#include <json.h>

/* `payload` is that of the receipt, with its commitments opened.
 * Fails  ERR_BAD_REQUEST  naming the input that is missing, not in the receipt, or different */
int replay_check_inputs(json_object *payload, struct run_arguments *arguments, error *err);
