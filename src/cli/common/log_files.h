/* log_files.h - shared by `glovebox log`, `receipt` and `replay`: finds the log and its key, and
 * prints records. */
#pragma once

#include "base/bytes.h"
#include "ledger/envelope.h"
#include "ledger/key.h"
#include "json/member.h"

#include <stdbool.h>

enum { OPERANDS_MAX = 16, EXIT_DOES_NOT_VERIFY = 1 };

#define KEY_IS_OF_THE_LOG                                                               \
    "not proved: who signed. The key was taken from the log itself; give the one that " \
    "you have kept: --public-key FILE."

/* Options and operands of a verb below `log` or `receipt`. */
struct log_arguments {
    const char *state, *log, *key, *checkpoint, *witness, *out, *count;
    bool json, pem, signatures, bundle, all;
    int operand_count;
    const char *operands[OPERANDS_MAX];
};

/* Reads flags and operands, in any order, from argv[2] on. Returns as options_read().
 * Fails  ERR_BAD_REQUEST  there is no such verb, or it does not take one of them */
int log_arguments_read(struct log_arguments *arguments, int argc, char **argv, const char *verb,
                       error *err);

/* Writes to --out, or to stdout. */
int log_write_out(const struct log_arguments *arguments, const void *data, size_t size, error *err);

/* The folder of the log: --log, or STATE/daemon/log. */
int log_folder_open(const struct log_arguments *arguments, int *ret_folder, error *err);

/* The key: --key, or key.pub in the folder (-1: no folder). Gives *ret_is_own: true if it came from
 * the log itself, so that it does not prove who wrote the log. */
int log_key_read(const struct log_arguments *arguments, int folder, struct public_key *ret_key,
                 bool *ret_is_own, error *err);

/* A receipt that was found by its id in the log, or in a file (an envelope, maybe with a proof). */
struct found_receipt {
    struct bytes text; /* of the envelope */
    struct envelope envelope;
    json_object *payload;
    json_object *bundle; /* NULL: it came without a proof */
};

/* Returns RECEIPT_IS_NONE, with *err, if it is no receipt or is damaged; -1 if there is none, or it
 * cannot be read. */
enum { RECEIPT_IS_NONE = 1 };
int receipt_find(const struct log_arguments *arguments, const char *name,
                 struct found_receipt *ret_found, error *err);
int receipt_take(const char *text, size_t size, struct found_receipt *ret_found, error *err);
void found_receipt_done(struct found_receipt *found);

/* A member of `object` by its path: "predicate.outcome.status"; NULL if it is missing. */
json_object *member_at(json_object *object, const char *path);
const char *text_at(json_object *object, const char *path); /* "" if it is missing */
int64_t number_at(json_object *object, const char *path);

/* Prints one line: index, time, id, kind. */
void print_record_line(uint64_t index, json_object *payload);
