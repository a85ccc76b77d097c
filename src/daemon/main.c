/* gloveboxd - serves runs over HTTP. Unprivileged; one event loop, and four threads for the disk.
 *
 * The command line gives it all that it needs: sockets by number, templates and policies by path
 * (options.c). When all is open it loads its own seccomp filter. With --private it ends with its
 * last connection. */
#include "base/clock.h"
#include "base/error.h"
#include "base/io_uring.h"
#include "base/open_files.h"
#include "base/signals.h"
#include "daemon/config.h"
#include "daemon/confine.h"
#include "daemon/heap_trim.h"
#include "daemon/idle_exit.h"
#include "daemon/liveness.h"
#include "daemon/options.h"
#include "daemon/template_watch.h"
#include "doors/http/authenticate.h"
#include "doors/http/request_guard.h"
#include "doors/rest/rest.h"
#include "engine/approval/approvals.h"
#include "engine/audit/audit_log.h"
#include "engine/network/egress_client.h"
#include "engine/observe/log.h"
#include "engine/observe/log_writer.h"
#include "engine/observe/loop_monitor.h"
#include "engine/observe/notify_client.h"
#include "engine/process/processes.h"
#include "engine/run/lost_runs.h"
#include "engine/schedule/accounts.h"
#include "engine/service/run_stages.h"
#include "engine/service/takeover.h"
#include "engine/session/session_registry.h"
#include "engine/store/idempotency.h"

#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { EXIT_USAGE = 125 };
enum { DRAIN_MAX_MS = 50000, CANCEL_MAX_MS = 5000, DRAIN_LOOK_MS = 20, HELLO_MAX_MS = 5000 };

static const uint64_t body_max = UINT64_C(64) << 20;
static const uint64_t body_max_private = UINT64_C(1) << 30;

static struct options settings = { .spawner = -1, .egress = -1, .notify = -1, .control = -1 };

static struct daemon {
    uv_loop_t loop;
    struct spawner_link spawner;
    struct pool pool;
    struct policies policies;
    struct templates templates;
    struct blob_store *blobs;
    struct receipts *receipts;
    struct approvals *approvals;
    struct network *network;
    struct notify_client *notify_client;
    struct traffic traffic;
    struct accounts accounts;
    struct reload reload;
    struct runs runs;
    struct sessions sessions;
    struct http *http;
    struct http_patience patience;
    struct guard_names names;
    struct processes processes;
    struct service service;
    struct takeover takeover;
    struct idle_exit idle_exit;
    struct template_watch template_watch;
    uv_signal_t terminated, interrupted;
    uv_timer_t drained;
    deadline drain_ends;
    bool is_ending;
} daemon_ = { .templates = { .changed = template_watch_told, .context = &daemon_.template_watch } };

/* --- the end ---------------------------------------------------------------------------------- */

/* Cancels all runs and closes all handles; the loop ends after the last one is closed. */
static void end(void)
{
    if (daemon_.is_ending)
        return;
    daemon_.is_ending = true;
    log_event(DAEMON_STOPPING, COUNT("active", daemon_.runs.active));
    http_close(daemon_.http);
    sessions_close(&daemon_.sessions);
    processes_close(&daemon_.processes);
    runs_close(&daemon_.runs);
    reload_close(&daemon_.reload);
    accounts_close(&daemon_.accounts);
    pool_close(&daemon_.pool);
    spawner_close(&daemon_.spawner);
    network_close(daemon_.network);
    approvals_leave(daemon_.approvals);
    takeover_close(&daemon_.takeover);
    idempotency_leave(daemon_.service.idempotency);
    receipts_leave(daemon_.receipts);
    blobs_leave(daemon_.blobs);
    notify_client_leave(daemon_.notify_client);
    loop_monitor_close();
    heap_trim_close();
    liveness_close();
    idle_exit_close(&daemon_.idle_exit);
    template_watch_close(&daemon_.template_watch);
    uv_close((uv_handle_t *) &daemon_.drained, NULL);
    uv_close((uv_handle_t *) &daemon_.terminated, NULL);
    uv_close((uv_handle_t *) &daemon_.interrupted, NULL);
}

static void look_if_drained(uv_timer_t *timer)
{
    (void) timer;
    bool is_drained =
        daemon_.runs.active == 0 && daemon_.runs.queued == 0 && http_is_idle(daemon_.http);
    if (is_drained || deadline_has_passed(daemon_.drain_ends))
        end();
}

