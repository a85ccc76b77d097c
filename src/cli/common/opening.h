/* opening.h - opens the commitments of a receipt to hashes, with keys from the daemon, which gives
 * them to callers who may see the content, or from a file. */
#pragma once

#include "client/client.h"

#include <json-c/json.h>

/* Asks the daemon. Gives *ret_opening.
 * Fails  ERR_FORBIDDEN  it may not see the content; ERR_NOT_FOUND */
int opening_ask(glb_client *client, const char *receipt, json_object **ret_opening, error *err);

int opening_read_file(const char *path, json_object **ret_opening, error *err);

/* Replaces the commitment of each item of the payload that it opens by its hash ("sha256").
 * Fails  ERR_BAD_REQUEST  it is for another receipt; ERR_POLICY  key and hash do not match the
 * commitment */
int opening_apply(json_object *opening, json_object *payload, error *err);
