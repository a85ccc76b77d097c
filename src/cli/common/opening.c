/* opening.c - see opening.h. The hash of an item is computed, not read from the opening. */
#include "cli/common/opening.h"

#include "base/cleanup.h"
#include "cli/common/inputs.h"
#include "cli/common/log_files.h"
#include "cli/daemon_request.h"
#include "ledger/opening.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int opening_ask(glb_client *client, const char *receipt, json_object **ret_opening, error *err)
{
    char path[96];
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
    const char *key = getenv("GLOVEBOX_API_KEY");
    (void) snprintf(path, sizeof path, "/v1/receipts/%.40s/opening", receipt);
    const struct ask ask = { "GET", path, NULL, key && *key ? key : NULL };
    return ask_daemon(client, &ask, ret_opening, err) < 0
               ? under(err, "what opens receipt %s (--opening FILE, if you have kept it)", receipt)
               : 0;
}

int opening_read_file(const char *path, json_object **ret_opening, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    if (read_input_file(path, &text, &size, err) < 0)
        return -1;
    *ret_opening = json_tokener_parse(text);
    return *ret_opening ? 0 : fail(err, ERR_BAD_REQUEST, "'%s' is no JSON", path);
}

static json_object *find_row(json_object *predicate, const char *group, const char *name)
{
    json_object *rows = member_at(predicate, group);
    if (json_object_is_type(rows, json_type_object))
        return member_at(rows, name);
    for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        if (strcmp(text_at(row, "name"), name) == 0)
            return row;
    }
    return NULL;
}

static int open_row(json_object *item, json_object *row, error *err)
{
    struct opening_key key;
    char sha256[OPENING_HEX_SIZE];
    size_t size = 0;
    const char *hex = text_at(item, "key");
    if (sodium_hex2bin(key.bytes, sizeof key.bytes, hex, strlen(hex), NULL, &size, NULL) != 0 ||
        size != sizeof key.bytes)
        return fail(err, ERR_BAD_REQUEST, "an opening has keys of %d bytes in hex",
                    OPENING_KEY_SIZE);
    opening_mask(&key, text_at(row, "commitment"), sha256);
    if (*text_at(item, "sha256") && strcmp(text_at(item, "sha256"), sha256) != 0)
        return fail(err, ERR_POLICY, "the opening of %s/%s does not fit what the receipt says",
                    text_at(item, "group"), text_at(item, "name"));
    json_object_object_del(row, "commitment");
    (void) json_object_object_add(row, "sha256", json_object_new_string(sha256));
    return 0;
}

int opening_apply(json_object *opening, json_object *payload, error *err)
{
    json_object *items = member_at(opening, "items"), *predicate = member_at(payload, "predicate");
    if (strcmp(text_at(opening, "receipt"), text_at(predicate, "id")) != 0 ||
        !json_object_is_type(items, json_type_array))
        return fail(err, ERR_BAD_REQUEST, "this opens receipt '%.40s', not %s",
                    text_at(opening, "receipt"), text_at(predicate, "id"));
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        json_object *item = json_object_array_get_idx(items, i);
        json_object *row = find_row(predicate, text_at(item, "group"), text_at(item, "name"));
        if (row && *text_at(row, "commitment") && open_row(item, row, err) < 0)
            return -1;
    }
    return 0;
}
