/* limit_message.h - what a limit did, for a terminal: where the daemon names the field of a
 * request, people read the option. */
#pragma once

#include "glovebox.h"

void limit_message_print(const glb_limit_reached *limit); /* one line on stderr */
