/* entry_scanner.h - whether what was typed at a prompt is a whole entry, or goes on in the next
 * line. */
#pragma once

#include <stdbool.h>

/* Out of the text alone: nothing runs for the answer, so nothing can run twice. What is open
 * (brackets, quotes, blocks, a here-document) or ends in an operator goes on. Where that is
 * mistaken, two empty lines end it, but for python, whose texts may hold them. An entry of a
 * language that is not python, bash, javascript or r is one line. Each line of `entry` has its end.
 */
bool entry_is_whole(const char *language, const char *entry);
