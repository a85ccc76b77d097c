/* limits_report.c - `glovebox limits report`: which limits of which policies are reached, and how
 * far below them ordinary runs stay. It reads the receipts, which hold what each run was granted,
 * what it used, and which limits it reached. */
#include "cli/commands.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "cli/common/log_files.h"
#include "cli/options.h"
#include "ledger/segment.h"
#include "model/limits.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POLICIES_MAX = 64,
    SHARES = 101,  /* 0 to 100 per cent of the granted value */
    RUNS_MIN = 20, /* fewer prove nothing */
    DIGEST_TEXT_SIZE = 65,
    TIGHT_SHARE = 90,   /* per cent; more is near the limit */
    TIGHT_PER_CENT = 5, /* of runs, near the limit or stopped by it */
    OFTEN_PER_CENT = 5, /* of runs, that reached it */
    ROOMY_SHARE = 10,   /* per cent; nearly no run used more */
    NEARLY_ALL = 99,
};

struct limit_use {
    uint64_t runs;     /* runs that were granted max_granted */
    uint64_t lowered;  /* runs that had asked for less */
    uint64_t measured; /* runs that ended by themselves, with known use */
    uint64_t hits, ends, shares[SHARES];
    uint64_t max_granted;
};

struct policy_use {
    char name[POLICY_NAME_SIZE];
    char digest[DIGEST_TEXT_SIZE]; /* of the last run; another one may grant other limits */
    uint64_t runs;
    struct limit_use limits[LIMITS];
};

struct report {
    struct log_arguments where;
    const char *policy, *since;
    bool json;
    int64_t since_ms; /* wall clock; 0: all */
    uint64_t runs;
    size_t count;
    struct policy_use policies[POLICIES_MAX];
};

/* --- reading ---------------------------------------------------------------------------------- */

static struct policy_use *policy_use_of(struct report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->policies[i].name, name) == 0)
            return &report->policies[i];
    if (report->count == POLICIES_MAX)
        return NULL;
    struct policy_use *fresh = &report->policies[report->count++];
    (void) snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

/* A changed policy may grant less than before: max_granted starts again, the counts stay. */
static void note_digest(struct policy_use *policy, const char *digest)
{
    if (strncmp(policy->digest, digest, sizeof policy->digest - 1) == 0)
        return;
    (void) snprintf(policy->digest, sizeof policy->digest, "%s", digest);
    for (enum limit_id id = 0; id < LIMITS; id++)
        policy->limits[id].max_granted = 0;
}

/* A run that asked for less than its policy grants proves nothing about the policy's limit. The
 * policy grants the most that any of its runs was granted. */
static bool is_lowered(struct limit_use *use, uint64_t granted)
{
    if (granted < use->max_granted) {
        use->lowered++;
        return true;
    }
    if (granted > use->max_granted && use->max_granted > 0)
        *use = (struct limit_use){ .lowered = use->lowered + use->runs };
    use->max_granted = granted;
    return false;
}

/* The use of a run that was stopped shows the limit, not what the run needed, so only the hit is
 * counted. */
static void count_limit(struct limit_use *use, enum limit_id id, json_object *limits)
{
    char path[64];
    (void) snprintf(path, sizeof path, "granted.%s", limit_rows[id].name);
    int64_t granted = number_at(limits, path);
    if (granted > 0 && is_lowered(use, (uint64_t) granted))
        return;
    use->runs++;
    (void) snprintf(path, sizeof path, "used.%s", limit_rows[id].name);
    json_object *used = member_at(limits, path);
    (void) snprintf(path, sizeof path, "hits.%s", limit_rows[id].name);
    bool is_hit = number_at(limits, path) > 0;
    bool is_end = strcmp(text_at(limits, "ended_by"), limit_rows[id].name) == 0;
    use->hits += is_hit || is_end;
    use->ends += is_end;
    if (granted <= 0 || !used)
        return;
    double share = (double) json_object_get_int64(used) * 100 / (double) granted;
    size_t place = share >= SHARES - 1 ? SHARES - 1 : share > 0 ? (size_t) share : 0;
    use->measured++;
    use->shares[place]++;
}

/* Did the code run, and end by itself or by a limit? */
static bool is_work(json_object *predicate)
{
    static const char *const ends[] = { "ok", "error", "limit" };
    const char *status = text_at(predicate, "outcome.status");
    for_each(end, ends)
        if (strcmp(status, *end) == 0)
            return true;
    return false;
}

