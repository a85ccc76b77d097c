/* log_verify.c - prints what `glovebox log verify` found. Problems of the same kind share a line,
 * since one wrong key makes every record wrong. */
#include "cli/trust/log_verify.h"

#include "base/cleanup.h"
#include "cli/common/inputs.h"
#include "ledger/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROBLEMS_TOLD = 50, KINDS_MAX = 16 };

/* Problems of the same kind. */
struct kind {
    char why[200], first[64], last[64];
    uint64_t count;
};

struct telling {
    json_object *problems; /* NULL: print them */
    bool tells_all;
    size_t kind_count;
    struct kind kinds[KINDS_MAX];
};

/* Are the texts equal apart from numbers? */
static bool is_alike(const char *one, const char *other)
{
    for (;;) {
        one += strspn(one, "0123456789");
        other += strspn(other, "0123456789");
        if (*one != *other)
            return false;
        if (!*one)
            return true;
        one++;
        other++;
    }
}

static void count_problem(struct telling *telling, const char *what, const char *why)
{
    size_t at = 0;
    while (at < telling->kind_count && !is_alike(telling->kinds[at].why, why))
        at++;
    if (at == KINDS_MAX)
        return;
    struct kind *kind = &telling->kinds[at];
    if (at == telling->kind_count) {
        telling->kind_count++;
        (void) snprintf(kind->why, sizeof kind->why, "%s", why);
        (void) snprintf(kind->first, sizeof kind->first, "%s", what);
    }
    (void) snprintf(kind->last, sizeof kind->last, "%s", what);
    kind->count++;
}

static void tell_problem(void *context, const char *what, const char *why)
{
    struct telling *telling = context;
    if (!telling->problems && telling->tells_all) {
        (void) printf("WRONG  %s: %s\n", what, why);
    } else if (!telling->problems) {
        count_problem(telling, what, why);
    } else if (telling->tells_all || json_object_array_length(telling->problems) < PROBLEMS_TOLD) {
        json_object *row = json_object_new_object();
        (void) json_object_object_add(row, "what", json_object_new_string(what));
        (void) json_object_object_add(row, "why", json_object_new_string(why));
        (void) json_object_array_add(telling->problems, row);
    }
}

static void print_kinds(const struct telling *telling)
{
    for (size_t i = 0; i < telling->kind_count; i++) {
        const struct kind *kind = &telling->kinds[i];
        (void) printf("WRONG  %s", kind->first);
        if (kind->count > 1)
            (void) printf(" to %s, %" PRIu64 " in all", kind->last, kind->count);
        (void) printf(": %s\n", kind->why);
    }
}

static void print_next_step(const struct verify_report *report, const struct public_key *key)
{
    uint64_t records = report->size - report->first;
    if (records > 0 && report->forged == records)
        (void) printf(
            "next: no record here is signed by %s. A copy from before a change of key is "
            "verified by the key of that time: --public-key FILE. If it ought to be this key, "
            "another program has written these records.\n",
            key->label);
    else if (report->unfit == report->problems)
        (void) puts("next: nothing is wrong within this log, but it is not that of the file: give "
                    "what `glovebox log checkpoint` or log_witness wrote for it, or look for the "
                    "log that the file belongs to.");
    else if (report->size < report->kept)
        (void) puts("next: it is older than the checkpoint that you keep, or was cut off: look for "
                    "the newer one.");
    else
        (void) puts("next: leave the folder as it is, and look for a copy that verifies: glovebox "
                    "log verify --log COPY --public-key FILE.");
}

static void add_number(json_object *object, const char *name, uint64_t value)
{
    (void) json_object_object_add(object, name, json_object_new_int64((int64_t) value));
}

