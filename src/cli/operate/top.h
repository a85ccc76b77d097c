/* top.h - prints the page of `glovebox top` from the answer of GET /v1/status and its sessions. */
#pragma once

#include <json.h>
#include <sys/ioctl.h>

/* Prints the page, cut to the size of the window; NULL: all of it. now.live holds the sessions, if
 * the daemon gave them. `before` is the answer of `seconds` ago, or NULL; rates are computed from
 * both. */
void top_print(json_object *now, json_object *before, double seconds, const struct winsize *window);
