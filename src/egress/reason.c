/* reason.c - names, texts and HTTP statuses of refusals, from their table. */
#include "egress/egress.h"

static const struct {
    const char *name;
    unsigned status;
    const char *text;
} reasons[EGRESS_REASONS] = {
    [EGRESS_ALLOWED] = { "ALLOWED", 200, "allowed" },
#define REASON(name, status, text) [EGRESS_##name] = { #name, status, text },
#include "contract/egress_reasons.def"
};

const char *reason_name(enum egress_reason reason)
{
    return reasons[reason].name;
}

const char *reason_text(enum egress_reason reason)
{
    return reasons[reason].text;
}

unsigned reason_status(enum egress_reason reason)
{
    return reasons[reason].status;
}
