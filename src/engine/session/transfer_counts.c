/* transfer_counts.c - see transfer_counts.h. */
#include "engine/session/transfer_counts.h"

#include "engine/observe/log.h"
#include "engine/session/session_internal.h"
#include "policy/policy_permits.h"

enum { TELL_EVERY_MS = 60000 };

static const char *const words[TRANSFERS] = {
#define TRANSFER(name, word) [TRANSFER_##name] = (word),
#include "engine/session/transfer_counts.def"
};

void session_count(struct session *session, enum session_deed transfer, uint64_t count)
{
    session->transfer_counts.done[transfer] += count;
}

static struct event_field number_field(const char *name, uint64_t number)
{
    const uint64_t max = (UINT64_C(1) << 53) - 1;
    return (struct event_field){ name, NULL, (int64_t) (number < max ? number : max) };
}

void session_tell_deeds(struct session *session, bool now)
{
    struct session_deeds *transfer_counts = &session->transfer_counts;
    const struct api_key *key = session->account ? &session->account->key : NULL;
    struct event_field fields[TRANSFERS + 4];
    unsigned count = 0;
    bool is_told = true;
    error err;
    for (enum session_deed transfer = 0; transfer < TRANSFERS; transfer++) {
        fields[count++] = number_field(words[transfer], transfer_counts->done[transfer] -
                                                            transfer_counts->told[transfer]);
        is_told = is_told && transfer_counts->done[transfer] == transfer_counts->told[transfer];
    }
    if (is_told || !session->sessions->runs->receipts || !key ||
        (!now && !deadline_has_passed(transfer_counts->next)))
        return;
    fields[count++] = (struct event_field){ "key", key->id[0] ? key->id : "owner", 0 };
    fields[count++] = (struct event_field){ "session", session->id, 0 };
    fields[count++] = (struct event_field){ "tenant", key->tenant, 0 };
    fields[count] = (struct event_field){ 0 };
    transfer_counts->next = deadline_in(TELL_EVERY_MS);
    if (session_write_event(session, "session.transfers", fields, &err) < 0) {
        log_event(AUDIT_WRITE_FAILED, TEXT("session", session->id), TEXT("cause", err.text));
        return; /* counted in the next record */
    }
    for (enum session_deed transfer = 0; transfer < TRANSFERS; transfer++)
        transfer_counts->told[transfer] = transfer_counts->done[transfer];
}

bool session_usage_is_withheld(const struct session *session)
{
    return session->plan.policy && policy_withholds(session->plan.policy);
}

unsigned session_summary(const struct session *session, struct event_field fields[SESSION_SUMMARY])
{
    struct session_usage usage = session_usage(session);
    unsigned count = 0;
    for (enum session_deed transfer = 0; transfer < TRANSFERS; transfer++)
        fields[count++] = number_field(words[transfer], session->transfer_counts.done[transfer]);
    fields[count++] = number_field("cells", session->cells);
    fields[count++] = number_field("processes", session->processes);
    if (session_usage_is_withheld(session))
        return count;
    fields[count++] = number_field("connections", session->route_used.connections);
    fields[count++] = number_field("connections_refused", session->route_used.refused);
    fields[count++] = number_field("network_sent", session->route_used.sent);
    fields[count++] = number_field("network_received", session->route_used.received);
    fields[count++] = number_field("cpu_ms", usage.cpu_us / 1000);
    fields[count++] = number_field("memory_peak_bytes", usage.memory_peak_bytes);
    fields[count++] = number_field("processes_peak", usage.processes_peak);
    return count;
}
