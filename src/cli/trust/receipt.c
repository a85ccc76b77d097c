/* receipt.c - `glovebox receipt`: shows and verifies one receipt, with a public key alone. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "cli/common/log_files.h"
#include "cli/common/log_head.h"
#include "cli/common/receipt_check.h"
#include "cli/daemon_request.h"
#include "cli/options.h"
#include "cli/trust/log.h"
#include "ledger/statement.h"
#include "model/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { CHECKPOINT_WAIT_MS = 3000, CHECKPOINT_LOOK_MS = 10 };

typedef int answer(const struct log_arguments *arguments, struct found_receipt *found, error *err);

static answer show, verify, export_receipt;

static const struct verb {
    const char *name;
    answer *answer;
} verbs[] = { { "show", show }, { "verify", verify }, { "export", export_receipt } };

/* --- show ------------------------------------------------------------------------------------- */

static const struct line {
    const char *title, *path;
} lines[] = {
    /* clang-format off */
    { "receipt",       "predicate.id" },
    { "execution",     "predicate.execution" },
    { "caller",        "predicate.caller" },
    { "claimed",       "predicate.claimed" },
    { "times",         "predicate.times" },
    { "outcome",       "predicate.outcome" },
    { "opened",        "predicate.opened" },
    { "inputs",        "predicate.inputs" },
    { "variables",     "predicate.environment_names" },
    { "outputs",       "predicate.outputs" },
    { "artifacts",     "predicate.artifacts" },
    { "policy",        "predicate.policy" },
    { "template",      "predicate.template" },
    { "approval",      "predicate.approval" },
    { "granted",       "predicate.limits.granted" },
    { "used",          "predicate.limits.used" },
    { "hits",          "predicate.limits.hits" },
    { "evidence",      "predicate.limits.evidence" },
    { "checks",        "predicate.checks" },
    { "gate",          "predicate.gate" },
    { "denials",       "predicate.denials" },
    { "network",       "predicate.network" },
    { "shortened",     "predicate.shortened" },
    { "walls",         "predicate.isolation.walls" },
    { "degraded",      "predicate.isolation.degraded" },
    { "seccomp",       "predicate.isolation.seccomp" },
    { "self-test",     "predicate.isolation.self_test" },
    { "kernel",        "predicate.isolation.kernel" },
    { "leftovers",     "predicate.leftovers" },
    { "log",           "predicate.log" },
    { "event",         "event" },
    { "facts",         "facts" },
    /* clang-format on */
};

/* Prints "ended_ms": 1795353037476, made for programs, as "ended 2026-11-22T…". */
static void print_times(const char *title, json_object *times)
{
    bool is_first = true;
    json_object_object_foreach(times, name, value)
    {
        char text[TIMESTAMP_SIZE];
        (void) printf("%-12s %.*s %s\n", is_first ? title : "", (int) strlen(name) - 3, name,
                      value ? timestamp_write(json_object_get_int64(value), text) : "");
        is_first = false;
    }
}

/* Prints "memory": 67108864 as "memory 64 MiB". */
static void print_limits(const char *title, json_object *limits)
{
    auto_bytes text = { 0 };
    json_object_object_foreach(limits, name, value)
    {
        char amount[64] = "unlimited";
        enum limit_id id = limit_find(name);
        if (id < LIMITS && (json_object_get_int64(value) > 0 || !limit_may_be_off(id)))
            limit_print(id, (uint64_t) json_object_get_int64(value), amount, sizeof amount);
        bytes_print(&text, "%s%s %s", text.size > 0 ? ", " : "", name,
                    id < LIMITS ? amount : json_object_get_string(value));
    }
    (void) printf("%-12s ", title);
    print_harmless(stdout, bytes_text(&text));
    (void) putchar('\n');
}

/* What happened, in one sentence; of an execution that has ended. */
static void print_summary(json_object *receipt)
{
    char began[TIMESTAMP_SIZE];
    auto_bytes text = { 0 };
    const char *key = text_at(receipt, "predicate.caller.key");
    const char *limit = text_at(receipt, "predicate.limits.ended_by");
    int64_t from = number_at(receipt, "predicate.times.started_ms");
    int64_t to = number_at(receipt, "predicate.times.ended_ms");
    if (from <= 0 || to < from)
        return;
    bytes_print(&text, "A %s for %s began at %s and ended after %" PRId64 " ms: %s%s%s.",
                text_at(receipt, "predicate.execution.kind"), *key ? key : "the owner",
                timestamp_write(from, began), to - from,
                text_at(receipt, "predicate.outcome.status"), *limit ? ", " : "", limit);
    print_harmless(stdout, bytes_text(&text));
    (void) puts("\n");
}

