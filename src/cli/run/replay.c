/* replay.c - `glovebox replay`: runs the code of a receipt again with the same inputs, template,
 * policy and limits, and compares the results by hash. A receipt holds hashes only, so the user
 * gives code and inputs again, and their hashes must match. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/common/inputs.h"
#include "cli/common/limit_message.h"
#include "cli/common/log_files.h"
#include "cli/common/opening.h"
#include "cli/common/receipt_check.h"
#include "cli/options.h"
#include "cli/run/replay_inputs.h"
#include "cli/run/run_arguments.h"
#include "ledger/statement.h"
#include "model/limits.h"

#include <glovebox.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { EXIT_DIFFERENT = 1, WORDS_MAX = 1024, TEXTS_MAX = 64 };

struct replay {
    const char *code, *expect, *state, *log, *key, *opening, *daemon;
    bool key_is_own; /* the key is from the log itself */
    bool json, pass_stdin, private;
    int word_count; /* words of the `run` command line */
    char *words[WORDS_MAX];
    size_t text_count;
    char *texts[TEXTS_MAX]; /* words allocated here */
    struct run_arguments arguments;
    struct found_receipt found, again;
    glb_client *client;
    glb_outcome *outcome;
    json_object *differences; /* array of {what, was, is} */
};

static int add_word(struct replay *replay, const char *word, error *err)
{
    if (replay->word_count == WORDS_MAX - 1)
        return fail(err, ERR_BAD_REQUEST, "more than %d words", WORDS_MAX - 1);
    replay->words[replay->word_count++] = (char *) (uintptr_t) word;
    return 0;
}

static int pass_on(void *into, const struct option_row *row, const char *value, error *err)
{
    static const char *const names[] = { "--file", "--env" };
    return add_word(into, names[strcmp(row->name, "env") == 0], err) < 0
               ? -1
               : add_word(into, value, err);
}

#define FIELD(name) offsetof(struct replay, name)

static const struct option_row rows[] = {
    /* clang-format off */
    { "code",    0,   "FILE",       VALUES_FILE,   "the code, as it was",                             store_text,   FIELD(code) },
    { "file",    'f', "FILE[:PATH][:ro]", VALUES_FILE, "an input, as it was",                         pass_on,      0 },
    { "env",     'e', "NAME=VALUE", VALUES_NONE,   "a variable; receipts know their names only",      pass_on,      0 },
    { "stdin",   'i', NULL,         VALUES_NONE,   "pass stdin on, as it was",                        store_switch, FIELD(pass_stdin) },
    { "expect",  0,   "FILE",       VALUES_FILE,   "what was expected of its output, as it was",      store_text,   FIELD(expect) },
    { "json",    0,   NULL,         VALUES_NONE,   "the same for programs",                           store_switch, FIELD(json) },
    { "daemon",  0,   "SOCKET",     VALUES_FILE,   "use the daemon at this socket",                   store_text,   FIELD(daemon) },
    { "private", 0,   NULL,         VALUES_NONE,   "use no running daemon, start one for this call",  store_switch, FIELD(private) },
    { "public-key", 0, "FILE",      VALUES_FILE,   "the public key, as you have kept it",             store_text,   FIELD(key) },
    { "key",     0,   "FILE",       VALUES_FILE,   NULL,                                              store_text,   FIELD(key) }, /* old name */
    { "opening", 0,   "FILE",       VALUES_FILE,   "what opens the receipt, if the daemon does not know", store_text,   FIELD(opening) },
    { "log",     0,   "FOLDER",     VALUES_FOLDER, "the log that the receipt has to stand in",        store_text,   FIELD(log) },
    { "state",   0,   "FOLDER",     VALUES_FOLDER, "the state folder",                                store_text,   FIELD(state) },
    /* clang-format on */
};

const struct option_table replay_option_table = {
    .verb = "replay",
    .examples = "  glovebox replay run.json --code script.py --file data.csv\n"
                "  glovebox replay rcp_… --code script.py -- ARGUMENTS\n",
    .usage = "[OPTIONS] RECEIPT [-- ARGUMENTS]",
    .more = "The receipt is verified first. Exit status 0: the same came out; 1: something\n"
            "else did, or the receipt does not verify; 125: it could not be run.\n",
    OPTION_ROWS(rows),
};

