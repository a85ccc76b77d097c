/* daemon.c - one daemon of a seed: gloveboxd's own main() in a process of its own, without HTTP. */
#include "simulate.h"

#include "base/table.h"
#include "daemon/confine.h"
#include "doors/http/http.h"
#include "engine/audit/audit_log.h"
#include "engine/run/run.h"
#include "engine/store/idempotency.h"
#include "ledger/intents.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct service *sim_service;

int __wrap_http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
                     error *err);
void __wrap_http_close(struct http *http);
void __wrap_http_stop_listening(struct http *http);
bool __wrap_http_is_idle(const struct http *http);
int __wrap_confine_daemon(error *err);
int __real_run_note(struct run *run, const struct run_request *request, error *err);
int __wrap_run_note(struct run *run, const struct run_request *request, error *err);
int __real_intents_note(struct intents *intents, const struct intent *intent, unsigned *ret_slot,
                        error *err);
int __wrap_intents_note(struct intents *intents, const struct intent *intent, unsigned *ret_slot,
                        error *err);
bool __real_account_sees(const struct account *account, const struct account *other);
bool __wrap_account_sees(const struct account *account, const struct account *other);
void __real_spawner_release(struct spawner_link *link, const struct spawn_slot *name);
void __wrap_spawner_release(struct spawner_link *link, const struct spawn_slot *name);
int __real_idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                            const struct replayed *replayed, error *err);
int __wrap_idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                            const struct replayed *replayed, error *err);

/* --- in place of the door --------------------------------------------------------------------- */

static int no_door;

int __wrap_http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
                     error *err)
{
    (void) err;
    sim_loop = loop;
    sim_service = settings->service;
    world->ready_us = world->clock_us;
    *ret_http = (struct http *) &no_door;
    spawner_start();
    life_begin();
    return 0;
}

void __wrap_http_close(struct http *http)
{
    (void) http;
}

void __wrap_http_stop_listening(struct http *http)
{
    (void) http;
}

bool __wrap_http_is_idle(const struct http *http)
{
    (void) http;
    return true;
}

int __wrap_confine_daemon(error *err)
{
    (void) err;
    return 0;
}

/* --- what is looked at, and where bugs are planted -------------------------------------------- */

int __wrap_run_note(struct run *run, const struct run_request *request, error *err)
{
    if (__real_run_note(run, request, err) < 0)
        return -1;
    if (request->has_code && request->code.text)
        world_noted(run->id, request->code.text);
    return 0;
}

int __wrap_intents_note(struct intents *intents, const struct intent *intent, unsigned *ret_slot,
                        error *err)
{
    *ret_slot = NOTE_NONE;
    return world->plant == PLANT_NO_INTENT ? 0
                                           : __real_intents_note(intents, intent, ret_slot, err);
}

bool __wrap_account_sees(const struct account *account, const struct account *other)
{
    return world->plant == PLANT_OTHER_TENANT || __real_account_sees(account, other);
}

void __wrap_spawner_release(struct spawner_link *link, const struct spawn_slot *name)
{
    bool is_hit = world->run_count % 5 == 4;
    if (world->plant == PLANT_LOST_SLOT && is_hit)
        return;
    __real_spawner_release(link, name);
    if (world->plant == PLANT_DOUBLE_FREE && is_hit)
        __real_spawner_release(link, name);
}

int __wrap_idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                            const struct replayed *replayed, error *err)
{
    int kept = __real_idempotency_keep(idempotency, replay, replayed, err);
    if (kept == 0 && world->plant == PLANT_NO_KEY)
        idempotency_drop_last(idempotency);
    return kept;
}

/* --- its life --------------------------------------------------------------------------------- */

static _Noreturn void live(void)
{
    char socket[16];
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    int quiet = world->is_verbose ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (quiet >= 0)
        (void) dup2(quiet, STDERR_FILENO);
    (void) snprintf(socket, sizeof socket, "%d", spawner_begin());
    const char *const words[] = { "gloveboxd",      "--spawner",  socket,          "--templates",
                                  places.templates, "--policies", places.policies, "--state",
                                  places.state,     "--settings", places.settings, NULL };
    sim_is_on = true;
    int status = gloveboxd_main((int) COUNT_OF(words) - 1, (char **) (uintptr_t) words);
    if (status != 0 && world->is_calm)
        finding("gloveboxd does not start on what the ones before have left");
    trace("the daemon ends with %d", status);
    world_daemon_ends(ENDS_WELL);
    _exit(0);
}

void daemon_run(void)
{
    int status = 0;
    (void) fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        live();
    if (waitpid(child, &status, 0) < 0)
        abort();
    if (WIFSIGNALED(status))
        finding("the daemon dies of signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_DIED &&
             WEXITSTATUS(status) != EXIT_FOUND)
        finding("the daemon ends with %d", WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DIED && world->ending == ENDS_POWER_CUT)
        disk_cut();
}
