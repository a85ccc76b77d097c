/* outcome_test.c - the status of a run for each kind of evidence. */
#include "model/outcome.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

#define BIT(limit) (1U << LIMIT_##limit)

static const struct {
    const char *what;
    unsigned hits;
    enum limit_id stopped_for;
    bool lost, cancelled, exited;
    int32_t exit_code, signal;
    enum run_status status;
    enum run_fault fault;
    enum limit_id limit;
    bool ends_by_kill;
} verdict_facts[] = {
    /* clang-format off */
    { "a good end",            0, LIMITS, 0, 0, 1, 0, 0, RUN_OK, FAULT_NONE, LIMITS },
    { "a bad end",             0, LIMITS, 0, 0, 1, 1, 0, RUN_ERROR, FAULT_CODE, LIMITS },
    { "a signal of its own",   0, LIMITS, 0, 0, 1, -1, 11, RUN_ERROR, FAULT_CODE, LIMITS },
    { "no word of its end",    0, LIMITS, 0, 0, 0, 0, 0, RUN_LOST, FAULT_GLOVEBOX, LIMITS },
    { "the sandbox is gone",   0, LIMITS, 1, 0, 1, 0, 0, RUN_LOST, FAULT_GLOVEBOX, LIMITS },
    { "the caller went away",  0, LIMITS, 0, 1, 1, -1, 9, RUN_CANCELLED, FAULT_CALLER, LIMITS },
    { "cancelled, then lost",  0, LIMITS, 1, 1, 0, 0, 0, RUN_CANCELLED, FAULT_CALLER, LIMITS },
    { "stopped for time",      0, LIMIT_wall, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall },
    { "stopped, then lost",    0, LIMIT_wall, 1, 0, 0, 0, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall },
    { "stopped, yet exits 0",  BIT(wall), LIMIT_wall, 0, 0, 1, 0, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall },
    { "was done when stopped", BIT(wall), LIMIT_wall, 0, 0, 1, 0, 0, RUN_OK, FAULT_NONE, LIMITS, 1 },
    { "the same, by its cpu",  BIT(cpu), LIMIT_cpu, 0, 0, 1, 0, 0, RUN_OK, FAULT_NONE, LIMITS, 1 },
    { "failed when stopped",   BIT(wall), LIMIT_wall, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall, 1 },
    { "killed for time",       BIT(wall), LIMIT_wall, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall, 1 },
    { "a flood that exits 0",  BIT(output), LIMIT_output, 0, 0, 1, 0, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_output, 1 },
    { "survives a limit",      BIT(processes), LIMITS, 0, 0, 1, 0, 0, RUN_OK, FAULT_NONE, LIMITS },
    { "a child out of memory", BIT(memory), LIMITS, 0, 0, 1, 0, 0, RUN_OK, FAULT_NONE, LIMITS },
    { "out of memory",         BIT(memory), LIMITS, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_memory },
    { "no fork, gives up",     BIT(processes), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_processes },
    { "disk full",             BIT(disk), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_disk },
    { "files used up",         BIT(inodes), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_inodes },
    { "memory before disk",    BIT(memory) | BIT(disk), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_memory },
    { "disk before inodes",    BIT(inodes) | BIT(disk), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_disk },
    { "time before memory",    BIT(memory), LIMIT_wall, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall },
    { "memory before its sequel", BIT(memory) | BIT(processes), LIMITS, 0, 0, 1, 1, 0, RUN_LIMIT, FAULT_LIMIT, LIMIT_memory },
    { "wall before cpu",       BIT(wall) | BIT(cpu), LIMIT_cpu, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_wall },
    { "a flood before time",   BIT(wall) | BIT(output), LIMIT_output, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_output },
    { "cut output is no cause", BIT(output), LIMITS, 0, 0, 1, 1, 0, RUN_ERROR, FAULT_CODE, LIMITS },
    { "nor are artifacts",     BIT(artifacts), LIMITS, 0, 0, 1, 1, 0, RUN_ERROR, FAULT_CODE, LIMITS },
    { "nor is being slowed",   BIT(cpus), LIMITS, 0, 0, 1, 1, 0, RUN_ERROR, FAULT_CODE, LIMITS },
    { "stopped for artifacts", 0, LIMIT_artifacts, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_artifacts },
    { "a limit outside the order", 0, LIMIT_open_files, 0, 0, 1, -1, 9, RUN_LIMIT, FAULT_LIMIT, LIMIT_open_files },
    /* clang-format on */
};

