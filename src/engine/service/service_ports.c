/* service_ports.c - the bytes of one connection, with a window in each direction. */
#include "engine/service/service_ports.h"

#include "base/bytes.h"
#include "engine/sandbox/agent_error.h"
#include "engine/session/session_registry.h"
#include "policy/policy_permits.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_WINDOW = 256 * 1024, CREDIT_STEP = 64 * 1024 };

struct port_link {
    struct session *session; /* NULL after its end */
    struct session_operation operation;
    struct waker waker;
    bool is_open, has_ended;
    bool is_ended; /* in both directions, or by `failure` */
    bool input_ends, input_has_ended;
    error failure;
    struct bytes in; /* from the server */
    size_t taken;    /* bytes of `in` */
    uint64_t owed;
    struct bytes out; /* to the server, waiting for the window */
    size_t window;
};

static void end_link(struct port_link *link)
{
    if (link->session) {
        session_done(link->session, &link->operation);
        session_let_go(link->session);
    }
    link->session = NULL;
    link->is_ended = true;
    link->has_ended = true;
}

/* Bytes are removed from `out` before the flush, which may call on_room() at once. */
static void send_on(struct port_link *link)
{
    while (link->session && link->window > 0 && link->out.size > 0) {
        size_t part = link->out.size < link->window ? link->out.size : link->window;
        if (part > AGENT_PAYLOAD_MAX)
            part = AGENT_PAYLOAD_MAX;
        struct iovec piece = { link->out.data, part };
        session_send(link->session, &link->operation, AGENT_DATA, &piece, 1);
        session_count(link->session, TRANSFER_PORT_BYTES_IN, part);
        link->window -= part;
        bytes_drop(&link->out, part);
    }
    if (link->session && link->out.size == 0 && link->input_ends && !link->input_has_ended) {
        link->input_has_ended = true;
        session_send(link->session, &link->operation, AGENT_END, NULL, 0);
    }
    if (link->session)
        session_flush(link->session);
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct port_link *link = context;
    struct agent_amount taken;
    switch (frame->kind) {
    case AGENT_OPENED:
        link->is_open = true;
        break;
    case AGENT_DATA:
        if (link->in.size - link->taken + frame->size > PORT_WINDOW)
            return fail(err, ERR_PROTOCOL, "glovebox-init sent more than it was asked for");
        if (link->taken > 0 && link->taken >= link->in.size / 2) { /* each byte moves once */
            bytes_drop(&link->in, link->taken);
            link->taken = 0;
        }
        bytes_add(&link->in, payload, frame->size);
        session_count(link->session, TRANSFER_PORT_BYTES_OUT, frame->size);
        break;
    case AGENT_CREDIT:
        memcpy(&taken, payload, sizeof taken);
        if (taken.bytes > AGENT_WINDOW - link->window)
            return fail(err, ERR_PROTOCOL, "glovebox-init took more than it was given");
        link->window += (size_t) taken.bytes;
        send_on(link);
        break;
    case AGENT_END:
        link->has_ended = true;
        break;
    case AGENT_DONE:
        if (error_of_agent(frame, payload, &link->failure) < 0 && link->failure.code == ERR_POLICY)
            (void) fail(&link->failure, ERR_POLICY,
                        "this session has no loopback; begin it under a policy with network: "
                        "loopback, such as server");
        end_link(link);
        break;
    default:
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for a port",
                    frame->kind);
    }
    link->waker.woken(link->waker.context);
    return 0;
}

static void on_room(void *context)
{
    send_on(context);
}

static void on_ended(void *context, const error *why)
{
    struct port_link *link = context;
    link->session = NULL;
    link->is_ended = link->has_ended = true;
    link->failure = *why;
    link->waker.woken(link->waker.context);
}

int service_port_connect(struct session *session, uint16_t port, const struct waker *waker,
                         struct port_link **ret_link, error *err)
{
    const struct agent_connect connect = { .credit = PORT_WINDOW, .port = port };
    struct port_link *link = calloc(1, sizeof *link);
    if (!link)
        return fail(err, ERR_SYSTEM, "no memory for a connection");
    link->operation = (struct session_operation){
        .context = link, .frame = on_frame, .room = on_room, .ended = on_ended
    };
    link->waker = *waker;
    link->window = AGENT_WINDOW;
    if (policy_permits_uncompared(session_plan(session)->policy, "ports", err) < 0 ||
        session_begin(session, &link->operation, err) < 0) {
        free(link);
        return -1;
    }
    session_hold(session);
    session_count(session, TRANSFER_PORTS, 1);
    link->session = session;
    session_order(link->session, &link->operation, AGENT_CONNECT, &connect, sizeof connect);
    *ret_link = link;
    return 0;
}

void port_link_free(struct port_link *link)
{
    if (!link)
        return;
    session_order(link->session, &link->operation, AGENT_CANCEL, NULL, 0);
    end_link(link);
    bytes_done(&link->in);
    bytes_done(&link->out);
    free(link);
}

bool port_link_is_open(const struct port_link *link)
{
    return link->is_open;
}

bool port_link_has_ended(const struct port_link *link)
{
    return link->has_ended;
}

int port_link_check(const struct port_link *link, error *err)
{
    if (!link->is_ended || link->failure.code == ERR_NONE || link->in.size > 0)
        return 0;
    *err = link->failure;
    return -1;
}

const char *port_link_waiting(const struct port_link *link, size_t *ret_size)
{
    *ret_size = link->in.size - link->taken;
    return link->in.data + link->taken;
}

void port_link_take(struct port_link *link, size_t size)
{
    link->taken += size;
    link->owed += size;
    if (link->owed >= CREDIT_STEP) {
        struct agent_amount more = { .bytes = link->owed };
        link->owed = 0;
        session_order(link->session, &link->operation, AGENT_CREDIT, &more, sizeof more);
    }
}

bool port_link_has_room(const struct port_link *link)
{
    return link->is_ended || link->out.size < AGENT_WINDOW;
}

void port_link_give(struct port_link *link, const void *bytes, size_t size)
{
    if (link->is_ended)
        return;
    bytes_add(&link->out, bytes, size);
    send_on(link);
}

void port_link_end_input(struct port_link *link)
{
    link->input_ends = true;
    send_on(link);
}
