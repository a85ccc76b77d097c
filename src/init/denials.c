/* denials.c - the filter hands refused system calls to us; we answer with the errno of their row
 * and tell gloveboxd. The call is never carried out, so there is nothing to race with
 * (seccomp_unotify(2), "design goals"): no memory of the program is read. */
#include "init/init.h"

#include "seccomp/refusals.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void answer_denial(struct sandbox *sandbox, uint32_t id, int *listener)
{
    struct seccomp_notif seen = { 0 };
    if (ioctl(*listener, SECCOMP_IOCTL_NOTIF_RECV, &seen) < 0)
        return; /* ENOENT: the caller died meanwhile */
    uint64_t arguments[6];
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = seen.data.args[i];
    const struct refusal *refusal = find_refusal((uint32_t) seen.data.nr, arguments);
    int os = refusal ? refusal->os : EPERM;
    struct seccomp_notif_resp answer = { .id = seen.id, .error = -os };
    (void) ioctl(*listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);

    if (sandbox->denials >= INSIDE_DENIALS_MOST)
        return; /* of a session, whose next cell is told again */
    struct inside_denial denial = { .call = (uint32_t) seen.data.nr, .os = os, .pid = seen.pid };
    memcpy(denial.arguments, arguments, sizeof denial.arguments);
    send_frame(sandbox, INSIDE_DENIAL, 0, id, &denial, sizeof denial, NULL, 0);
    if (++sandbox->denials < INSIDE_DENIALS_MOST || sandbox->is_kept)
        return;
    /* Enough: without a listener the kernel itself answers ENOSYS, at full speed. */
    (void) close(*listener);
    *listener = -1;
}