static void print_json(const struct verify_report *report, const struct public_key *key,
                       bool key_is_own, json_object *problems)
{
    auto_json whole = json_object_new_object();
    (void) json_object_object_add(whole, "verified",
                                  json_object_new_boolean(report->problems == 0));
    (void) json_object_object_add(whole, "origin", json_object_new_string(key->name));
    (void) json_object_object_add(whole, "key_from_the_log", json_object_new_boolean(key_is_own));
    add_number(whole, "first", report->first);
    add_number(whole, "size", report->size);
    add_number(whole, "covered", report->covered);
    add_number(whole, "kept", report->kept);
    add_number(whole, "witnessed", report->witnessed);
    add_number(whole, "signatures", report->signatures);
    add_number(whole, "problem_count", report->problems);
    (void) json_object_object_add(whole, "problems", problems);
    (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
}

static void print_verdict(const struct verify_report *report, const struct telling *telling,
                          const struct public_key *key, bool key_is_own, bool had_kept)
{
    bool is_cut_short = !telling->tells_all && report->problems > telling->kind_count;
    print_kinds(telling);
    (void) printf("log    %s, %" PRIu64 " records (%" PRIu64 " to %" PRIu64 "), %.1f MiB\n",
                  key->name, report->size - report->first, report->first,
                  report->size > 0 ? report->size - 1 : 0, (double) report->bytes / 1048576);
    if (report->problems > 0) {
        (void) printf("DOES NOT VERIFY: %" PRIu64 " %s wrong%s\n", report->problems,
                      report->problems == 1 ? "thing is" : "things are",
                      is_cut_short ? "; one by one: --all" : "");
        print_next_step(report, key);
        return;
    }
    (void) puts("VERIFIED");
    (void) printf(
        "proved: every byte of these records is as it was when the checkpoint over %" PRIu64
        " of them was signed; none was removed, added or moved before that.\n",
        report->covered);
    if (report->size > report->covered)
        (void) printf("        %" PRIu64
                      " later records carry good signatures of their own and follow "
                      "on each other; that none is missing at the end is not proved.\n",
                      report->size - report->covered);
    if (report->first > 0)
        (void) printf("        records before %" PRIu64 " were removed by retention, which the log "
                      "tells; only their hashes are left.\n",
                      report->first);
    if (key_is_own)
        (void) puts(KEY_IS_OF_THE_LOG);
    if (had_kept)
        (void) printf(
            "proved: it is the continuation of the checkpoint that you kept, over %" PRIu64
            " records.\n",
            report->kept);
    if (report->witnessed > 0)
        (void) printf("proved: it is the continuation of the %" PRIu64
                      " checkpoints that the witness has seen.\n",
                      report->witnessed);
    if (!had_kept && report->witnessed == 0)
        (void) puts(
            "not proved: that the whole log was not exchanged for an older one of the same key. "
            "Keep a checkpoint elsewhere and give it: --checkpoint FILE.");
    (void) puts(
        "not proved: when. Times in records are those of the signer's clock; their order is "
        "proved.\n"
        "not proved: that what the signer wrote was true. A user who holds the key and the host's "
        "root can write anything that no witness has seen.");
}

int log_verify_answer(const struct log_arguments *arguments, int folder, error *err)
{
    struct public_key key;
    bool key_is_own;
    auto_text kept = NULL;
    auto_text witness = NULL;
    size_t size = 0, witness_size = 0;
    if (log_key_read(arguments, folder, &key, &key_is_own, err) < 0 ||
        (arguments->checkpoint && read_input_file(arguments->checkpoint, &kept, &size, err) < 0) ||
        (arguments->witness &&
         read_input_file(arguments->witness, &witness, &witness_size, err) < 0))
        return -1;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct telling telling = { .problems = arguments->json ? json_object_new_array() : NULL,
                               .tells_all = arguments->all };
    struct verify_order order = { .folder = folder,
                                  .key = &key,
                                  .kept = kept,
                                  .witness = witness,
                                  .witness_size = witness_size,
                                  .every_signature = arguments->signatures,
                                  .workers = processors > 0 ? (unsigned) processors : 1,
                                  .problem = tell_problem,
                                  .context = &telling };
    struct verify_report report;
    (void) fflush(stdout);
    if (log_verify(&order, &report, err) < 0) {
        (void) json_object_put(telling.problems);
        return -1;
    }
    if (arguments->json)
        print_json(&report, &key, key_is_own, telling.problems);
    else
        print_verdict(&report, &telling, &key, key_is_own, kept != NULL);
    return report.problems > 0 ? EXIT_DOES_NOT_VERIFY : 0;
}
