/* log.h - part of `glovebox log` that `glovebox receipt` uses. */
#pragma once

#include "cli/common/log_files.h"

/* Prints the last receipts as `log tail` does, without other events. */
int log_show_receipts(const struct log_arguments *arguments, error *err);
