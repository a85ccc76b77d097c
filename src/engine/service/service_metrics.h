/* service_metrics.h - /metrics: counters, and numbers that are computed on request. */
#pragma once

#include "base/bytes.h"
#include "engine/service/service.h"

#include <stdint.h>

/* Counts a request: the first digit of its status, and the bytes of its body. */
void service_count_request(unsigned status_class, uint64_t body_bytes);

/* Numbers of the transport. */
struct transport_figures {
    unsigned connections;
    int64_t began_ms; /* now_ms() when it was opened */
};

/* Adds all metrics in the text format of Prometheus. */
void service_write_metrics(const struct service *service, const struct transport_figures *figures,
                           struct bytes *out);
