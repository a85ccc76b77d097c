/* opening.h - what opens the commitments of a receipt: the hashes behind them, told by a daemon to
 * those who may know them, or kept in a file since. */
#pragma once

#include "client/client.h"

#include <json-c/json.h>

/* What the daemon says to this caller. Gives *ret_opening.
 * Fails  ERR_FORBIDDEN  it may not see the content; ERR_NOT_FOUND */
int opening_ask(glb_client *client, const char *receipt, json_object **ret_opening, error *err);

int opening_read_file(const char *path, json_object **ret_opening, error *err);

/* Gives each item of the payload that it opens its hash ("sha256") in place of the commitment.
 * Fails  ERR_BAD_REQUEST  it opens another receipt; ERR_POLICY  a key and a hash do not fit the
 * commitment */
int opening_apply(json_object *opening, json_object *payload, error *err);
