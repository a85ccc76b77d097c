/* glovebox-init - the fork server of a template, and pid 1 of each sandbox that is cloned from it.
 *
 * The clone does not exec: a sandbox costs one clone(2) of this small static process. */
#include "init/init.h"

#include "base/packet.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sandbox sandbox; /* filled in the clone; the fork server's own stays empty */

/* The report socket stays open: the spawner may ask for one more interpreter. */
void report_ready(struct sandbox *stands, const error *err)
{
    struct build_ready ready = {
        .slot = stands->spec.slot,
        .generation = stands->spec.generation,
        .walls = stands->walls,
        .degraded = stands->degraded,
        .err = *err,
    };
    bool has_ends = err->code == ERR_NONE && stands->spec.start == SPAWN_FORKED;
    error unheard;
    (void) packet_send(stands->report, BUILD_READY, &ready, sizeof ready, stands->ends,
                       has_ends ? 4 : 0, &unheard);
    for (unsigned i = 0; i < 4 && has_ends; i++)
        (void) close(stands->ends[i]);
}

/* All programs of sandboxes inherit from this process. execve(2) keeps ignored signals: SIGHUP of
 * nohup(1), SIGINT of a shell's background job, and 32 and 33 of glibc's posix_spawn(), which
 * glibc's sigaction() refuses to change; hence the raw calls. */
static void reset_signals(void)
{
    enum { SIGNALS = 64, MASK_SIZE = SIGNALS / 8 };
    static const struct { /* the kernel's struct, which is not that of sigaction(3) */
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard;
    const uint64_t none = 0;
    for (int number = 1; number <= SIGNALS; number++)
        (void) syscall(SYS_rt_sigaction, number, &standard, NULL, MASK_SIZE);
    (void) syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, MASK_SIZE);
}

int main(int count, char **arguments)
{
    error err = { 0 };
    if (count < 2 || strcmp(arguments[1], "holder") != 0) {
        (void) fprintf(stderr, "glovebox-init: only glovebox-spawner can start this program\n");
        return 125;
    }
    reset_signals();
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) { /* a closed socket must not kill init */
        (void) fprintf(stderr, "glovebox-init: cannot ignore SIGPIPE; nothing is started\n");
        return 1;
    }
    if (fork_server_main(&sandbox, &err) < 0)
        return 1; /* the spawner knows the cause, or has ended */

    /* From here on: pid 1 of a new sandbox. */
    int children = -1;
    if (build_sandbox(&sandbox, &err) < 0 || (children = watch_children(&err)) < 0) {
        report_ready(&sandbox, &err);
        return 1;
    }
    report_ready(&sandbox, &(error){ 0 });
    serve(&sandbox, children);
}
