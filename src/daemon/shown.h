/* shown.h - what a cell showed and how it failed, as the result contract says it.
 *
 * The program's own kernel sends these objects, so any program can send them too: fields are known
 * ones of the right type or left out, names of MIME types look like such, and everything is
 * written anew. The bytes and the depth were bounded when the object was read. */
#pragma once

#include "daemon/bytes.h"

#include <json.h>
#include <stdbool.h>

/* Adds {"main","data","chart"} and, where the program gave them, "metadata", "id" and "update" to
 * `out`. Returns false, and adds nothing, if `given` has no data to show. */
bool shown_write(struct bytes *out, struct json_object *given, bool is_main);

/* Adds {"name","value","traceback","frames"} and, where there are some, "causes" and "exceptions".
 * Returns false, and adds nothing, if `given` names no exception. */
bool shown_write_failure(struct bytes *out, struct json_object *given);
