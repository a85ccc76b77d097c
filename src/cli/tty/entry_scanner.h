/* entry_scanner.h - is the text typed at a prompt complete, or does it go on in the next line? */
#pragma once

#include <stdbool.h>

/* Decides by the text alone; no code runs. An entry goes on while brackets, quotes, blocks or a
 * here-document are open, or after an operator. Where that guess is wrong, two empty lines end the
 * entry, but not for python, whose strings may contain them. For languages other than python, bash,
 * javascript and r an entry is one line. Each line of `entry` ends with a newline. */
bool entry_is_whole(const char *language, const char *entry);
