/* metrics_limits.h - how many runs met which limit under which policy. Policies are the operator's:
 * no caller can make this grow. Globals, as those of metrics.h. */
#pragma once

#include "base/bytes.h"
#include "model/limits.h"

#include <stdbool.h>

/* A run of this policy has met the limit, and ended for it or not. */
void limit_counts_add(const char *policy, enum limit_id limit, bool has_ended);

/* As text for Prometheus: the families of metrics.def with the label POLICY_LIMIT. */
void limit_counts_write(struct bytes *out);
