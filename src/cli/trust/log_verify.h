/* log_verify.h - `glovebox log verify`. */
#pragma once

#include "cli/common/log_files.h"

/* Says on stdout what is proved, what is wrong and what to do. Returns 0, or 1: it does not verify.
 * Fails  as log_verify() and log_key_read() */
int log_verify_answer(const struct log_arguments *arguments, int folder, error *err);
