/* log.h - what `glovebox receipt` takes of `glovebox log`. */
#pragma once

#include "cli/common/log_files.h"

/* Prints the last receipts as `log tail` does, without the events between them. */
int log_show_receipts(const struct log_arguments *arguments, error *err);
