/* upgrade.c - a connection that leaves HTTP, for servers and terminals inside a session. */
#include "doors/http/http_internal.h"

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's own signature */
static void on_upgraded(void *context, struct MHD_Connection *mhd, void *request, const char *early,
                        size_t early_size, MHD_socket socket,
                        struct MHD_UpgradeResponseHandle *handle)
{
    (void) mhd;
    (void) context;
    struct exchange *exchange = request;
    exchange->upgraded = handle;
    exchange_stop_watching(exchange); /* libuv allows one watcher per descriptor */
    exchange->upgrade->opened(exchange, socket, early, early_size);
}

void exchange_upgrade(struct exchange *exchange, const char *protocol,
                      const struct upgrade *upgrade)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgraded, NULL);
    if (!response)
        return;
    exchange->upgrade = upgrade;
    exchange_add_header(exchange, MHD_HTTP_HEADER_UPGRADE, protocol);
    exchange_queue(exchange, MHD_HTTP_SWITCHING_PROTOCOLS, response, NULL);
}

uv_loop_t *exchange_loop(const struct exchange *exchange)
{
    return exchange->http->loop;
}

void exchange_downgrade(struct exchange *exchange)
{
    if (!exchange->upgraded)
        return;
    struct MHD_UpgradeResponseHandle *handle = exchange->upgraded;
    exchange->upgraded = NULL;
    exchange->http->is_woken = true;
    (void) MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

void exchange_close_upgraded(struct exchange *exchange)
{
    if (!exchange->upgraded)
        return;
    exchange->upgrade->closing(exchange);
    exchange_downgrade(exchange);
}

void close_upgraded_without_key(struct http *http)
{
    for (const struct connection *connection = http->connections; connection;
         connection = connection->next) {
        struct exchange *exchange = connection->exchange;
        if (exchange && exchange->upgraded &&
            !service_caller_is_good(exchange->service, &exchange->caller))
            exchange_close_upgraded(exchange);
    }
}
