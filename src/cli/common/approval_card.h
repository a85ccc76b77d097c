/* approval_card.h - shows an approval to the person who decides.
 *
 * The code may be hostile: every character that would change what a terminal shows, or is
 * invisible, is written as <U+202E>. Lines with findings of the pre-check are marked. */
#pragma once

#include <json-c/json.h>
#include <stdio.h>

void card_print(FILE *out, json_object *approval);

/* Writes a text from another user in one line. */
void card_print_text(FILE *out, const char *text);
