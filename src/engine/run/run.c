/* run.c - creates and frees runs, and calls their listeners. */
#include "engine/run/run.h"

#include "base/list.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

void run_choose_id(char id[RUN_ID_SIZE])
{
    unsigned char random[16];
    randombytes_buf(random, sizeof random);
    (void) snprintf(id, RUN_ID_SIZE, "run_");
    (void) sodium_bin2hex(id + 4, RUN_ID_SIZE - 4, random, sizeof random);
}

struct run *run_make(struct runs *runs)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->runs = runs;
    run->kind = &run_kind_oneshot;
    run->submitted_us = now_us();
    run->created_ms = wall_clock_ms();
    run_choose_id(run->id);
    evidence_init(&run->evidence);
    run->timer.data = run;
    (void) uv_timer_init(runs->loop, &run->timer);
    run->timer_is_open = true;
    return run;
}

int64_t run_queued_us(const struct run *run)
{
    int64_t left_us = run->leased_us != 0 ? run->leased_us : run->done_us;
    return left_us > run->submitted_us ? left_us - run->submitted_us : 0;
}

static void prepare(struct run *run, struct run_request *request)
{
    run->request = request;
    collector_init(&run->collector, &run->plan.limits, run->plan.policy->name, run->runs->blobs);
    run->collector.owner = output_check_owner(run);
    run->has_harvest = true;
    run_bound_state(run);
}

int run_new(struct runs *runs, struct run_request *request, struct run **ret_run, error *err)
{
    struct run *run = run_make(runs);
    if (!run) {
        request_free(request);
        return fail(err, ERR_SYSTEM, "no memory for a run");
    }
    run->account = request->account;
    run->check_only = request->check_only;
    if (request->run)
        (void) snprintf(run->id, sizeof run->id, "%s", request->run);
    (void) snprintf(run->request_id, sizeof run->request_id, "%s",
                    request->request_id ? request->request_id : "");
    if (run_plan_grant(&run->plan, request, runs->policies, runs->templates, err) < 0 ||
        account_check_policy(run->account, run->plan.policy->name, err) < 0 ||
        (run->plan.network == POLICY_NETWORK_RULES && !run->check_only &&
         network_demand(runs->network, run->plan.policy->name, err) < 0) ||
        (output_check_is_wanted(run->plan.policy, request) &&
         run->runs->stages->prepare_output(run, request, err) < 0) ||
        run_note(run, request, err) < 0) {
        request_free(request);
        run_plan_done(&run->plan);
        run_free(run);
        return -1;
    }
    prepare(run, request);
    *ret_run = run;
    return 0;
}

int run_new_checker(const struct run *outer, const struct run_spec *place,
                    struct run_request *request, struct run **ret_run, error *err)
{
    struct run *run = run_make(outer->runs);
    if (!run) {
        request_free(request);
        return fail(err, ERR_SYSTEM, "no memory for a run");
    }
    run->account = outer->account;
    run->is_checker = true;
    if (run_plan_grant_checker(&run->plan, request, place, err) < 0) {
        request_free(request);
        run_free(run);
        return -1;
    }
    prepare(run, request);
    *ret_run = run;
    return 0;
}

void run_drop(struct run *run)
{
    run_set_state(run, RUN_DONE);
    run_free(run);
}

static void free_output(struct run *run)
{
    if (run->output_check)
        run->runs->stages->free_output(run);
}

void run_release_buffers(struct run *run)
{
    if (run->state != RUN_DONE || run->listeners || !run->has_harvest || run->is_detached)
        return;
    run->has_harvest = false;
    free(run->checks);
    run->checks = NULL;
    free_output(run);
    collector_done(&run->collector);
    connection_log_done(&run->connections);
    run_plan_done(&run->plan);
    request_free(run->request);
    run->request = NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;
    bytes_done(&run->result);
    bytes_done(&run->certificates);
    if (run->kind->free)
        run->kind->free(run);
    template_release(run->plan.template);
    free(run);
}

void run_free(struct run *run)
{
    run->listeners = NULL;
    run->is_detached = false;
    run_release_buffers(run);
    free_output(run);
    run_record_free(run);
    finalize_free(run);
    egress_route_free(run->route);
    uv_close((uv_handle_t *) &run->timer, on_timer_closed);
}

void run_listen(struct run *run, struct run_listener *listener)
{
    listener->next = run->listeners;
    run->listeners = listener;
}

void run_unlisten(struct run *run, struct run_listener *listener)
{
    (void) list_remove(run->listeners, listener, next);
    run_release_buffers(run);
}

void run_notify(struct run *run)
{
    for (struct run_listener *listener = run->listeners, *next; listener; listener = next) {
        next = listener->next;
        listener->changed(listener->context, run);
    }
}

void run_printed(struct run *run)
{
    const struct collector *collector = &run->collector;
    if (output_is_flood(&collector->output[0]) || output_is_flood(&collector->output[1]) ||
        collector_is_flood(collector))
        run_stop_for(run, LIMIT_output);
    run_notify(run);
}