static int count_record(void *context, const struct record *record, error *err)
{
    struct report *report = context;
    struct found_receipt found;
    if (receipt_take(record->data, record->size, &found, err) < 0)
        return under(err, "record %" PRIu64, record->index);
    json_object *predicate = member_at(found.payload, "predicate");
    const char *name = text_at(predicate, "policy.name");
    struct policy_use *policy = NULL;
    if (predicate && is_work(predicate) &&
        number_at(predicate, "times.ended_ms") >= report->since_ms &&
        (!report->policy || strcmp(report->policy, name) == 0))
        policy = policy_use_of(report, name);
    if (policy) {
        note_digest(policy, text_at(predicate, "policy.digest"));
        policy->runs++;
        report->runs++;
        for (enum limit_id id = 0; id < LIMITS; id++)
            count_limit(&policy->limits[id], id, member_at(predicate, "limits"));
    }
    found_receipt_done(&found);
    return 0;
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Returns the share of the granted value that `per_cent` of the runs did not exceed. */
static unsigned share_of(const struct limit_use *use, unsigned per_cent)
{
    uint64_t seen = 0;
    for (unsigned share = 0; share < SHARES; share++) {
        seen += use->shares[share];
        if (seen * 100 >= use->measured * per_cent)
            return share;
    }
    return SHARES - 1;
}

static uint64_t count_near(const struct limit_use *use)
{
    uint64_t near = 0;
    for (unsigned share = TIGHT_SHARE; share < SHARES; share++)
        near += use->shares[share];
    return near > use->hits ? near : use->hits;
}

enum verdict { FITS, NO_DATA, TOO_FEW, MET_OFTEN, TIGHT, ROOMY };

static const char *const verdict_names[] = {
    [FITS] = "fits",           [NO_DATA] = "no_data", [TOO_FEW] = "too_few",
    [MET_OFTEN] = "met_often", [TIGHT] = "tight",     [ROOMY] = "roomy"
};

static enum verdict judge(const struct policy_use *policy, enum limit_id id)
{
    const struct limit_use *use = &policy->limits[id];
    if (use->runs < RUNS_MIN)
        return TOO_FEW;
    if (use->hits * 100 >= use->runs * OFTEN_PER_CENT)
        return MET_OFTEN;
    if (count_near(use) * 100 >= use->runs * TIGHT_PER_CENT)
        return TIGHT;
    bool is_known = use->measured * 100 >= use->runs * NEARLY_ALL;
    if (!is_known && use->hits == 0 && share_of(use, 100) == 0)
        return NO_DATA; /* some used next to nothing, the use of the others is unknown */
    return is_known && use->hits == 0 && share_of(use, NEARLY_ALL) < ROOMY_SHARE ? ROOMY : FITS;
}

static bool is_worth_a_line(const struct limit_use *use)
{
    return use->measured > 0 || use->hits > 0;
}

/* --- printing --------------------------------------------------------------------------------- */

static void print_words(const struct policy_use *policy, enum limit_id id)
{
    const struct limit_use *use = &policy->limits[id];
    char granted[32];
    limit_print(id, use->max_granted, granted, sizeof granted);
    switch (judge(policy, id)) {
    case MET_OFTEN:
        (void) printf("  met by %" PRIu64 " of %" PRIu64 " runs: raise it above %s", use->hits,
                      use->runs, granted);
        if (use->ends > 0)
            (void) printf(", or see which it ended: glovebox log search ended_by:%s",
                          limit_rows[id].name);
        break;
    case TIGHT:
        (void) printf("  %" PRIu64 " of %" PRIu64
                      " runs use %d %% or more: ordinary work is near it",
                      count_near(use), use->runs, TIGHT_SHARE);
        break;
    case ROOMY:
        (void) printf("  99 %% of runs stay below %d %%: it could be lower", ROOMY_SHARE);
        break;
    case NO_DATA:
        (void) printf("  no data of %" PRIu64 " of %" PRIu64 " runs, others use less than 1 %%",
                      use->runs - use->measured, use->runs);
        break;
    case FITS:
    case TOO_FEW:
        break;
    }
}

static void print_policy(const struct policy_use *policy)
{
    (void) printf("%s: %" PRIu64 " %s%s\n", policy->name, policy->runs,
                  policy->runs == 1 ? "run" : "runs",
                  policy->runs < RUNS_MIN ? ", too few to say more than was counted" : "");
    bool has_head = false;
    for (enum limit_id id = 0; id < LIMITS; id++) {
        const struct limit_use *use = &policy->limits[id];
        char granted[32];
        if (!is_worth_a_line(use))
            continue;
        if (!has_head)
            (void) printf("  %-16s %-10s %5s %5s %5s %6s %6s\n", "LIMIT", "GRANTED", "p50", "p95",
                          "max", "MET", "ENDED");
        has_head = true;
        limit_print(id, use->max_granted, granted, sizeof granted);
        (void) printf("  %-16s %-10s %4u%% %4u%% %4u%% %6" PRIu64 " %6" PRIu64, limit_rows[id].name,
                      granted, share_of(use, 50), share_of(use, 95), share_of(use, 100), use->hits,
                      use->ends);
        print_words(policy, id);
        if (use->lowered > 0)
            (void) printf("  (%" PRIu64 " more had asked for less)", use->lowered);
        (void) printf("\n");
    }
}

static void add(json_object *object, const char *name, uint64_t value)
{
    (void) json_object_object_add(object, name, json_object_new_int64((int64_t) value));
}

static json_object *policy_json(const struct policy_use *policy)
{
    json_object *object = json_object_new_object();
    json_object *limits = json_object_new_object();
    add(object, "runs", policy->runs);
    for (enum limit_id id = 0; id < LIMITS; id++) {
        const struct limit_use *use = &policy->limits[id];
        if (!is_worth_a_line(use))
            continue;
        json_object *row = json_object_new_object();
        add(row, "granted_most", use->max_granted);
        add(row, "runs", use->runs);
        add(row, "lowered", use->lowered);
        add(row, "measured", use->measured);
        add(row, "used_p50_percent", share_of(use, 50));
        add(row, "used_p95_percent", share_of(use, 95));
        add(row, "used_most_percent", share_of(use, 100));
        add(row, "hits", use->hits);
        add(row, "ends", use->ends);
        member_set_text(row, "verdict", verdict_names[judge(policy, id)]);
        (void) json_object_object_add(limits, limit_rows[id].name, row);
    }
    (void) json_object_object_add(object, "limits", limits);
    return object;
}

static void print_json(const struct report *report)
{
    auto_json whole = json_object_new_object();
    json_object *policies = json_object_new_object();
    add(whole, "runs", report->runs);
    for (size_t i = 0; i < report->count; i++)
        (void) json_object_object_add(policies, report->policies[i].name,
                                      policy_json(&report->policies[i]));
    (void) json_object_object_add(whole, "policies", policies);
    (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
}

/* --- the verb --------------------------------------------------------------------------------- */

#define FIELD(name) offsetof(struct report, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "policy", 'p', "NAME",   VALUES_POLICY, "only runs under this policy",                     store_text,   FIELD(policy) },
    { "since",  0,   "TIME",   VALUES_NONE,   "only runs that ended in the last TIME: 24h; or since a moment of RFC 3339",      store_text,   FIELD(since) },
    { "log",    0,   "FOLDER", VALUES_FOLDER, "the folder of the log, or of a copy of it",       store_text,   FIELD(where.log) },
    { "state",  0,   "FOLDER", VALUES_FOLDER, "the state folder, whose log is meant",            store_text,   FIELD(where.state) },
    { "json",   0,   NULL,     VALUES_NONE,   "the same for programs",                           store_switch, FIELD(json) },
};

const struct option_table limits_option_table = {
    .verb = "limits",
    .examples = "  glovebox limits report                   of all policies\n"
                "  glovebox limits report --policy data --since 24h\n",
    .usage = "report [OPTIONS]",
    .more = "Reads the receipts in the log; no daemon is asked. MET counts runs that met a\n"
            "limit, whether they ended for it or not; p50, p95 and max say how much of what\n"
            "they were granted runs have used.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

static int read_arguments(struct report *report, int argc, char **argv, error *err)
{
    struct words words = { argc, argv, 1 };
    bool has_verb = false;
    for (;;) {
        int outcome = options_read(&limits_option_table, report, &words, err);
        if (outcome != 0)
            return outcome;
        if (words.next == argc)
            break;
        if (has_verb || strcmp(argv[words.next], "report") != 0)
            return no_such_verb("limits", argv[words.next], err);
        has_verb = true;
        words.next++;
    }
    uint64_t since = 0;
    if (!report->since || (report->since_ms = timestamp_read(report->since)) != 0)
        return 0;
    if (limit_parse(LIMIT_wall, report->since, &since, err) < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "--since takes a time such as 24h or 30m, or a moment such as "
                    "2026-11-22T03:00:00Z, not '%.40s'",
                    report->since);
    report->since_ms = wall_clock_ms() - (int64_t) since;
    return 0;
}

static int tell(struct report *report, error *err)
{
    auto_fd folder = -1;
    if (log_folder_open(&report->where, &folder, err) < 0 ||
        segments_each(folder, 0, count_record, report, err) < 0)
        return -1;
    if (report->json)
        print_json(report);
    else if (report->runs == 0)
        (void) puts("no run of that kind has a receipt here");
    for (size_t i = 0; !report->json && i < report->count; i++)
        print_policy(&report->policies[i]);
    return 0;
}

int command_limits(int argc, char **argv)
{
    error err = { 0 };
    auto_free struct report *report = calloc(1, sizeof *report);
    if (!report)
        return complain("out of memory");
    int outcome = read_arguments(report, argc, argv, &err);
    if (outcome == 0)
        outcome = tell(report, &err);
    return outcome < 0 ? complain_of(&err) : 0;
}
