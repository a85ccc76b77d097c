/* clients.c - clients of several keys and tenants: each step one of them begins, sends again,
 * follows, cancels, looks at what is another's. In the end everything must come to rest. */
#include "clients_internal.h"

#include "base/bytes.h"
#include "engine/run/run.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service_artifacts.h"
#include "engine/service/service_callers.h"
#include "engine/service/service_contexts.h"
#include "engine/service/service_runs.h"
#include "engine/service/service_sessions.h"
#include "engine/session/session_registry.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCHES_MAX = 24 };

struct client_watch {
    struct watch *watch; /* NULL: free */
    unsigned caller;
    bool reads_events, is_awoken, is_probe;
};

static struct clients {
    bool is_probing;
    bool has_probed[CALLERS]; /* in the calm a run of each succeeds in the end */
    struct client_watch watches[WATCHES_MAX];
} clients;

static struct caller callers[CALLERS];

static void identify(unsigned caller)
{
    error err;
    struct credentials credentials = { .key = places.keys[caller][0] ? places.keys[caller] : NULL,
                                       .is_owner = !places.keys[caller][0] };
    callers[caller] = (struct caller){ .request_id = "simulated" };
    sim_is_outside = true; /* a caller who is not known yet would be refused, which is no story */
    int known = service_identify(sim_service, &credentials, &callers[caller], &err);
    sim_is_outside = false;
    if (known < 0 || !callers[caller].account)
        finding("caller %u is not known any more: %s", caller, err.text);
}

/* Refusals are part of life; a defect of gloveboxd is not. */
static void check_refusal(const char *what, const error *err)
{
    trace("%s is refused: %s", what, err->text);
    if (err->code == ERR_INTERNAL || (world->is_calm && err->code == ERR_SYSTEM))
        finding("%s failed: %s", what, err->text);
}

/* --- watching --------------------------------------------------------------------------------- */

static void close_watch(struct client_watch *row)
{
    struct watch *watch = row->watch;
    row->watch = NULL;
    watch_close(watch);
}

static void read_watch(void *context)
{
    struct client_watch *row = context;
    struct run_event event;
    row->is_awoken = false;
    if (!row->watch)
        return;
    if (row->reads_events)
        while (watch_next(row->watch, &event) == WATCH_EVENT)
            trace("event %s of %zu bytes", run_event_name(event.kind), event.size);
    if (!watch_is_over(row->watch))
        return;
    const struct bytes *result = watch_result(row->watch);
    if (!result->failed) /* else a door answers that it has no memory */
        world_answered(watch_id(row->watch), row->caller, result->data, result->size);
    if (row->is_probe && watch_status(row->watch) == RUN_OK)
        clients.has_probed[row->caller] = true;
    close_watch(row);
}

static void on_woken(void *context)
{
    struct client_watch *row = context;
    if (row->is_awoken)
        return;
    row->is_awoken = true;
    sim_after((int64_t) chance(3) * 1000, read_watch, row);
}

static void cut_now(void *context)
{
    struct client_watch *row = context;
    if (row->watch)
        close_watch(row);
}

static void on_cut(void *context)
{
    sim_after(0, cut_now, context);
}

static struct client_watch *free_watch(void)
{
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        if (!clients.watches[i].watch && !clients.watches[i].is_awoken)
            return &clients.watches[i];
    return NULL;
}

static struct watcher watcher_of(struct client_watch *row, unsigned caller)
{
    row->caller = caller;
    row->reads_events = one_in(2);
    row->is_probe = clients.is_probing;
    return (struct watcher){ .context = row,
                             .woken = on_woken,
                             .cut = on_cut,
                             .hangup = world->is_calm ? HANGUP_DETACHES : (enum hangup) chance(3) };
}

static void keep_watch(struct client_watch *row, struct watch *watch)
{
    row->watch = watch;
    if (watch_is_over(watch))
        on_woken(row);
}

/* --- beginning -------------------------------------------------------------------------------- */

struct cell_starter {
    struct run_starter starter;
    struct json_object *json;
    const char *session;
};

static int begin_cell(struct run_starter *starter, const char *id, struct run **ret_run, error *err)
{
    struct cell_starter *own = (struct cell_starter *) starter;
    const struct cell_order order = {
        .session = own->session, .context = "python", .id = id, .request = own->json
    };
    own->json = NULL;
    return service_cell_begin(starter->service, starter->caller, &order, ret_run, err);
}

static struct json_object *request_of(unsigned order)
{
    const struct sim_order *row = &world->orders[order];
    struct json_object *json = json_object_new_object();
    char code[80];
    (void) snprintf(code, sizeof code, "#order %u %u ", order, row->behaviour);
    json_object_object_add(json, "code", json_object_new_string(code));
    if (row->is_cell)
        return json;
    json_object_object_add(json, "policy", json_object_new_string("minimal"));
    json_object_object_add(json, "language",
                           json_object_new_string(order % 3 == 0 ? "bash" : "python"));
    return json;
}

