/* settings_file.h - reads glovebox.yaml. */
#pragma once

#include "policy/settings.h"

/* Sets what the text of a file says. Fails  ERR_BAD_REQUEST  "label:line:column: cause; fix"; then
 * some have been set. Of several failures all but the last are said on stderr. */
int settings_read(struct settings *settings, const char *label, const char *text, size_t length,
                  error *err);
