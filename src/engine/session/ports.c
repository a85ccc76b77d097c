/* ports.c - one connection's bytes, in windows. */
#include "engine/session/ports.h"
#include "engine/sandbox/agent_error.h"

#include "engine/review/output_check.h"
#include "engine/session/session_registry.h"

#include <string.h>

enum { CREDIT_STEP = 64 * 1024 };

static void order(struct port_link *link, enum agent_kind kind, const void *payload, size_t size)
{
    struct iovec part = { (void *) (uintptr_t) payload, size };
    if (!link->session)
        return;
    session_send(link->session, &link->operation, kind, &part, size > 0);
    session_flush(link->session);
}

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

static void send_on(struct port_link *link)
{
    while (link->session && link->window > 0 && link->out.size > 0) {
        size_t part = link->out.size < link->window ? link->out.size : link->window;
        if (part > AGENT_PAYLOAD_MAX)
            part = AGENT_PAYLOAD_MAX;
        link->window -= part;
        order(link, AGENT_DATA, link->out.data, part);
        session_count(link->session, TRANSFER_PORT_BYTES_IN, part);
        bytes_drop(&link->out, part);
    }
    if (link->out.size == 0 && link->input_ends && !link->input_has_ended) {
        link->input_has_ended = true;
        order(link, AGENT_END, NULL, 0);
    }
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct port_link *link = context;
    struct agent_amount taken;
    switch (frame->kind) {
    case AGENT_OPENED:
        link->stands = true;
        break;
    case AGENT_DATA:
        if (link->in.size - link->taken + frame->size > PORT_WINDOW)
            return fail(err, ERR_PROTOCOL, "glovebox-init sent more than was asked for");
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
    if (link->woken)
        link->woken(link->context);
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
    if (link->woken)
        link->woken(link->context);
}

int port_link_begin(struct port_link *link, struct session *session, uint16_t port, error *err)
{
    struct agent_connect connect = { .credit = PORT_WINDOW, .port = port };
    link->operation = (struct session_operation){
        .context = link, .frame = on_frame, .room = on_room, .ended = on_ended
    };
    link->window = AGENT_WINDOW;
    if (output_check_lets_out(session->plan.policy, "ports", err) < 0 ||
        session_begin(session, &link->operation, err) < 0)
        return -1;
    session_hold(session);
    session_count(session, TRANSFER_PORTS, 1);
    link->session = session;
    order(link, AGENT_CONNECT, &connect, sizeof connect);
    return 0;
}

void port_link_close(struct port_link *link)
{
    link->woken = NULL;
    order(link, AGENT_CANCEL, NULL, 0);
    end_link(link);
    bytes_done(&link->in);
    bytes_done(&link->out);
}

size_t port_link_take(struct port_link *link, char *bytes, size_t size)
{
    size_t left = link->in.size - link->taken;
    size_t part = left < size ? left : size;
    if (part == 0)
        return 0;
    if (bytes)
        memcpy(bytes, link->in.data + link->taken, part);
    link->taken += part;
    link->owed += part;
    if (link->owed >= CREDIT_STEP) {
        struct agent_amount more = { .bytes = link->owed };
        link->owed = 0;
        order(link, AGENT_CREDIT, &more, sizeof more);
    }
    return part;
}

bool port_link_has_room(const struct port_link *link)
{
    return link->out.size < AGENT_WINDOW;
}

void port_link_give(struct port_link *link, const void *bytes, size_t size)
{
    bytes_add(&link->out, bytes, size);
    send_on(link);
}

void port_link_end_input(struct port_link *link)
{
    link->input_ends = true;
    send_on(link);
}
