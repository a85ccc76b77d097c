/* settings_file.h - reads glovebox.yaml. */
#pragma once

#include "policy/settings.h"

/* Reads settings from the text of a file. Fails  ERR_BAD_REQUEST  "label:line:column: cause; fix",
 * with some of them set. Of several failures, all but the last are printed on stderr. */
int settings_read(struct settings *settings, const char *label, const char *text, size_t length,
                  error *err);