/* --- the command line ------------------------------------------------------------------------- */

static int add_pair(struct replay *replay, const char *flag, const char *value, error *err)
{
    if (!*value)
        return 0;
    return add_word(replay, flag, err) < 0 ? -1 : add_word(replay, value, err);
}

static int add_limit(struct replay *replay, enum limit_id id, uint64_t value, error *err)
{
    char option[32], *text = NULL;
    if (value == 0)
        return 0; /* no limit */
    (void) limit_option(limit_rows[id].name, option, sizeof option);
    const char *unit = limit_rows[id].unit == UNIT_MSEC ? "ms" : "";
    if (replay->text_count + 1 > TEXTS_MAX ||
        (limit_rows[id].unit == UNIT_MILLI
             ? asprintf(&text, "--%s=%" PRIu64 ".%03" PRIu64, option, value / 1000, value % 1000)
             : asprintf(&text, "--%s=%" PRIu64 "%s", option, value, unit)) < 0)
        return fail(err, ERR_SYSTEM, "no memory to replay");
    replay->texts[replay->text_count++] = text;
    return add_word(replay, text, err);
}

/* Builds the command line of `glovebox run` that repeats the run. */
static int plan(struct replay *replay, error *err)
{
    json_object *payload = replay->found.payload;
    const char *kind = text_at(payload, "predicate.execution.kind");
    if (add_word(replay, "run", err) < 0)
        return -1;
    if (strcmp(text_at(payload, "predicateType"), PREDICATE_RUN) != 0)
        return fail(err, ERR_BAD_REQUEST, "it is no receipt of an execution that ended");
    if (member_at(payload, "predicate.sealed"))
        return fail(err, ERR_BAD_REQUEST,
                    "its output was withheld: there is nothing that could be compared");
    if (strcmp(kind, "cell") == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "a cell stands on the cells before it, and cannot be run again by itself");
    for (enum limit_id id = 0; id < LIMITS; id++) {
        char path[64];
        (void) snprintf(path, sizeof path, "predicate.limits.granted.%s", limit_rows[id].name);
        if (add_limit(replay, id, (uint64_t) number_at(payload, path), err) < 0)
            return -1;
    }
    return add_pair(replay, "--policy", text_at(payload, "predicate.policy.name"), err) < 0 ||
                   add_pair(replay, "--template", text_at(payload, "predicate.template.name"),
                            err) < 0 ||
                   add_pair(replay, "--language", text_at(payload, "predicate.execution.language"),
                            err) < 0 ||
                   (replay->expect && add_pair(replay, "--expect", replay->expect, err) < 0)
               ? -1
               : 0;
}

static int read_command_line(struct replay *replay, struct words *words, const char **ret_receipt,
                             error *err)
{
    *ret_receipt = NULL;
    int outcome = options_read(&replay_option_table, replay, words, err);
    if (outcome != OPTIONS_TAKEN)
        return outcome;
    if (words->next < words->count)
        *ret_receipt = words->words[words->next++];
    outcome = options_read(&replay_option_table, replay, words, err);
    if (outcome != OPTIONS_TAKEN)
        return outcome;
    return *ret_receipt ? OPTIONS_TAKEN
                        : fail(err, ERR_BAD_REQUEST, "give the receipt: its file, or its id");
}

/* Verifies the receipt before anything in it is used. Returns 0, or RECEIPT_IS_NONE. */
static int find_receipt(struct replay *replay, const char *name, error *err)
{
    struct log_arguments place = { .state = replay->state, .log = replay->log, .key = replay->key };
    int result = receipt_find(&place, name, &replay->found, err);
    return result != 0 ? result : receipt_demand(&place, &replay->found, &replay->key_is_own, err);
}

/* `words` are the arguments of the code. */
static int plan_run(struct replay *replay, struct words *words, error *err)
{
    if (plan(replay, err) < 0)
        return -1;
    bool is_command =
        strcmp(text_at(replay->found.payload, "predicate.execution.kind"), "command") == 0;
    if (!is_command && !replay->code)
        return fail(err, ERR_BAD_REQUEST, "give the code again: --code FILE");
    if ((replay->pass_stdin && add_word(replay, "--stdin", err) < 0) ||
        add_word(replay, is_command ? "--" : replay->code, err) < 0)
        return -1;
    for (; words->next < words->count; words->next++)
        if (add_word(replay, words->words[words->next], err) < 0)
            return -1;
    return run_arguments_read(&replay->arguments, is_command, replay->word_count, replay->words,
                              err);
}

