/* outcome.c - derives how a run ended from evidence; the order is the priority. */
#include "model/outcome.h"

#include "base/table.h"

/* Limits that can end a run, the most likely cause first: a flood of output also takes time, time
 * also takes processor time, and so on. A limit that cannot make a program fail (its output was
 * cut, its artifacts were not all collected) counts only if gloveboxd stopped the program for it.
 */
enum weight { ONLY_IF_STOPPED, HIT_IS_ENOUGH };

static const struct {
    enum limit_id limit;
    enum weight weight;
} order[] = {
    /* clang-format off */
    { LIMIT_output,         ONLY_IF_STOPPED  },
    { LIMIT_wall,           HIT_IS_ENOUGH    },
    { LIMIT_cpu,            HIT_IS_ENOUGH    },
    { LIMIT_memory,         HIT_IS_ENOUGH    },
    { LIMIT_processes,      HIT_IS_ENOUGH    },
    { LIMIT_disk,           HIT_IS_ENOUGH    },
    { LIMIT_inodes,         HIT_IS_ENOUGH    },
    { LIMIT_artifacts,      ONLY_IF_STOPPED  },
    { LIMIT_artifact_files, ONLY_IF_STOPPED  },
    /* clang-format on */
};

static const char *const status_names[RUN_STATUSES] = {
    [RUN_OK] = "ok",
    [RUN_ERROR] = "error",
    [RUN_LIMIT] = "limit",
    [RUN_DENIED] = "denied",
    [RUN_PENDING_APPROVAL] = "pending_approval",
    [RUN_CANCELLED] = "cancelled",
    [RUN_LOST] = "lost",
};

static const char *const fault_names[FAULTS] = {
    [FAULT_CODE] = "code",     [FAULT_LIMIT] = "limit",       [FAULT_POLICY] = "policy",
    [FAULT_CALLER] = "caller", [FAULT_GLOVEBOX] = "glovebox",
};

void evidence_init(struct evidence *evidence)
{
    *evidence = (struct evidence){ .stopped_for = LIMITS };
}

/* The limit that explains a failure; LIMITS if none does. */
static enum limit_id find_cause(const struct evidence *evidence)
{
    for_each(row, order) {
        if (evidence->stopped_for == row->limit)
            return row->limit;
        if (row->weight == HIT_IS_ENOUGH && evidence->hits[row->limit] > 0)
            return row->limit;
    }
    return evidence->stopped_for;
}

/* Did it end by itself just when its time was up? */
static bool was_done(const struct evidence *evidence)
{
    bool is_time = evidence->stopped_for == LIMIT_wall || evidence->stopped_for == LIMIT_cpu;
    return is_time && evidence->ends_by_kill && evidence->exited && !evidence->lost &&
           evidence->exit_code == 0 && evidence->signal == 0;
}

struct verdict outcome_judge(const struct evidence *evidence)
{
    if (evidence->denied)
        return (struct verdict){ RUN_DENIED, FAULT_POLICY, LIMITS };
    if (evidence->pending)
        return (struct verdict){ RUN_PENDING_APPROVAL, FAULT_NONE, LIMITS };

    /* Lost and cancelled take precedence over the program's own end, unless a limit came first. */
    if (evidence->stopped_for >= LIMITS) {
        if (evidence->cancelled)
            return (struct verdict){ RUN_CANCELLED, FAULT_CALLER, LIMITS };
        if (evidence->lost || !evidence->exited)
            return (struct verdict){ RUN_LOST, FAULT_GLOVEBOX, LIMITS };
        if (evidence->exit_code == 0 && evidence->signal == 0)
            return (struct verdict){ RUN_OK, FAULT_NONE, LIMITS };
    }

    if (was_done(evidence))
        return (struct verdict){ RUN_OK, FAULT_NONE, LIMITS };
    enum limit_id cause = find_cause(evidence);
    if (cause < LIMITS)
        return (struct verdict){ RUN_LIMIT, FAULT_LIMIT, cause };
    return (struct verdict){ RUN_ERROR, FAULT_CODE, LIMITS };
}

size_t outcome_hits(const struct evidence *evidence, enum limit_id ret_hits[LIMITS])
{
    size_t count = 0;
    bool listed[LIMITS] = { false };
    for_each(row, order) {
        listed[row->limit] = true;
        if (evidence->hits[row->limit] > 0)
            ret_hits[count++] = row->limit;
    }
    for (enum limit_id id = 0; id < LIMITS; id++)
        if (!listed[id] && evidence->hits[id] > 0)
            ret_hits[count++] = id;
    return count;
}

const char *outcome_status_name(enum run_status status)
{
    return status < RUN_STATUSES ? status_names[status] : NULL;
}

const char *outcome_fault_name(enum run_fault fault)
{
    return fault < FAULTS ? fault_names[fault] : NULL;
}