TEST(evidence_leads_to_a_verdict)
{
    for_each(fact, verdict_facts) {
        struct evidence evidence;
        evidence_init(&evidence);
        for (enum limit_id id = 0; id < LIMITS; id++)
            evidence.hits[id] = (fact->hits >> id) & 1;
        evidence.stopped_for = fact->stopped_for;
        evidence.lost = fact->lost;
        evidence.cancelled = fact->cancelled;
        evidence.exited = fact->exited;
        evidence.ends_by_kill = fact->ends_by_kill;
        evidence.exit_code = fact->exit_code;
        evidence.signal = fact->signal;
        struct verdict verdict = outcome_judge(&evidence);
        expect(verdict.status == fact->status && verdict.fault == fact->fault &&
                   verdict.limit == fact->limit,
               "%s: %s, limit %d", fact->what, outcome_status_name(verdict.status),
               (int) verdict.limit);
    }
}

TEST(a_run_that_did_not_begin_is_judged_first)
{
    struct evidence evidence;
    evidence_init(&evidence);
    evidence.pending = true;
    struct verdict verdict = outcome_judge(&evidence);
    expect(verdict.status == RUN_PENDING_APPROVAL && verdict.fault == FAULT_NONE, "pending");
    evidence.denied = true;
    verdict = outcome_judge(&evidence);
    expect(verdict.status == RUN_DENIED && verdict.fault == FAULT_POLICY, "denied");
}

TEST(hits_are_listed_in_order)
{
    struct evidence evidence;
    evidence_init(&evidence);
    enum limit_id hits[LIMITS];
    expect(outcome_hits(&evidence, hits) == 0, "nothing was hit");
    evidence.hits[LIMIT_cpus] = 3;
    evidence.hits[LIMIT_wall] = 1;
    evidence.hits[LIMIT_output] = 2;
    expect(outcome_hits(&evidence, hits) == 3, "three were hit");
    expect(hits[0] == LIMIT_output && hits[1] == LIMIT_wall && hits[2] == LIMIT_cpus, "the order");
    for (enum limit_id id = 0; id < LIMITS; id++)
        evidence.hits[id] = 1;
    expect(outcome_hits(&evidence, hits) == LIMITS, "all were hit");
}

TEST(names_are_those_of_the_contract)
{
    static const char *const statuses[] = {
        "ok", "error", "limit", "denied", "pending_approval", "cancelled", "lost"
    };
    for (enum run_status status = 0; status < RUN_STATUSES; status++)
        expect(strcmp(outcome_status_name(status), statuses[status]) == 0, "status %d",
               (int) status);
    static const char *const faults[] = { "code", "limit", "policy", "caller", "glovebox" };
    for (enum run_fault fault = FAULT_CODE; fault < FAULTS; fault++)
        expect(strcmp(outcome_fault_name(fault), faults[fault - 1]) == 0, "fault %d", (int) fault);
    expect(!outcome_fault_name(FAULT_NONE) && !outcome_fault_name(FAULTS), "no fault, no name");
    expect(!outcome_status_name(RUN_STATUSES), "no status, no name");
}

TESTS(CASE(evidence_leads_to_a_verdict), CASE(a_run_that_did_not_begin_is_judged_first),
      CASE(hits_are_listed_in_order), CASE(names_are_those_of_the_contract))
