/* processor_shares.h - which tenants get processor time only while other tenants want none.
 *
 * A quarter of the processors is a tenant's own; one that uses more is scheduled as idle
 * (docs/decisions/0180), if there are other tenants. */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* What a tenant uses: thousandths of a processor, of late. */
struct tenant_use {
    int64_t at_us;   /* of the last look; 0: none yet */
    uint64_t cpu_us; /* the counter of its group then */
    uint64_t milli;
    bool is_idle;
};

struct processor_shares {
    uv_timer_t timer;
    struct bytes tenants; /* a struct tenant_use for each, by number */
    uint64_t own_milli;   /* what a tenant may use */
    int64_t last_tenant;  /* that had a sandbox; -1: none yet */
    int64_t several_until_ms;
};

/* How many tenants are scheduled as idle. */
uint32_t processor_shares_idle(const struct processor_shares *shares);

/* Adds what its group has counted, `now_us` being later than the last look. Returns whether it uses
 * more than its own. */
bool tenant_use_add(struct tenant_use *use, int64_t now_us, uint64_t cpu_us, uint64_t own_milli);