static void send_order(unsigned order)
{
    struct sim_order *row = &world->orders[order];
    struct client_watch *place = free_watch();
    struct watch *watch = NULL;
    char key[40];
    error err;
    if (!place || (row->is_cell && world->session_count == 0))
        return;
    struct json_object *json = request_of(order);
    struct run_order run = { .watcher = watcher_of(place, row->caller), .json = json };
    (void) snprintf(key, sizeof key, "key-%u", order);
    if (row->has_key)
        run.order.key = key;
    (void) crypto_generichash(run.order.digest, sizeof run.order.digest,
                              (const unsigned char *) &order, sizeof order, NULL, 0);
    trace("caller %u sends order %u%s", row->caller, order, row->has_key ? " with a key" : "");
    const struct caller *caller = &callers[row->caller];
    int result;
    if (row->is_cell) {
        struct cell_starter own = { { begin_cell, sim_service, caller },
                                    json,
                                    world->sessions[order % world->session_count].id };
        result = service_start_once(&own.starter, &run.order, &run.watcher, &watch, &err);
        (void) json_object_put(own.json);
    } else {
        result = service_run(sim_service, caller, &run, &watch, &err);
    }
    if (result < 0)
        check_refusal("an order", &err);
    else
        keep_watch(place, watch);
}

static enum behaviour some_behaviour(void)
{
    return one_in(2) ? DOES_PRINT : (enum behaviour) chance(BEHAVIOURS);
}

static int new_order(unsigned caller, enum behaviour behaviour, bool is_cell)
{
    if (world->order_count == SIM_ORDERS_MAX)
        return -1;
    unsigned order = world->order_count++;
    world->orders[order] = (struct sim_order){ .caller = (uint8_t) caller,
                                               .has_key = !is_cell && !one_in(3),
                                               .is_cell = is_cell,
                                               .behaviour = behaviour };
    return (int) order;
}

static void order_something(void)
{
    int order = new_order((unsigned) chance(CALLERS), some_behaviour(), one_in(3));
    if (order >= 0)
        send_order((unsigned) order);
}

static void order_again(void)
{
    unsigned order = (unsigned) chance(world->order_count);
    if (order < world->order_count && world->orders[order].has_key)
        send_order(order);
}

/* --- what is another's ------------------------------------------------------------------------ */

static void look_at_run(void)
{
    if (world->run_count == 0)
        return;
    const struct sim_run *run = &world->runs[chance(world->run_count)];
    unsigned caller = (unsigned) chance(CALLERS);
    const char *owner = tenant_of(world->orders[run->order].caller);
    struct client_watch *row = free_watch();
    error err;
    if (!row)
        return;
    struct watcher watcher = watcher_of(row, caller);
    watcher.hangup = HANGUP_LEAVES;
    struct watch *watch = service_watch(sim_service, &callers[caller], run->id, &watcher, &err);
    trace("caller %u looks at %s: %s", caller, run->id, watch ? "there" : err.text);
    if (watch && strcmp(owner, tenant_of(caller)) != 0)
        finding("%s sees %s, which is of %s", tenant_of(caller), run->id, owner);
    if (watch)
        keep_watch(row, watch);
}

static const struct sim_run *run_of(const char *id)
{
    for (unsigned i = 0; i < world->run_count; i++)
        if (strcmp(world->runs[i].id, id) == 0)
            return &world->runs[i];
    return NULL;
}

static void on_listed(void *context, const struct run_row *row)
{
    const unsigned *caller = context;
    const struct sim_run *run = run_of(row->id);
    const char *owner = run ? tenant_of(world->orders[run->order].caller) : "nobody";
    if (strcmp(owner, tenant_of(*caller)) != 0)
        finding("%s is shown %s, which is of %s", tenant_of(*caller), row->id, owner);
}

static void list_runs(void)
{
    unsigned caller = (unsigned) chance(CALLERS);
    struct run_page page = {
        .max = 100, .cursor = UINT64_MAX, .context = &caller, .each = on_listed
    };
    error err;
    if (service_list_runs(sim_service, &callers[caller], &page, &err) < 0)
        check_refusal("a list", &err);
}

/* The file of DOES_FILE: one of seven. */
static void get_artifact(void)
{
    static const char hex[] = "0123456789abcdef";
    char text[32], sha256[65];
    unsigned char hash[32];
    unsigned number = (unsigned) chance(7), caller = (unsigned) chance(CALLERS);
    struct artifact_check *check = NULL;
    struct artifact_file file;
    error err;
    int size = snprintf(text, sizeof text, "file of %u", number);
    (void) crypto_hash_sha256(hash, (const unsigned char *) text, (unsigned long long) size);
    for (unsigned i = 0; i < 32; i++) {
        sha256[2 * i] = hex[hash[i] >> 4];
        sha256[2 * i + 1] = hex[hash[i] & 15];
    }
    sha256[64] = '\0';
    int checked = service_artifact_check(sim_service, &callers[caller], sha256, &check, &err);
    if (checked == 1)
        artifact_check_await(check, NULL, NULL);
    if (checked != 0 ||
        service_artifact_open(sim_service, &callers[caller], sha256, &file, &err) < 0)
        return;
    char got[64] = "";
    ssize_t length = pread(file.fd, got, sizeof got - 1, 0);
    (void) close(file.fd);
    if (length != size || memcmp(got, text, (size_t) size) != 0)
        finding("the artifact %.16s has %zd bytes '%.20s' instead of '%s'", sha256, length, got,
                text);
}

