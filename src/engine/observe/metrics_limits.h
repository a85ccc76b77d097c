/* metrics_limits.h - how many runs reached which limit under which policy. Only the operator adds
 * policies, so no request can make this grow. Global counters, as in metrics.h. */
#pragma once

#include "base/bytes.h"
#include "model/limits.h"

#include <stdbool.h>

/* A run of this policy has reached the limit, whether it ended the run or not. */
void limit_counts_add(const char *policy, enum limit_id limit, bool has_ended);

/* Writes the families of metrics.def with the label POLICY_LIMIT, as text for Prometheus. */
void limit_counts_write(struct bytes *out);