static int show(const struct log_arguments *arguments, struct found_receipt *found, error *err)
{
    (void) err;
    if (arguments->json) {
        (void) puts(bytes_text(&found->envelope.payload));
        return 0;
    }
    print_summary(found->payload);
    for_each(line, lines) {
        json_object *value = member_at(found->payload, line->path);
        bool is_list = json_object_is_type(value, json_type_array);
        if (value && strcmp(line->title, "times") == 0)
            print_times(line->title, value);
        else if (value && (strcmp(line->title, "granted") == 0 || strcmp(line->title, "used") == 0))
            print_limits(line->title, value);
        else if (value && !is_list)
            print_member(line->title, value);
        for (size_t i = 0; is_list && i < json_object_array_length(value); i++)
            print_member(i == 0 ? line->title : "", json_object_array_get_idx(value, i));
    }
    (void) printf(
        "\nThis is what it says; whether it was changed since: glovebox receipt verify\n");
    return 0;
}

/* --- verify ----------------------------------------------------------------------------------- */

static void print_signer(const struct receipt_keys *keys, const struct receipt_standing *standing)
{
    const struct key_chain *chain = &keys->chain;
    bool is_other = strcmp(standing->signer->id, keys->key.id) != 0;
    if (keys->is_own)
        (void) puts(KEY_IS_OF_THE_LOG);
    else if (is_other)
        (void) printf("the key that you gave, %s, is an earlier one of this log, which names "
                      "that key in turn.\n",
                      keys->key.label);
    if (!standing->is_retired)
        return;
    uint64_t last = chain->links[key_chain_number(chain, standing->signer->id)].index;
    (void) printf("the key that signed it is an earlier one of this log, retired with record "
                  "%" PRIu64 ".\n",
                  last);
    if (!standing->is_vouched)
        (void) puts(
            "not proved: that it was signed before that. A user who got hold of the key since can "
            "sign it; a bundle\n"
            "        under a checkpoint of the newest key proves it (glovebox receipt export "
            "--bundle), or the log itself (--log).");
}

static void print_proof(const struct found_receipt *found, const struct receipt_keys *keys,
                        const struct receipt_standing *standing)
{
    bool is_lost = strcmp(text_at(found->payload, "predicateType"), PREDICATE_LOST) == 0;
    (void) printf("VERIFIED  %s, signed by %s\n", text_at(found->payload, "predicate.id"),
                  standing->signer->label);
    (void) puts(
        "proved: not a byte of it has changed since the holder of that key signed it;\n"
        "        code, inputs, outputs and artifacts with these hashes are those it speaks of.");
    if (standing->size > 0)
        (void) printf("        it stands in the log, as record %" PRIi64 " of %" PRIu64
                      " under the signed checkpoint.\n",
                      number_at(found->payload, "predicate.log.index"), standing->size);
    else
        (void) puts(
            "not proved: that it stands in the log (glovebox receipt export --bundle adds the "
            "proof).");
    print_signer(keys, standing);
    if (is_lost)
        (void) puts("not proved: what the execution did. Its daemon died before it ended.");
    (void) puts("not proved: when. Its times are those of the signer's clock.");
    (void) puts(
        "not proved: that the files of the template were those of its digest; glovebox template "
        "verify reads them, and events\n"
        "        template.measured in the log say what they were when the service began.");
    (void) puts(
        "not proved: that the signer's host was honest. Its root could have signed anything; what "
        "the code, its inputs and its variables were is known by hash and name only.");
}

