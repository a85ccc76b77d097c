/* approval_card.h - shows an approval to the person who decides.
 *
 * The code is a stranger's: every character that would change what a terminal shows, or show
 * nothing itself, is written out as <U+202E>; lines that the pre-check has found something in are
 * marked. */
#pragma once

#include <json-c/json.h>
#include <stdio.h>

void card_print(FILE *out, json_object *approval);

/* Writes a text from another user in one line. */
void card_print_text(FILE *out, const char *text);
