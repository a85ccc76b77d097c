/* metrics_test.c - each counter is written, with its labels. */
#include "engine/observe/metrics.h"

#include "base/bytes.h"
#include "base/table.h"
#include "base/test.h"
#include "model/outcome.h"

#include <string.h>

TEST(numbers_stand_where_their_labels_say)
{
    static const char *const lines[] = {
        "# TYPE glovebox_runs_total counter\n",
        "\nglovebox_runs_total{status=\"limit\"} 3\n",
        "\nglovebox_runs_total{status=\"ok\"} 0\n",
        "\nglovebox_pool_idle 7\n",
        "# TYPE glovebox_cpu_seconds_total counter\nglovebox_cpu_seconds_total 1.500002\n",
        "\nglovebox_queue_seconds_bucket{le=\"0.0005\"} 1\n",
        "\nglovebox_queue_seconds_bucket{le=\"0.0010\"} 2\n", /* cumulative */
        "\nglovebox_queue_seconds_bucket{le=\"60.0000\"} 2\n",
        "\nglovebox_queue_seconds_bucket{le=\"+Inf\"} 3\n",
        "\nglovebox_queue_seconds_sum 90.001100\n",
        "\nglovebox_queue_seconds_count 3\n",
        "\nglovebox_run_seconds_bucket{start=\"parked\",le=\"0.0050\"} 1\n",
        "\nglovebox_http_requests_total{class=\"5xx\"} 2\n",
        "\nglovebox_denials_total{layer=\"artifact\",reason=\"link\"} 4\n",
        "\nglovebox_denials_total{layer=\"precheck\",reason=\"ask\"} 0\n",
    };
    metric_add(METRIC_RUNS, RUN_LIMIT, 3);
    metric_add(METRIC_DENIALS, DENIAL_LINK, 4);
    metric_set(METRIC_IDLE, 0, 7);
    metric_add(METRIC_CPU_TIME, 0, 1500000);
    metric_add(METRIC_CPU_TIME, 0, 2);
    metric_observe(METRIC_QUEUE_TIME, 0, 100);
    metric_observe(METRIC_QUEUE_TIME, 0, 1000);
    metric_observe(METRIC_QUEUE_TIME, 0, 90000000);
    metric_observe(METRIC_RUN_TIME, 1, 4000);
    metric_add(METRIC_REQUESTS, 5, 1);
    metric_add(METRIC_REQUESTS, 99, 1); /* an unknown index counts as the last word */
    struct bytes text = { 0 };
    metrics_write(&text);
    for_each(line, lines)
        expect(strstr(bytes_text(&text), *line), "missing: %s", *line);
    bytes_done(&text);
}

TESTS(CASE(numbers_stand_where_their_labels_say))