/* --- the second run --------------------------------------------------------------------------- */

static int failed_call(int32_t code, error *err)
{
    return fail(err, (enum error_code) code, "%s", glb_error_text());
}

static int connect_daemon(struct replay *replay, error *err)
{
    glb_connect_options connect = {
        .socket = replay->daemon,
        .state = replay->state,
        .how = replay->private  ? GLB_CONNECT_PRIVATE
               : replay->daemon ? GLB_CONNECT_SOCKET
                                : GLB_CONNECT_ANY,
        .template_name = replay->arguments.template_name,
    };
    int32_t code = glb_connect(&connect, sizeof connect, &replay->client);
    return code == GLB_OK ? 0 : failed_call(code, err);
}

/* Replaces the commitments in the receipt by the hashes, which can be compared. */
static int open_found(struct replay *replay, struct found_receipt *found, const char *file,
                      error *err)
{
    auto_json opening = NULL;
    const char *id = text_at(found->payload, "predicate.id");
    int result = file ? opening_read_file(file, &opening, err)
                      : opening_ask(replay->client, id, &opening, err);
    if (result == 0)
        result = opening_apply(opening, found->payload, err);
    return result;
}

static int run_again(struct replay *replay, error *err)
{
    glb_run_options options = run_arguments_options(&replay->arguments);
    int32_t code = glb_run(replay->client, &options, sizeof options, &replay->outcome);
    auto_fd file = memfd_create("receipt", MFD_CLOEXEC);
    if (code == GLB_OK)
        code = glb_receipt_write(replay->client, replay->outcome, file);
    if (code != GLB_OK)
        return failed_call(code, err);
    auto_text text = NULL;
    size_t size = 0;
    if (lseek(file, 0, SEEK_SET) < 0 || read_to_end(file, "receipt", &text, &size, err) < 0)
        return fail_os(err, "read the new receipt");
    return receipt_take(text, size, &replay->again, err) < 0
               ? -1
               : open_found(replay, &replay->again, NULL, err);
}

/* --- comparison ------------------------------------------------------------------------------- */

static const char *spelled(json_object *value)
{
    return value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : "null";
}

static void compare(struct replay *replay, const char *what, const char *path)
{
    json_object *was = member_at(replay->found.payload, path);
    json_object *is = member_at(replay->again.payload, path);
    if (strcmp(spelled(was), spelled(is)) == 0)
        return;
    json_object *row = json_object_new_object();
    (void) json_object_object_add(row, "what", json_object_new_string(what));
    (void) json_object_object_add(row, "was", json_object_get(was));
    (void) json_object_object_add(row, "is", json_object_get(is));
    (void) json_object_array_add(replay->differences, row);
}

static const struct {
    const char *what, *path;
} outcomes[] = {
    { "outcome", "predicate.outcome" },           { "stdout", "predicate.outputs.stdout" },
    { "stderr", "predicate.outputs.stderr" },     { "results", "predicate.outputs.results" },
    { "artifacts", "predicate.artifacts" },       { "artifacts", "predicate.shortened.artifacts.count" },
}, verdicts[] = {
    { "verdict", "predicate.gate.verdict" },      { "findings", "predicate.gate.findings" },
}, conditions[] = {
    { "expectation", "predicate.gate.expectation" },
    { "template", "predicate.template.digest" },  { "policy", "predicate.policy.digest" },
    { "limits", "predicate.limits.granted" },     { "seccomp", "predicate.isolation.seccomp" },
    { "walls", "predicate.isolation.walls" },     { "kernel", "predicate.isolation.kernel" },
    { "variables", "predicate.environment_names" },
};

/* NULL: neither run had an expectation. Verdicts on different expectations are not compared. */
static const char *compare_verdicts(struct replay *replay)
{
    static const char path[] = "predicate.gate.expectation";
    const char *was = spelled(member_at(replay->found.payload, path));
    const char *is = spelled(member_at(replay->again.payload, path));
    if (strcmp(was, is) != 0)
        return "not compared";
    for_each(row, verdicts)
        compare(replay, row->what, row->path);
    return strcmp(was, "null") == 0 ? NULL : "compared";
}

