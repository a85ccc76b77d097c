/* replay_inputs.c - do code and inputs match the hashes in the receipt? */
#include "cli/run/replay_inputs.h"

#include "base/cleanup.h"
#include "cli/common/inputs.h"
#include "cli/common/receipt_check.h"
#include "ledger/statement.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inputs {
    json_object *listed; /* array of {name, sha256} */
    unsigned matched;    /* entries that were given again */
};

static void hash_bytes(const void *data, size_t size, char ret_hex[SHA256_TEXT_SIZE])
{
    unsigned char hash[32];
    (void) crypto_hash_sha256(hash, data, size);
    (void) sodium_bin2hex(ret_hex, SHA256_TEXT_SIZE, hash, sizeof hash);
}

static const char *input_hash(const struct inputs *inputs, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(inputs->listed); i++) {
        json_object *input = json_object_array_get_idx(inputs->listed, i);
        if (strcmp(text_at(input, "name"), name) == 0)
            return text_at(input, "sha256");
    }
    return NULL;
}

static int expect_input(struct inputs *inputs, const char *name, const void *data, size_t size,
                        error *err)
{
    char hex[SHA256_TEXT_SIZE];
    const char *wanted = input_hash(inputs, name);
    hash_bytes(data, size, hex);
    if (!wanted)
        return fail(err, ERR_BAD_REQUEST, "the receipt knows of no '%s'; leave it away", name);
    if (strcmp(wanted, hex) != 0 && strcmp(name, "filename") == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "the code was a file of another name than '%.*s'; give it the name that it had",
                    (int) size, (const char *) data);
    if (strcmp(wanted, hex) != 0)
        return fail(err, ERR_BAD_REQUEST, "this is not the '%s' of the receipt: %.16s…, not %.16s…",
                    name, hex, wanted);
    inputs->matched++;
    return 0;
}

static int expect_words(struct inputs *inputs, const char *name, const char *const *words,
                        error *err)
{
    auto_bytes text = { 0 };
    for (; words && *words; words++)
        bytes_add(&text, *words, strlen(*words) + 1);
    return text.size == 0 ? 0 : expect_input(inputs, name, text.data, text.size, err);
}

int replay_check_inputs(json_object *payload, struct run_arguments *arguments, error *err)
{
    struct inputs inputs = { .listed = member_at(payload, "predicate.inputs") };
    if (!inputs.listed || !json_object_is_type(inputs.listed, json_type_array))
        return fail(err, ERR_BAD_REQUEST, "the receipt does not list its inputs");
    if (member_at(payload, "predicate.shortened.inputs"))
        return fail(err, ERR_BAD_REQUEST,
                    "the receipt lists only the first %zu of its inputs (predicate.shortened), so "
                    "the others cannot be compared",
                    json_object_array_length(inputs.listed));
    if (!input_hash(&inputs, "filename")) {
        free(arguments->file_name); /* the first run had a text, not a file of that name */
        arguments->file_name = NULL;
    } else if (arguments->file_name) {
        const char *const names[] = { arguments->file_name, NULL };
        if (expect_words(&inputs, "filename", names, err) < 0)
            return -1;
    }
    if ((arguments->code &&
         expect_input(&inputs, "code", arguments->code, arguments->code_length, err) < 0) ||
        expect_words(&inputs, "command", arguments->command, err) < 0 ||
        expect_words(&inputs, "arguments", arguments->arguments, err) < 0 ||
        (arguments->input &&
         expect_input(&inputs, "stdin", arguments->input, arguments->input_length, err) < 0))
        return -1;
    for (size_t i = 0; i < arguments->file_count; i++) {
        char name[4200];
        (void) snprintf(name, sizeof name, "file/%s", arguments->files[i].path);
        if (expect_input(&inputs, name, arguments->files[i].content, arguments->files[i].length,
                         err) < 0)
            return -1;
    }
    if (arguments->expect && !member_at(payload, "predicate.gate.expectation"))
        return fail(err, ERR_BAD_REQUEST,
                    "the receipt knows of no expectation; leave --expect away");
    if (inputs.matched < json_object_array_length(inputs.listed))
        return fail(err, ERR_BAD_REQUEST,
                    "the receipt has %zu inputs, %u were given; see glovebox receipt show",
                    json_object_array_length(inputs.listed), inputs.matched);
    return 0;
}
