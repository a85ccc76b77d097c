/* log_verify.h - `glovebox log verify`. */
#pragma once

#include "cli/common/log_files.h"

/* Prints what is proved, what is wrong and what to do. Returns 0, or 1 if the log does not verify.
 * Fails  as log_verify() and log_key_read() */
int log_verify_answer(const struct log_arguments *arguments, int folder, error *err);
