/* service_status.h - how the daemon is: its slots, its queue, and whether runs can be started. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct service_load {
    uint32_t slots, in_use; /* in_use: without those that are prewarmed */
    uint32_t idle, building;
    uint32_t active, queued, queued_max;
};
void service_load(const struct service *service, struct service_load *ret_load);

/* Fails  ERR_UNAVAILABLE  no sandbox can be made; else as receipts_have_room(): no receipt can be
 * written. */
int service_check_health(const struct service *service, error *err);
