/* top.h - what `glovebox top` shows, out of the answer of GET /v1/status, and of its sessions. */
#pragma once

#include <json.h>
#include <sys/ioctl.h>

/* Prints the whole page, as much of it as the window has room for; NULL: all. now.live has
 * sessions, if they were told. `before` is the answer of `seconds` ago, NULL for none: rates come
 * from both. */
void top_print(json_object *now, json_object *before, double seconds, const struct winsize *window);