static int verify(const struct log_arguments *arguments, struct found_receipt *found, error *err)
{
    static struct receipt_keys keys;
    if (receipt_keys_read(arguments, &keys, err) < 0)
        return -1;
    error cause;
    struct receipt_standing standing;
    if (receipt_check(arguments, found, &keys, &standing, &cause) < 0)
        return receipt_print_unverified(arguments->json, &cause);
    if (!arguments->json) {
        print_proof(found, &keys, &standing);
        return 0;
    }
    auto_json whole = json_object_new_object();
    (void) json_object_object_add(whole, "verified", json_object_new_boolean(true));
    (void) json_object_object_add(whole, "signer", json_object_new_string(standing.signer->label));
    (void) json_object_object_add(whole, "key_from_the_log", json_object_new_boolean(keys.is_own));
    (void) json_object_object_add(whole, "in_log", json_object_new_boolean(standing.size > 0));
    (void) json_object_object_add(
        whole, "retired_key_alone",
        json_object_new_boolean(standing.is_retired && !standing.is_vouched));
    (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
    return 0;
}

/* --- export ----------------------------------------------------------------------------------- */

/* Waits for a checkpoint: one is signed for many records, soon after they were written. */
static int wait_for_checkpoint(int folder, const struct public_key *key, uint64_t index,
                               struct signed_head *ret, error *err)
{
    deadline end = deadline_in(CHECKPOINT_WAIT_MS);
    while (log_checkpoint_read(folder, key, ret, err) == 0) {
        if (ret->head.size > index)
            return 0;
        if (deadline_left_ms(end) == 0)
            return fail(err, ERR_UNAVAILABLE,
                        "the log's checkpoint is over %" PRIu64
                        " records, and this is record %" PRIu64 "; is gloveboxd running?",
                        ret->head.size, index);
        signed_head_done(ret);
        (void) poll(NULL, 0, CHECKPOINT_LOOK_MS);
    }
    return -1;
}

static int make_bundle(const struct log_arguments *arguments, const struct found_receipt *found,
                       struct bytes *out, error *err)
{
    auto_fd folder = -1;
    if (log_folder_open(arguments, &folder, err) < 0)
        return -1;
    auto_fd tree_file = openat(folder, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_signed_head checkpoint = { 0 };
    struct public_key key;
    struct merkle_proof proof;
    struct signed_place place;
    bool is_own;
    struct merkle_tree tree = { .read = log_hash_read, .context = &tree_file };
    if (tree_file < 0)
        return fail_os(err, "open the log's tree");
    if (!payload_place(&found->envelope.payload, &place))
        return fail(err, ERR_BAD_REQUEST, "it does not say where in the log it stands");
    if (log_key_read(arguments, folder, &key, &is_own, err) < 0 ||
        wait_for_checkpoint(folder, &key, place.index, &checkpoint, err) < 0 ||
        merkle_inclusion(&tree, place.index, checkpoint.head.size, &proof, err) < 0)
        return -1;
    auto_json line = json_object_new_string(checkpoint.text);
    bytes_print(out, "{\"checkpoint\":%s,\"envelope\":",
                json_object_to_json_string_ext(line, JSON_C_TO_STRING_NOSLASHESCAPE));
    bytes_add(out, found->text.data, found->text.size);
    bytes_add_text(out, ",\"inclusion\":[");
    for (size_t i = 0; i < proof.count; i++) {
        char hex[MERKLE_HEX_SIZE + 1];
        (void) sodium_bin2hex(hex, sizeof hex, proof.hashes[i].bytes, MERKLE_HASH_SIZE);
        bytes_print(out, "%s\"%s\"", i == 0 ? "" : ",", hex);
    }
    bytes_print(out, "],\"index\":%" PRIu64 "}", place.index);
    return 0;
}

static int export_receipt(const struct log_arguments *arguments, struct found_receipt *found,
                          error *err)
{
    auto_bytes out = { 0 };
    if (!arguments->bundle)
        bytes_add(&out, found->text.data, found->text.size);
    else if (make_bundle(arguments, found, &out, err) < 0)
        return -1;
    return log_write_out(arguments, out.data, out.size, err);
}

int command_receipt(int argc, char **argv)
{
    error err = { 0 };
    struct log_arguments arguments;
    int outcome = log_arguments_read(&arguments, argc, argv, "receipt", &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (strcmp(verb_meant("receipt", argv[1]), "list") == 0)
        return log_show_receipts(&arguments, &err) < 0 ? complain_of(&err) : 0;
    for_each(verb, verbs) {
        struct found_receipt found;
        if (strcmp(verb->name, argv[1]) != 0)
            continue;
        int result = receipt_find(&arguments, arguments.operands[0], &found, &err);
        if (result == RECEIPT_IS_NONE && verb->answer == verify)
            return receipt_print_unverified(arguments.json, &err);
        if (result != 0)
            break;
        int status = verb->answer(&arguments, &found, &err);
        found_receipt_done(&found);
        return status < 0 ? complain_of(&err) : status;
    }
    return complain_of(&err);
}
