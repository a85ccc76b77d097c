/* transfer_counts.c - see transfer_counts.h. */
#include "engine/session/transfer_counts.h"

#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/session/session_registry.h"

enum { TELL_EVERY_MS = 60000 };

static const char *const words[DEEDS] = {
#define DEED(name, word) [DEED_##name] = (word),
#include "engine/session/transfer_counts.def"
};

void session_count(struct session *session, enum session_deed deed, uint64_t count)
{
    session->deeds.done[deed] += count;
}

static struct event_field number_field(const char *name, uint64_t number)
{
    const uint64_t most = (UINT64_C(1) << 53) - 1;
    return (struct event_field){ name, NULL, (int64_t) (number < most ? number : most) };
}

void session_tell_deeds(struct session *session, bool now)
{
    struct receipts *receipts = session->sessions->runs->receipts;
    struct session_deeds *deeds = &session->deeds;
    const struct api_key *key = session->account ? &session->account->key : NULL;
    struct event_field fields[DEEDS + 4];
    unsigned count = 0;
    bool is_told = true;
    error err;
    for (enum session_deed deed = 0; deed < DEEDS; deed++) {
        fields[count++] = number_field(words[deed], deeds->done[deed] - deeds->told[deed]);
        is_told = is_told && deeds->done[deed] == deeds->told[deed];
    }
    if (is_told || !receipts || !key || (!now && !deadline_has_passed(deeds->next)))
        return;
    fields[count++] = (struct event_field){ "key", key->id[0] ? key->id : "owner", 0 };
    fields[count++] = (struct event_field){ "session", session->id, 0 };
    fields[count++] = (struct event_field){ "tenant", key->tenant, 0 };
    fields[count] = (struct event_field){ 0 };
    deeds->next = deadline_in(TELL_EVERY_MS);
    if (audit_write(receipts, "session.transfers", fields, &err) < 0) {
        log_event(LOG_WARNING, "session.not_in_log", TEXT("session", session->id),
                  TEXT("cause", err.text));
        return; /* it is told with what comes next */
    }
    account_charge_log(session->account, receipts_last_size(receipts));
    for (enum session_deed deed = 0; deed < DEEDS; deed++)
        deeds->told[deed] = deeds->done[deed];
}

unsigned session_summary(const struct session *session, struct event_field fields[SESSION_SUMMARY])
{
    struct session_usage usage = session_usage(session);
    unsigned count = 0;
    for (enum session_deed deed = 0; deed < DEEDS; deed++)
        fields[count++] = number_field(words[deed], session->deeds.done[deed]);
    fields[count++] = number_field("cells", session->cells);
    fields[count++] = number_field("processes", session->processes);
    fields[count++] = number_field("connections", session->way_used.connections);
    fields[count++] = number_field("connections_refused", session->way_used.refused);
    fields[count++] = number_field("network_sent", session->way_used.sent);
    fields[count++] = number_field("network_received", session->way_used.received);
    fields[count++] = number_field("cpu_ms", usage.cpu_us / 1000);
    fields[count++] = number_field("memory_peak_bytes", usage.memory_peak_bytes);
    fields[count++] = number_field("processes_peak", usage.processes_peak);
    return count;
}
