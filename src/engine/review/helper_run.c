/* helper_run.c - see helper_run.h. */
#include "engine/review/helper_run.h"

#include "engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPU_MS = 5000, WALL_MS = 20000, ANSWER_MAX = 256 * 1024 };

struct helper_run {
    struct run *outer; /* NULL: it was abandoned */
    struct run *inner;
    struct run_listener listener;
    helper_run_told *told;
    char *source;
};

void helper_run_policy_init(struct policy *policy, const char *name)
{
    limits_init(&policy->limits);
    policy->limits.wall = WALL_MS; /* long, as the machine may be busy */
    policy->limits.cpu = CPU_MS;
    policy->limits.memory = UINT64_C(512) << 20;
    policy->limits.processes = 64; /* node has a dozen threads, and starts a second node */
    policy->limits.disk = UINT64_C(32) << 20;
    policy->limits.inodes = 256;
    policy->limits.output = ANSWER_MAX;
    policy->limits.artifacts = policy->limits.artifact_files = 0;
    policy->maximum = policy->limits;
    policy->network = POLICY_NETWORK_NONE;
    (void) snprintf(policy->name, sizeof policy->name, "%s", name);
}

static void tell(struct run *outer, const struct run *inner, helper_run_told *told)
{
    char why[200] = "the checker printed something that is not text";
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    auto_bytes text = { 0 };
    struct helper_run_answer answer = { .failure = why,
                                        .took_ms = (inner->done_us - inner->submitted_us) / 1000,
                                        .cpu_us = inner->counters.cpu_us };
    if (inner->verdict.status != RUN_OK) {
        enum limit_id limit = inner->verdict.limit;
        (void) snprintf(why, sizeof why, "the checker ended with status %s%s%s",
                        outcome_status_name(inner->verdict.status), limit < LIMITS ? ": " : "",
                        limit < LIMITS ? limit_rows[limit].name : "");
    } else {
        output_parts(&inner->collector.output[0], "", marker, parts);
        for (unsigned i = 0; i < OUTPUT_PARTS; i++)
            bytes_add(&text, parts[i].data, parts[i].size);
        bytes_add(&text, "", 1);
        if (!text.failed && strlen(text.data) + 1 == text.size) {
            answer.text = text.data;
            answer.failure = NULL;
        }
    }
    told(outer, &answer);
}

static void helper_run_free(struct helper_run *helper_run)
{
    if (helper_run->inner)
        run_free(helper_run->inner);
    free(helper_run->source);
    free(helper_run);
}

/* The callback may free the contents of the files: all were sent by now. */
static void on_changed(void *context, struct run *inner)
{
    struct helper_run *helper_run = context;
    if (inner->state != RUN_DONE)
        return;
    if (helper_run->outer)
        tell(helper_run->outer, inner, helper_run->told);
    helper_run_free(helper_run);
}

void helper_run_abandon(struct helper_run *helper_run)
{
    if (!helper_run)
        return;
    helper_run->outer = NULL;
    run_cancel(
        helper_run->inner); /* on_changed() follows, now or later; inputs are not read any more */
}

static char *join_parts(const char *const *parts)
{
    auto_bytes text = { 0 };
    for (; *parts; parts++)
        bytes_add_text(&text, *parts);
    return text.failed ? NULL : strdup(bytes_text(&text));
}

static struct run_request *make_request(const struct run *outer,
                                        const struct helper_run_order *order, const char *source)
{
    struct run_request *request = calloc(1, sizeof *request);
    struct request_file *files = calloc(order->file_count + 1, sizeof *files);
    if (!request || !files) {
        free(request);
        free(files);
        return NULL;
    }
    memcpy(files, order->files, order->file_count * sizeof *files);
    request->account = outer->account;
    request->language = order->runs_as;
    payload_from_text(&request->code, source, strlen(source));
    request->has_code = true;
    request->files = files;
    request->file_count = order->file_count;
    for (size_t i = 0; i < 2 && order->arguments[i]; i++)
        request->arguments[request->argument_count++] = order->arguments[i];
    return request;
}

int helper_run_begin(struct run *outer, const struct helper_run_order *order,
                     struct helper_run **ret_helper_run, error *err)
{
    struct helper_run *helper_run = calloc(1, sizeof *helper_run);
    struct run_request *request = NULL;
    if (helper_run)
        helper_run->source = join_parts(order->parts);
    if (helper_run && helper_run->source)
        request = make_request(outer, order, helper_run->source);
    if (!request) {
        free(helper_run ? helper_run->source : NULL);
        free(helper_run);
        return fail(err, ERR_SYSTEM, "no memory for a checker");
    }
    if (run_new_checker(outer, order->place, request, &helper_run->inner, err) < 0) {
        helper_run_free(helper_run);
        return -1;
    }
    helper_run->outer = outer;
    helper_run->told = order->told;
    helper_run->listener = (struct run_listener){ .context = helper_run, .changed = on_changed };
    run_listen(helper_run->inner, &helper_run->listener);
    *ret_helper_run = helper_run;
    runs_enqueue(helper_run->inner);
    return 0;
}
