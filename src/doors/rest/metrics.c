/* metrics.c - GET /metrics. */
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/service_metrics.h"

#include <microhttpd.h>

void metrics_request_ended(const struct exchange *exchange)
{
    service_count_request(exchange->status / 100, exchange->body_bytes);
}

static void get_metrics(struct exchange *exchange)
{
    const struct transport_figures figures = { http_connection_count(exchange->http),
                                               http_began_ms(exchange->http) };
    struct bytes text = { 0 };
    service_write_metrics(exchange->service, &figures, &text);
    exchange_answer_as(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/metrics", BODY_NONE, get_metrics, "Counters and gauges in the text format of Prometheus", .mime = "text/plain", .operation = "getMetrics" },
    /* clang-format on */
};

const struct route_table metrics_routes = { "metrics", rows, COUNT_OF(rows), RIGHT_AUDIT,
                                            .text = "For Prometheus" };