/* --- what has begun --------------------------------------------------------------------------- */

static void cancel_something(void)
{
    struct client_watch *row = &clients.watches[chance(WATCHES_MAX)];
    if (!row->watch)
        return;
    trace("caller %u cancels %s", row->caller, watch_id(row->watch));
    watch_cancel(row->watch);
}

static void hang_up(void)
{
    struct client_watch *row = &clients.watches[chance(WATCHES_MAX)];
    if (!row->watch)
        return;
    trace("caller %u hangs up on %s", row->caller, watch_id(row->watch));
    close_watch(row);
}

static void begin_session(void)
{
    struct session *session = NULL;
    struct json_object *json = json_object_new_object();
    unsigned caller = (unsigned) chance(CALLERS);
    struct order order = { 0 };
    struct session_order wanted = { .order = &order, .request = json };
    error err;
    json_object_object_add(json, "policy", json_object_new_string("minimal"));
    if (world->session_count == SIM_SESSIONS_MAX ||
        service_session_begin(sim_service, &callers[caller], &wanted, &session, &err) < 0) {
        trace("caller %u gets no session", caller);
    } else {
        struct sim_session *row = &world->sessions[world->session_count++];
        row->caller = (uint8_t) caller;
        (void) snprintf(row->id, sizeof row->id, "%s", service_session_id(session));
        trace("caller %u begins %s", caller, row->id);
    }
    (void) json_object_put(json);
}

static void use_session(void)
{
    struct session *session = NULL;
    error err;
    if (world->session_count == 0)
        return;
    const struct sim_session *row = &world->sessions[chance(world->session_count)];
    unsigned caller = one_in(4) ? (unsigned) chance(CALLERS) : row->caller;
    int found = service_session_look(sim_service, &callers[caller], row->id, &session, &err);
    trace("caller %u uses %s: %d", caller, row->id, found);
    if (found == 0 && strcmp(tenant_of(row->caller), tenant_of(caller)) != 0)
        finding("%s sees %s, which is of %s", tenant_of(caller), row->id, tenant_of(row->caller));
    if (found < 0 ||
        service_session_enter(sim_service, &callers[caller], row->id, &session, &err) < 0)
        return;
    switch (chance(4)) {
    case 0:
        (void) service_session_pause(session, one_in(2), &err);
        break;
    case 1:
        (void) service_session_resume(session, &err);
        break;
    case 2:
        service_session_delete(session);
        break;
    default: {
        struct context *context;
        bool is_interrupted;
        if (service_context_find(session, "python", &context, &err) == 0 &&
            service_context_interrupt(context, &is_interrupted, &err) == 0)
            trace("interrupted: %d", is_interrupted);
    }
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

void clients_act(void)
{
    static void (*const acts[])(void) = {
        order_something, order_something, order_something,  order_something,  order_again,
        order_again,     order_again,     order_again,      look_at_run,      look_at_run,
        list_runs,       get_artifact,    cancel_something, cancel_something, hang_up,
        begin_session,   use_session,     use_session,
    };
    acts[chance(sizeof acts / sizeof *acts)]();
}

unsigned clients_watching(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        count += clients.watches[i].watch != NULL;
    return count;
}

void clients_cancel_some(void)
{
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        if (clients.watches[i].watch && !clients.watches[i].is_probe && one_in(3))
            watch_cancel(clients.watches[i].watch);
}

void clients_end_sessions(void)
{
    error err;
    for (unsigned i = 0; i < world->session_count; i++) {
        struct session *session;
        const struct sim_session *row = &world->sessions[i];
        if (service_session_enter(sim_service, &callers[row->caller], row->id, &session, &err) == 0)
            service_session_delete(session);
    }
}

const char *clients_probe(void)
{
    bool has_all = true;
    clients.is_probing = true;
    for (unsigned caller = 0; caller < CALLERS; caller++) {
        bool is_under_way = false;
        for (unsigned i = 0; i < WATCHES_MAX; i++)
            is_under_way |= clients.watches[i].watch && clients.watches[i].caller == caller;
        has_all &= clients.has_probed[caller];
        int order =
            clients.has_probed[caller] || is_under_way ? -1 : new_order(caller, DOES_PRINT, false);
        if (order >= 0)
            send_order((unsigned) order);
    }
    return has_all ? NULL : "a run of each caller does not succeed";
}

void clients_come(void)
{
    clients = (struct clients){ .is_probing = false };
    for (unsigned i = 0; i < CALLERS; i++)
        identify(i);
}