static const char *why_left_out(const struct replay *replay)
{
    if (!member_at(replay->found.payload, "predicate.gate.expectation"))
        return "nothing then, and now the policy expects something";
    return replay->expect ? "--expect, or what the policy expects, is not that of the receipt"
                          : "give what was expected then: --expect FILE";
}

static int tell(struct replay *replay)
{
    for_each(row, outcomes)
        compare(replay, row->what, row->path);
    const char *verdict = compare_verdicts(replay);
    bool is_left_out = verdict && strncmp(verdict, "not", 3) == 0;
    size_t different = json_object_array_length(replay->differences);
    for_each(row, conditions)
        compare(replay, row->what, row->path);
    size_t all = json_object_array_length(replay->differences);
    const char *id = text_at(replay->again.payload, "predicate.id");
    if (replay->json) {
        auto_json whole = json_object_new_object();
        (void) json_object_object_add(whole, "verified", json_object_new_boolean(true));
        (void) json_object_object_add(whole, "key_from_the_log",
                                      json_object_new_boolean(replay->key_is_own));
        (void) json_object_object_add(whole, "same", json_object_new_boolean(different == 0));
        (void) json_object_object_add(whole, "receipt", json_object_new_string(id));
        member_set_text(whole, "verdict", verdict);
        (void) json_object_object_add(whole, "differences", json_object_get(replay->differences));
        (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
        return different > 0 ? EXIT_DIFFERENT : 0;
    }
    (void) printf("%s: outcome, output and artifacts %s (new receipt %s)\n",
                  different == 0 ? "THE SAME" : "DIFFERENT",
                  different == 0 ? "have the same hashes" : "are not all the same", id);
    if (replay->key_is_own)
        (void) puts(KEY_IS_OF_THE_LOG);
    if (verdict && !is_left_out)
        (void) printf("       the output was compared with what was expected of it, as then\n");
    if (is_left_out)
        (void) printf(
            "note: verdicts on the output are not compared: something else was expected of "
            "it; %s\n",
            why_left_out(replay));
    for (size_t i = 0; i < all; i++) {
        json_object *row = json_object_array_get_idx(replay->differences, i);
        (void) printf("%s %-10s was %s\n",
                      i < different ? "      " : "note: ", text_at(row, "what"),
                      spelled(member_at(row, "was")));
        (void) printf("       %-10s is  %s\n", "", spelled(member_at(row, "is")));
    }
    return different > 0 ? EXIT_DIFFERENT : 0;
}

static int replay_receipt(struct replay *replay, const char *name, struct words *words, error *err)
{
    int result = find_receipt(replay, name, err);
    if (result == RECEIPT_IS_NONE)
        return receipt_print_unverified(replay->json, err);
    if (result < 0 || plan_run(replay, words, err) < 0 || connect_daemon(replay, err) < 0 ||
        open_found(replay, &replay->found, replay->opening, err) < 0 ||
        replay_check_inputs(replay->found.payload, &replay->arguments, err) < 0 ||
        run_again(replay, err) < 0)
        return -1;
    return tell(replay);
}

int command_replay(int argc, char **argv)
{
    error err = { 0 };
    const char *receipt;
    struct replay *replay = calloc(1, sizeof *replay); /* the file table makes it large */
    if (!replay)
        return complain("out of memory");
    replay->differences = json_object_new_array();
    struct words words = { argc, argv, 1 };
    int status = read_command_line(replay, &words, &receipt, &err);
    if (status == OPTIONS_TAKEN)
        status = replay_receipt(replay, receipt, &words, &err);
    else if (status == OPTIONS_HELP)
        status = 0;
    if (status < 0)
        status = complain_of(&err);
    glb_outcome_free(replay->outcome);
    glb_close(replay->client);
    run_arguments_done(&replay->arguments);
    found_receipt_done(&replay->found);
    found_receipt_done(&replay->again);
    (void) json_object_put(replay->differences);
    for (size_t i = 0; i < replay->text_count; i++)
        free(replay->texts[i]);
    free(replay);
    return status;
}
