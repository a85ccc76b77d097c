/* clients.c - data that outlives a message: handshakes, processes of `glovebox mcp`, and keys. It
 * is small for each, and there are at most CLIENTS_MAX of them. */
#include "doors/mcp/mcp.h"

#include "base/list.h"
#include "engine/service/service_sessions.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS_MAX = 4096,
    CLIENTS_OF_ACCOUNT_MAX = 1024,
    IDLE_MS = 3600 * 1000,
    RANDOM_SIZE = 16,
    SESSIONS_BYTES = 1024 /* beyond that those that have ended are removed */
};

static struct mcp_client *clients; /* in the order of their last use, the newest first */
static size_t client_count;

static void unlink_client(const struct mcp_client *client)
{
    (void) list_remove(clients, client, next);
}

static void forget(struct mcp_client *client)
{
    unlink_client(client);
    client_count--;
    mcp_calls_forget_client(client);
    bytes_done(&client->sessions);
    free(client);
}

static void use(struct mcp_client *client)
{
    client->used_ms = now_ms();
    if (clients == client)
        return;
    unlink_client(client);
    client->next = clients;
    clients = client;
}

/* Makes room for one more of `account`: removes the one that was used longest ago, of this account
 * if it has its share, else of all. Processes and their handshakes are never removed. */
static void make_room(const struct account *account)
{
    struct mcp_client *oldest = NULL, *own = NULL;
    size_t count = 0;
    for (struct mcp_client *client = clients; client; client = client->next) {
        bool is_own = client->account == account;
        count += is_own;
        if (client->kind == CLIENT_PROCESS || client->process)
            continue;
        oldest = client;
        own = is_own ? client : own;
    }
    if (own && count >= CLIENTS_OF_ACCOUNT_MAX)
        forget(own);
    else if (oldest && (client_count >= CLIENTS_MAX || now_ms() - oldest->used_ms > IDLE_MS))
        forget(oldest);
}

struct mcp_client *mcp_client_new(enum mcp_client_kind kind, const char *id,
                                  const struct exchange *exchange)
{
    unsigned char random[RANDOM_SIZE];
    make_room(exchange->caller.account);
    struct mcp_client *client = client_count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
    if (!client)
        return NULL;
    client->kind = kind;
    client->account = exchange->caller.account;
    randombytes_buf(random, sizeof random);
    if (id)
        (void) snprintf(client->id, sizeof client->id, "%s", id);
    else
        (void) sodium_bin2hex(client->id, sizeof client->id, random, sizeof random);
    client->used_ms = now_ms();
    client->next = clients;
    clients = client;
    client_count++;
    return client;
}

struct mcp_client *mcp_client_find(enum mcp_client_kind kind, const char *id,
                                   const struct exchange *exchange)
{
    for (struct mcp_client *client = clients; client; client = client->next)
        if (client->kind == kind && client->account == exchange->caller.account &&
            strcmp(client->id, id) == 0) {
            use(client);
            return client;
        }
    return NULL;
}

struct mcp_client *mcp_client_of(struct mcp_call *call)
{
    if (call->client)
        return call->client;
    struct mcp_client *client = mcp_client_find(CLIENT_KEY, "", call->exchange);
    return client ? client : mcp_client_new(CLIENT_KEY, "", call->exchange);
}

struct mcp_client *mcp_client_begin(const struct mcp_call *call)
{
    struct mcp_client *client = NULL;
    for (struct mcp_client *other = clients; other && call->process && !client; other = other->next)
        client = other->process == call->process ? other : NULL;
    if (!client)
        client = mcp_client_new(CLIENT_HANDSHAKE, NULL, call->exchange);
    if (client)
        client->process = call->process;
    return client;
}

static void forget_ended_sessions(struct mcp_client *client, const struct exchange *exchange)
{
    struct bytes alive = { 0 };
    struct session *session;
    error err;
    for (size_t at = 0, size; at < client->sessions.size; at += size) {
        const char *id = client->sessions.data + at;
        size = strlen(id) + 1;
        if (service_session_enter(exchange->service, &exchange->caller, id, &session, &err) == 0)
            bytes_add(&alive, id, size);
    }
    bytes_done(&client->sessions);
    client->sessions = alive;
}

void mcp_client_remember_session(const struct mcp_call *call, const char *session)
{
    struct mcp_client *client = call->process;
    if (client->sessions.size > SESSIONS_BYTES)
        forget_ended_sessions(client, call->exchange);
    bytes_add(&client->sessions, session, strlen(session) + 1);
}

static void end_session(const struct exchange *exchange, const char *id)
{
    struct session *session;
    error err;
    if (id[0] &&
        service_session_look(exchange->service, &exchange->caller, id, &session, &err) == 0)
        service_session_delete(session);
}

void mcp_client_end(struct mcp_client *client, const struct exchange *exchange)
{
    if (client->kind == CLIENT_HANDSHAKE)
        end_session(exchange, client->mine);
    if (client->ended)
        client->ended(client);
    for (size_t at = 0; at < client->sessions.size && !client->sessions.failed;) {
        const char *id = client->sessions.data + at;
        at += strlen(id) + 1;
        end_session(exchange, id);
    }
    for (struct mcp_client *next, *other = clients; other; other = next) {
        next = other->next;
        if (other->process == client)
            forget(other);
    }
    forget(client);
}

/* Takes a client's answer to a request of ours; an unexpected one is dropped. */
void mcp_client_answered(struct mcp_call *call)
{
    struct mcp_call *asked =
        json_object_is_type(call->id, json_type_string)
            ? mcp_call_of_server_request(call, json_object_get_string(call->id))
            : NULL;
    if (asked) {
        asked->server_request[0] = '\0';
        asked->client_answer = json_object_get(call->root);
        mcp_call_wake(asked);
    }
    mcp_accept(call);
}