/* The first signal lets runs finish and accepts no new ones; the second cancels them. */
static void on_signal(uv_signal_t *handle, int number)
{
    (void) handle;
    (void) number;
    if (daemon_.is_ending)
        return;
    http_stop_listening(daemon_.http);
    daemon_.drain_ends = deadline_in(daemon_.runs.is_closing ? CANCEL_MAX_MS : DRAIN_MAX_MS);
    if (!daemon_.runs.is_closing)
        sessions_leave(&daemon_.sessions);
    if (daemon_.runs.is_closing)
        runs_cancel(&daemon_.runs);
    daemon_.runs.is_closing = true;
    traffic_tell(&daemon_.traffic); /* ends requests that only watch or wait for a person */
    approvals_tell(daemon_.approvals);
    (void) uv_timer_start(&daemon_.drained, look_if_drained, 0, DRAIN_LOOK_MS);
}

static void on_last_closed(struct service *service)
{
    (void) service;
    if (settings.is_private)
        uv_stop(&daemon_.loop); /* libmicrohttpd is on the stack, so main() does the rest */
}

static void on_pool_changed(void *context)
{
    (void) context;
    if (daemon_.is_ending)
        return;
    if (!daemon_.spawner.is_open && daemon_.http)
        http_stop_listening(daemon_.http); /* the next instance accepts connections */
    runs_proceed(&daemon_.runs);
    sessions_proceed(&daemon_.sessions);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static int open_loop(error *err)
{
    if (refuse_io_uring(err) < 0)
        return -1;
    int result = uv_loop_init(&daemon_.loop);
    if (result < 0)
        return fail(err, ERR_SYSTEM, "make the event loop: %s", uv_strerror(result));
    loop_monitor_open(&daemon_.loop);
    (void) uv_timer_init(&daemon_.loop, &daemon_.drained);
    (void) uv_signal_init(&daemon_.loop, &daemon_.terminated);
    (void) uv_signal_init(&daemon_.loop, &daemon_.interrupted);
    (void) uv_signal_start(&daemon_.terminated, on_signal, SIGTERM);
    (void) uv_signal_start(&daemon_.interrupted, on_signal, SIGINT);
    uv_unref((uv_handle_t *) &daemon_.terminated);
    uv_unref((uv_handle_t *) &daemon_.interrupted);
    return 0;
}

#define DOOR(name, text) extern const struct door name##_door;
#include "daemon/doors.def"
#undef DOOR
static const struct door *const doors[] = {
#define DOOR(name, text) &name##_door,
#include "daemon/doors.def"
#undef DOOR
    NULL,
};

static int open_doors(error *err)
{
    daemon_.processes.loop = &daemon_.loop;
    daemon_.service =
        (struct service){ .approval_url = daemon_.service.approval_url,
                          .accounts = &daemon_.accounts,
                          .tcp_needs_no_key =
                              daemon_.reload.settings.list[SETTING_no_keys].number != 0,
                          .runs = &daemon_.runs,
                          .sessions = &daemon_.sessions,
                          .policies = &daemon_.policies,
                          .templates = &daemon_.templates,
                          .blobs = daemon_.blobs,
                          .receipts = daemon_.receipts,
                          .approvals = daemon_.approvals,
                          .processes = &daemon_.processes,
                          .traffic = &daemon_.traffic };
    const struct idempotency_settings keys = { .loop = &daemon_.loop,
                                               .state = settings.is_private ? NULL : settings.state,
                                               .sync_each = receipts_sync_each(daemon_.receipts) };
    if (idempotency_open(&keys, &daemon_.service.idempotency, err) < 0 ||
        (!settings.is_private &&
         lost_runs_open(daemon_.receipts, &daemon_.service.lost_runs, err) < 0))
        return -1;
    takeover_open(&daemon_.takeover, &daemon_.loop, &daemon_.service);
    struct http_settings http = { .doors = doors,
                                  .service = &daemon_.service,
                                  .body_max = settings.is_private ? body_max_private : body_max,
                                  .owner = settings.owner,
                                  .admit = identify,
                                  .answering = add_identity_headers,
                                  .ended = metrics_request_ended,
                                  .is_private = settings.is_private,
                                  .patience = settings.is_private ? NULL : &daemon_.patience,
                                  .names = settings.is_private ? NULL : &daemon_.names,
                                  .last_closed = on_last_closed };
    if (http_open(&daemon_.loop, &http, &daemon_.http, err) < 0)
        return -1;
    for (size_t i = 0; i < settings.listens.count; i++)
        if (http_listen(daemon_.http, settings.listens.list[i], err) < 0)
            return -1;
    for (size_t i = 0; i < settings.connections.count; i++)
        if (http_serve(daemon_.http, settings.connections.list[i], err) < 0)
            return -1;
    return 0;
}

static struct blob_bounds blob_bounds(const struct settings *from)
{
    return (struct blob_bounds){ .bytes = from->list[SETTING_artifacts_mib].number << 20,
                                 .count = from->list[SETTING_artifacts].number };
}

static void on_applied(const struct settings *fresh)
{
    const struct blob_bounds bounds = blob_bounds(fresh);
    blobs_bound(daemon_.blobs, &bounds);
    daemon_.sessions.session_checkpoint_bytes_max = fresh->list[SETTING_checkpoints_mib].number
                                                    << 20;
    daemon_.service.approval_url = fresh->list[SETTING_approval_url].text;
    daemon_.idle_exit.seconds = (unsigned) fresh->list[SETTING_idle_exit].number;
    (void) snprintf(daemon_.names.hosts, sizeof daemon_.names.hosts, "%s",
                    fresh->list[SETTING_public_hosts].text);
    (void) snprintf(daemon_.names.origins, sizeof daemon_.names.origins, "%s",
                    fresh->list[SETTING_allowed_origins].text);
    daemon_.patience = (struct http_patience){
        .idle_s = (unsigned) fresh->list[SETTING_idle_seconds].number,
        .header_s = (unsigned) fresh->list[SETTING_header_seconds].number,
        .body_s = (unsigned) fresh->list[SETTING_body_seconds].number,
    };
}

static bool is_used(void)
{
    return http_connection_count(daemon_.http) > 0 || daemon_.runs.active > 0 ||
           daemon_.runs.queued > 0 || daemon_.sessions.alive > 0;
}

static int64_t used_ms(void)
{
    return http_used_ms(daemon_.http);
}

/* A private gloveboxd keeps no parked sandboxes. */
static int read_settings(error *err)
{
    daemon_.reload = (struct reload){ .runs = &daemon_.runs,
                                      .accounts = &daemon_.accounts,
                                      .policies = &daemon_.policies,
                                      .pool = &daemon_.pool,
                                      .policies_path = settings.policies,
                                      .applied = on_applied,
                                      .is_private = settings.is_private };
    settings_init(&daemon_.reload.settings);
    return settings.values ? reload_read(settings.values, &daemon_.reload.settings, err) : 0;
}

static int open_blobs(error *err)
{
    const struct blob_bounds bounds = blob_bounds(&daemon_.reload.settings);
    if (blobs_open(settings.is_private ? NULL : settings.state, &bounds, &daemon_.blobs, err) < 0)
        return -1;
    blobs_sync_on(daemon_.blobs, &daemon_.loop);
    return 0;
}

static int open_approvals(error *err)
{
    const struct approvals_place place = {
        .state = settings.is_private ? NULL : settings.state,
        .accounts = &daemon_.accounts,
        .receipts = daemon_.receipts,
        .notify_client = daemon_.notify_client,
        .page_url = &daemon_.service.approval_url,
    };
    return approvals_open(&daemon_.loop, &place, &daemon_.approvals, err);
}

/* Opens the log of receipts, and the connection to glovebox-notify that its checkpoints take. */
static int open_log(error *err)
{
    const struct settings *values = &daemon_.reload.settings;
    settings.receipts.state = settings.state;
    if (!settings.state)
        return fail(err, ERR_BAD_REQUEST, "--state must be given: the log of receipts lies there");
    const struct notify_places places = {
        .has_webhook = settings.has_webhook,
        .has_traces = settings_text(values, SETTING_otlp_endpoint) != NULL,
    };
    if (settings.notify >= 0 && notify_client_open(&daemon_.loop, settings.notify, &places,
                                                   &daemon_.notify_client, err) < 0)
        return -1;
    settings.receipts.notify_client = daemon_.notify_client;
    settings.receipts.sync_each = values->list[SETTING_log_sync].number != 0;
    settings.receipts.keep_bytes = values->list[SETTING_log_keep].number;
    settings.receipts.witness = settings_text(values, SETTING_log_witness);
    return receipts_open(&daemon_.loop, &settings.receipts, &daemon_.receipts, err);
}

/* Settings of the process itself, before anything is opened. */
static int prepare_process(error *err)
{
    signals_outlive();
    if (settings.is_verbose)
        log_until(LOG_DEBUG);
    (void) open_files_raise();
    log_writer_open();
    heap_prepare();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return fail_os(err, "clear the dumpable flag of gloveboxd");
    return sodium_init() < 0 ? fail(err, ERR_SYSTEM, "libsodium cannot start") : 0;
}

/* Runs and sessions use all that was opened before. */
static int open_engine(error *err)
{
    daemon_.runs = (struct runs){ .loop = &daemon_.loop,
                                  .network = daemon_.network,
                                  .pool = &daemon_.pool,
                                  .policies = &daemon_.policies,
                                  .templates = &daemon_.templates,
                                  .blobs = daemon_.blobs,
                                  .receipts = daemon_.receipts,
                                  .approvals = daemon_.approvals,
                                  .stages = &service_run_stages,
                                  .accounts = &daemon_.accounts };
    reload_apply(&daemon_.reload);
    runs_open(&daemon_.runs);
    daemon_.sessions = (struct sessions){ .loop = &daemon_.loop,
                                          .runs = &daemon_.runs,
                                          .pool = &daemon_.pool,
                                          .policies = &daemon_.policies,
                                          .templates = &daemon_.templates,
                                          .activities = session_activities };
    on_applied(&daemon_.reload.settings);
    return sessions_open(&daemon_.sessions, settings.is_private ? NULL : settings.state, err);
}

static int begin(error *err)
{
    bool is_for_one = settings.is_private && !settings.is_warm;
    if (prepare_process(err) < 0 ||
        templates_open(&daemon_.templates, settings.templates, settings.first_template, err) < 0 ||
        template_watch_tell(&daemon_.templates, settings.spawner, !is_for_one, err) < 0)
        return -1;
    if (policies_load(&daemon_.policies, settings.policies, err) < 0 || open_loop(err) < 0 ||
        read_settings(err) < 0 || open_log(err) < 0 || open_blobs(err) < 0)
        return -1;
    daemon_.pool = (struct pool){ .changed = on_pool_changed };
    if (pool_open(&daemon_.pool, &daemon_.spawner, &daemon_.loop, settings.spawner, err) < 0)
        return -1;
    reload_apply(&daemon_.reload);
    daemon_.template_watch = (struct template_watch){ .templates = &daemon_.templates,
                                                      .policies = &daemon_.policies,
                                                      .pool = &daemon_.pool,
                                                      .spawner = settings.spawner };
    if (!settings.is_private)
        template_watch_keep(&daemon_.template_watch);
    if (accounts_open(&daemon_.accounts, &daemon_.loop, settings.is_private ? NULL : settings.state,
                      err) < 0)
        return -1;
    if (open_approvals(err) < 0)
        return -1;
    if (settings.egress >= 0 &&
        network_open(&daemon_.loop, settings.egress, &daemon_.traffic, &daemon_.network, err) < 0)
        return -1;
    if (open_engine(err) < 0)
        return -1;
    if (settings.control >= 0)
        liveness_open(&daemon_.loop, settings.state, settings.control);
    if (!settings.is_private) {
        heap_trim_open(&daemon_.loop);
        template_watch_open(&daemon_.template_watch, &daemon_.loop);
    }
    /* Nothing is "ready" before glovebox-egress has read its files, which may end the service. */
    if (settings.egress >= 0)
        (void) poll(&(struct pollfd){ .fd = settings.egress, .events = POLLIN }, 1, HELLO_MAX_MS);
    if (reload_tell_policies(&daemon_.reload, err) < 0 || open_doors(err) < 0 ||
        confine_daemon(err) < 0)
        return -1;
    daemon_.idle_exit.is_used = is_used;
    daemon_.idle_exit.used_ms = used_ms;
    daemon_.idle_exit.idempotency = daemon_.service.idempotency;
    daemon_.idle_exit.socket = settings.control;
    if (settings.control >= 0)
        idle_exit_open(&daemon_.idle_exit, &daemon_.loop);
    return settings.control < 0
               ? 0
               : reload_open(&daemon_.reload, &daemon_.loop, settings.control, err);
}

int main(int argc, char **argv)
{
    error err;
    if (options_read(argc, argv, &settings, &err) < 0 || begin(&err) < 0) {
        log_event(DAEMON_CANNOT_START, TEXT("cause", err.text));
        log_writer_close();
        return err.code == ERR_BAD_REQUEST ? EXIT_MISCONFIGURED : EXIT_USAGE;
    }
    (void) uv_run(&daemon_.loop, UV_RUN_DEFAULT);
    end();
    (void) uv_run(&daemon_.loop, UV_RUN_DEFAULT);
    (void) uv_loop_close(&daemon_.loop);
    accounts_done(&daemon_.accounts);
    traffic_done(&daemon_.traffic);
    idempotency_free(daemon_.service.idempotency);
    lost_runs_free(daemon_.service.lost_runs);
    blobs_close(daemon_.blobs);
    approvals_close(daemon_.approvals);
    receipts_close(daemon_.receipts);
    notify_client_close(daemon_.notify_client);
    policies_done(&daemon_.policies);
    templates_done(&daemon_.templates);
    log_writer_close();
    return 0;
}
