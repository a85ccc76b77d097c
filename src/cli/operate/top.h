/* top.h - what `glovebox top` shows, out of the answer of GET /v1/status. */
#pragma once

#include <json.h>

/* Prints the whole page, `rows` lines at most; 0: as many as there are. `before` is the answer of
 * `seconds` ago, NULL for none: rates come from both. */
void top_print(json_object *now, json_object *before, double seconds, int rows);
