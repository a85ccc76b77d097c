/* package_card.h - what a person sees of a package before approving it: its description, what it
 * installs besides, and which of its code will run, and where. */
#pragma once

#include <json-c/json.h>

void libs_card_print(json_object *request);
