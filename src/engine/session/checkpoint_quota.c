/* checkpoint_quota.c - bounds on the number of checkpoints and their disk space: per session, per
 * key, and for all. */
#include "engine/session/checkpoints.h"

#include "engine/session/session_internal.h"

#include <string.h>

uint64_t session_checkpoint_bytes(const struct session_checkpoint *checkpoint)
{
    return checkpoint->image.bytes + checkpoint->files.bytes;
}

/* One key leaves half to the others; the owner of the daemon may use all. */
static uint64_t share_of(const struct account *account, uint64_t max)
{
    return account->key.id[0] ? max / 2 : max;
}

static bool has_room(uint64_t taken, uint64_t more, uint64_t max)
{
    return taken <= max && more <= max - taken;
}

static uint64_t bytes_of_all(const struct session *session)
{
    uint64_t bytes = 0;
    for (const struct session_checkpoint *checkpoint = session->checkpoints; checkpoint;
         checkpoint = checkpoint->older)
        bytes += session_checkpoint_bytes(checkpoint);
    return bytes;
}

int session_checkpoint_grows(void *user, uint64_t bytes, error *err)
{
    struct session_checkpoint_part *part = user;
    struct account *account = part->checkpoint->session->account;
    struct sessions *sessions = part->checkpoint->session->sessions;
    uint64_t max = sessions->session_checkpoint_bytes_max;
    const struct policy *policy = part->checkpoint->session->plan.policy;
    uint64_t of_session = 0;
    if (policy_bounds_sessions(policy, SESSIONS_CHECKPOINTS_SIZE, &of_session) &&
        bytes_of_all(part->checkpoint->session) + bytes > of_session)
        return fail(err, ERR_LIMIT,
                    "policy %s gives the checkpoints of a session %llu MiB "
                    "(sessions.checkpoints_size); remove "
                    "some, or keep less in the session",
                    policy->name, (unsigned long long) (of_session >> 20));
    uint64_t share = share_of(account, max);
    if (!has_room(sessions->session_checkpoint_bytes, bytes, max))
        return fail(
            err, ERR_BUSY,
            "checkpoints of all sessions may have %llu MiB (setting checkpoints_mib); remove some",
            (unsigned long long) (max >> 20));
    if (!has_room(account->session_checkpoint_bytes, bytes, share))
        return fail(err, ERR_BUSY,
                    "checkpoints of one key may have %llu MiB (half of setting checkpoints_mib); "
                    "remove some",
                    (unsigned long long) (share >> 20));
    part->bytes += bytes;
    account->session_checkpoint_bytes += bytes;
    sessions->session_checkpoint_bytes += bytes;
    return 0;
}

static int check_policy(const struct session *session, error *err)
{
    const struct policy *policy = session->plan.policy;
    uint64_t max = 0;
    if (!policy_bounds_sessions(policy, SESSIONS_CHECKPOINTS, &max) ||
        session->session_checkpoint_count < max)
        return 0;
    if (max == 0)
        return fail(err, ERR_LIMIT, "policy %s allows no checkpoints", policy->name);
    return fail(err, ERR_BUSY, "policy %s allows a session %llu checkpoints; remove one",
                policy->name, (unsigned long long) max);
}

int session_checkpoint_check_room(const struct session *session, const char *name, error *err)
{
    if (check_policy(session, err) < 0)
        return -1;
    if (session->session_checkpoint_count >= CHECKPOINTS_MAX)
        return fail(err, ERR_BUSY,
                    "the session has %u checkpoints, and may have no more; remove one",
                    session->session_checkpoint_count);
    if (session->sessions->session_checkpoint_count >= CHECKPOINTS_ALL_MAX)
        return fail(err, ERR_BUSY, "all sessions together have %d checkpoints already; remove some",
                    CHECKPOINTS_ALL_MAX);
    if (session->account->session_checkpoint_count >=
        share_of(session->account, CHECKPOINTS_ALL_MAX))
        return fail(err, ERR_BUSY, "the sessions of this key have %u checkpoints; remove some",
                    session->account->session_checkpoint_count);
    for (const struct session_checkpoint *checkpoint = session->checkpoints; name[0] && checkpoint;
         checkpoint = checkpoint->older)
        if (strcmp(checkpoint->name, name) == 0)
            return fail(err, ERR_CONFLICT,
                        "the session has a checkpoint of the name '%s' already; choose another, or "
                        "delete it",
                        name);
    return 0;
}
