/* package_card.h - what a person sees of a package before it is approved: what it is, what comes
 * with it, and what of it will run, and where. */
#pragma once

#include <json-c/json.h>

void libs_card_print(json_object *request);
