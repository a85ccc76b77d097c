/* tls_intercept.c - see tls_intercept.h. */
#include "egress/tls_intercept.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE = 16384, /* a record of TLS */
    TURNS = 16,    /* pieces taken from a socket before others get their turn */
    COST = 1000,
    ALERTS = 1000, /* reason codes of OpenSSL from here on are alerts of the other side */
};

struct interceptions {
    uv_loop_t *loop;
    SSL_CTX *context;
    unsigned count;
};

/* Bytes that wait to be written. */
struct piece {
    size_t from, size;
    bool is_ended; /* the sender has ended, and the end has been passed on */
    char bytes[PIECE];
};

struct tls_intercept {
    struct interceptions *interceptions;
    struct handshakes *handshakes;
    char name[HOST_NAME_SIZE];
    SSL *ssl;
    BIO *heard; /* bytes of the client's socket, which this file reads for OpenSSL */
    int outer;  /* the client's socket: TLS */
    int inner;  /* the connection's socket: plain */
    uv_poll_t outer_poll, inner_poll;
    unsigned handles;
    bool is_agreed; /* the handshake is over */
    bool waits_for_outer_room, is_dropped, has_moved, client_refuses;
    unsigned turns; /* left in this call; further bytes wake the loop again */
    struct piece up, down;
};

/* --- shared by all ---------------------------------------------------------------------------- */

/* A client with ALPN gets HTTP/1.1 or an alert: no other protocol is supported. */
/* NOLINTNEXTLINE(readability-function-size): OpenSSL's parameters */
static int choose_protocol(SSL *ssl, const unsigned char **ret_at, unsigned char *ret_size,
                           const unsigned char *offered, unsigned size, void *unused)
{
    static const unsigned char http[] = "\x08http/1.1";
    unsigned char *chosen;
    (void) ssl;
    (void) unused;
    if (SSL_select_next_proto(&chosen, ret_size, http, sizeof http - 1, offered, size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_at = chosen;
    return SSL_TLSEXT_ERR_OK;
}

int interceptions_open(uv_loop_t *loop, struct interceptions **ret_interceptions, error *err)
{
    static struct interceptions interceptions;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_num_tickets(context, 0) != 1)
        return fail(err, ERR_SYSTEM, "prepare OpenSSL to be a server");
    (void) SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                            SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void) SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void) SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                         SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    interceptions = (struct interceptions){ .loop = loop, .context = context };
    *ret_interceptions = &interceptions;
    return 0;
}

/* --- bytes ------------------------------------------------------------------------------------ */

enum step { STEP_DONE, STEP_WAITS, STEP_FAILS };

static bool would_wait(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reads from the client, for OpenSSL. */
static enum step hear(struct tls_intercept *tls_intercept)
{
    char bytes[PIECE / 2];
    if (tls_intercept->turns == 0)
        return STEP_WAITS;
    tls_intercept->turns--;
    ssize_t got = recv(tls_intercept->outer, bytes, sizeof bytes, MSG_DONTWAIT);
    if (would_wait(got))
        return STEP_WAITS;
    if (got <= 0 || BIO_write(tls_intercept->heard, bytes, (int) got) != (int) got)
        return STEP_FAILS;
    return STEP_DONE;
}

/* Does what OpenSSL needs after `result` of one of its calls. */
static enum step serve_ssl(struct tls_intercept *tls_intercept, int result)
{
    switch (SSL_get_error(tls_intercept->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return hear(tls_intercept);
    case SSL_ERROR_WANT_WRITE:
        tls_intercept->waits_for_outer_room = true;
        return STEP_WAITS;
    default:
        return STEP_FAILS;
    }
}

/* Did the client send an alert or end in place of its last handshake message? Then it has seen the
 * certificate, and does not trust it. */
static bool is_refusal(const struct tls_intercept *tls_intercept)
{
    unsigned long cause = ERR_peek_last_error();
    return cause == 0 ? SSL_get_state(tls_intercept->ssl) > TLS_ST_SR_CLNT_HELLO
                      : ERR_GET_REASON(cause) >= ALERTS;
}

/* Sends the TCP acknowledgement of the client's last handshake message at once. The kernel would
 * delay it by 40 ms, and many clients wait for it before they send their request (Nagle). */
static void acknowledge(const struct tls_intercept *tls_intercept)
{
    int one = 1;
    (void) setsockopt(tls_intercept->outer, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
}

static enum step agree(struct tls_intercept *tls_intercept)
{
    while (!tls_intercept->is_agreed) {
        ERR_clear_error();
        int result = SSL_accept(tls_intercept->ssl);
        if (result == 1) {
            const char *named = SSL_get_servername(tls_intercept->ssl, TLSEXT_NAMETYPE_host_name);
            acknowledge(tls_intercept);
            tls_intercept->is_agreed = named && strcasecmp(named, tls_intercept->name) == 0;
            return tls_intercept->is_agreed ? STEP_DONE : STEP_FAILS;
        }
        enum step step = serve_ssl(tls_intercept, result);
        if (step == STEP_FAILS)
            tls_intercept->client_refuses = is_refusal(tls_intercept);
        if (step != STEP_DONE)
            return step;
    }
    return STEP_DONE;
}

/* The sender has ended or failed: ends the receiver's direction. */
static void end_piece(struct piece *piece, int receiver)
{
    piece->is_ended = true;
    (void) shutdown(receiver, SHUT_WR);
}

/* One step of the data from the client. */
static enum step pass_up(struct tls_intercept *tls_intercept)
{
    struct piece *up = &tls_intercept->up;
    if (up->from < up->size) {
        ssize_t sent = send(tls_intercept->inner, up->bytes + up->from, up->size - up->from,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            up->from += (size_t) sent;
        return sent > 0 ? STEP_DONE : would_wait(sent) ? STEP_WAITS : STEP_FAILS;
    }
    if (up->is_ended)
        return STEP_WAITS;
    ERR_clear_error();
    int got = SSL_read(tls_intercept->ssl, up->bytes, sizeof up->bytes);
    up->from = 0;
    up->size = got > 0 ? (size_t) got : 0;
    if (got > 0)
        return STEP_DONE;
    enum step step = serve_ssl(tls_intercept, got);
    if (step != STEP_FAILS)
        return step;
    end_piece(up, tls_intercept->inner);
    return STEP_WAITS;
}

/* One step of the data to the client. */
static enum step pass_down(struct tls_intercept *tls_intercept)
{
    struct piece *down = &tls_intercept->down;
    if (down->from < down->size) {
        ERR_clear_error();
        int sent = SSL_write(tls_intercept->ssl, down->bytes + down->from,
                             (int) (down->size - down->from));
        if (sent <= 0)
            return serve_ssl(tls_intercept, sent);
        down->from += (size_t) sent;
        tls_intercept->has_moved = true;
        return STEP_DONE;
    }
    if (down->is_ended || tls_intercept->turns == 0)
        return STEP_WAITS;
    tls_intercept->turns--;
    ssize_t got = recv(tls_intercept->inner, down->bytes, sizeof down->bytes, MSG_DONTWAIT);
    down->from = 0;
    down->size = got > 0 ? (size_t) got : 0;
    if (got > 0)
        return STEP_DONE;
    if (would_wait(got))
        return STEP_WAITS;
    (void) SSL_shutdown(tls_intercept->ssl);
    end_piece(down, tls_intercept->outer);
    return STEP_WAITS;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void outer_is_ready(uv_poll_t *poll, int status, int events);
static void inner_is_ready(uv_poll_t *poll, int status, int events);

static void watch_one(uv_poll_t *poll, int events, uv_poll_cb ready)
{
    if (events)
        (void) uv_poll_start(poll, events, ready);
    else
        (void) uv_poll_stop(poll);
}

static void watch(struct tls_intercept *tls_intercept)
{
    const struct piece *up = &tls_intercept->up, *down = &tls_intercept->down;
    bool up_is_full = up->from < up->size, down_is_full = down->from < down->size;
    int outer = (!up_is_full && !up->is_ended ? UV_READABLE : 0) |
                (tls_intercept->waits_for_outer_room ? UV_WRITABLE : 0);
    int inner = (up_is_full ? UV_WRITABLE : 0) |
                (tls_intercept->is_agreed && !down_is_full && !down->is_ended ? UV_READABLE : 0);
    watch_one(&tls_intercept->outer_poll, outer, outer_is_ready);
    watch_one(&tls_intercept->inner_poll, inner, inner_is_ready);
}

/* Both sides see the end; the connection then asks for the reason, and drops the interception. */
static void break_off(struct tls_intercept *tls_intercept)
{
    tls_intercept->up.is_ended = tls_intercept->down.is_ended = true;
    tls_intercept->up.size = tls_intercept->down.size = 0;
    tls_intercept->up.from = tls_intercept->down.from = 0;
    tls_intercept->waits_for_outer_room = false;
    (void) shutdown(tls_intercept->inner, SHUT_RDWR);
    (void) shutdown(tls_intercept->outer, SHUT_WR); /* after the alert that says why */
}

static void go_on(struct tls_intercept *tls_intercept)
{
    enum step up = STEP_DONE, down = STEP_DONE;
    tls_intercept->turns = TURNS;
    tls_intercept->waits_for_outer_room = false;
    if (!tls_intercept->is_agreed)
        up = down = agree(tls_intercept);
    while (up == STEP_DONE || down == STEP_DONE) {
        up = up == STEP_DONE ? pass_up(tls_intercept) : up;
        down = down == STEP_DONE ? pass_down(tls_intercept) : down;
    }
    if (up == STEP_FAILS || down == STEP_FAILS)
        break_off(tls_intercept);
    watch(tls_intercept);
}

static void outer_is_ready(uv_poll_t *poll, int status, int events)
{
    struct tls_intercept *tls_intercept = poll->data;
    (void) status; /* read(2) reports the error */
    (void) events;
    if (!tls_intercept->is_dropped)
        go_on(tls_intercept);
}

static void inner_is_ready(uv_poll_t *poll, int status, int events)
{
    outer_is_ready(poll, status, events);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static bool take_handshake(struct handshakes *handshakes)
{
    uint64_t now = (uint64_t) now_ms(), max = (uint64_t) HANDSHAKES_A_SECOND * COST;
    uint64_t level = handshakes->has_begun
                         ? handshakes->level + (now - handshakes->at_ms) * HANDSHAKES_A_SECOND
                         : max;
    handshakes->has_begun = true;
    handshakes->at_ms = now;
    handshakes->level = (uint32_t) (level < max ? level : max);
    if (handshakes->level < COST)
        return false;
    handshakes->level -= COST;
    return true;
}

static void free_interception(struct tls_intercept *tls_intercept)
{
    SSL_free(tls_intercept->ssl); /* and `heard` */
    free(tls_intercept);
}

static struct tls_intercept *make(struct interceptions *interceptions,
                                  const struct tls_intercept_order *order)
{
    struct tls_intercept *tls_intercept = calloc(1, sizeof *tls_intercept);
    if (!tls_intercept)
        return NULL;
    tls_intercept->interceptions = interceptions;
    (void) memcpy(tls_intercept->name, order->name, strnlen(order->name, HOST_NAME_SIZE - 1));
    tls_intercept->ssl = SSL_new(interceptions->context);
    tls_intercept->heard = BIO_new(BIO_s_mem());
    BIO *told = BIO_new_socket(order->socket, BIO_NOCLOSE);
    if (!tls_intercept->ssl || !tls_intercept->heard || !told ||
        BIO_write(tls_intercept->heard, order->greeting, (int) order->greeting_size) !=
            (int) order->greeting_size ||
        tls_authority_use(order->authority, tls_intercept->name, tls_intercept->ssl) < 0) {
        BIO_free(tls_intercept->heard);
        BIO_free(told);
        free_interception(tls_intercept);
        return NULL;
    }
    (void) BIO_set_mem_eof_return(tls_intercept->heard, -1); /* empty does not mean the end */
    SSL_set_bio(tls_intercept->ssl, tls_intercept->heard, told);
    return tls_intercept;
}

/* Begins to watch both sockets. */
static int begin_to_watch(struct tls_intercept *tls_intercept, int outer, int inner)
{
    uv_loop_t *loop = tls_intercept->interceptions->loop;
    if (uv_poll_init(loop, &tls_intercept->outer_poll, outer) < 0)
        return -1;
    tls_intercept->handles = 1;
    tls_intercept->outer_poll.data = tls_intercept->inner_poll.data = tls_intercept;
    if (uv_poll_init(loop, &tls_intercept->inner_poll, inner) < 0)
        return -1;
    tls_intercept->handles = 2;
    tls_intercept->outer = outer;
    tls_intercept->inner = inner;
    return 0;
}

static void poll_closed(uv_handle_t *handle)
{
    struct tls_intercept *tls_intercept = handle->data;
    if (--tls_intercept->handles > 0)
        return;
    close_fd(&tls_intercept->outer);
    close_fd(&tls_intercept->inner);
    free_interception(tls_intercept);
}

enum egress_reason tls_intercept_begin(struct interceptions *interceptions,
                                       struct handshakes *handshakes,
                                       const struct tls_intercept_order *order, int *ret_socket,
                                       struct tls_intercept **ret_interception)
{
    int pair[2];
    if (interceptions->count >= INTERCEPTIONS_MAX || handshakes->now >= INTERCEPTIONS_OF_CHANNEL ||
        !take_handshake(handshakes))
        return EGRESS_TOO_MANY;
    struct tls_intercept *tls_intercept = make(interceptions, order);
    if (!tls_intercept)
        return EGRESS_TOO_MANY;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        free_interception(tls_intercept);
        return EGRESS_TOO_MANY;
    }
    if (begin_to_watch(tls_intercept, order->socket, pair[0]) < 0) {
        (void) close(pair[0]);
        (void) close(pair[1]);
        if (tls_intercept->handles == 0) {
            free_interception(tls_intercept);
            return EGRESS_TOO_MANY;
        }
        tls_intercept->outer = tls_intercept->inner = -1; /* one is the caller's, one is closed */
        uv_close((uv_handle_t *) &tls_intercept->outer_poll, poll_closed);
        return EGRESS_TOO_MANY;
    }
    tls_intercept->handshakes = handshakes;
    handshakes->now++;
    interceptions->count++;
    *ret_socket = pair[1];
    *ret_interception = tls_intercept;
    go_on(tls_intercept);
    return EGRESS_ALLOWED;
}

enum egress_reason tls_intercept_failure(const struct tls_intercept *tls_intercept)
{
    return tls_intercept->is_agreed || tls_intercept->client_refuses ? EGRESS_NOT_BELIEVED
                                                                     : EGRESS_NO_COMMON_TLS;
}

bool tls_intercept_is_refused(struct tls_intercept *tls_intercept)
{
    if (!tls_intercept->is_agreed && !tls_intercept->up.is_ended)
        go_on(tls_intercept);
    return tls_intercept->client_refuses;
}

bool tls_intercept_is_moving(struct tls_intercept *tls_intercept)
{
    bool has_moved = tls_intercept->has_moved && !tls_intercept->down.is_ended;
    tls_intercept->has_moved = false;
    return has_moved;
}

void tls_intercept_drop(struct tls_intercept *tls_intercept)
{
    if (!tls_intercept)
        return;
    tls_intercept->is_dropped = true;
    tls_intercept->handshakes->now--;
    tls_intercept->interceptions->count--;
    uv_close((uv_handle_t *) &tls_intercept->outer_poll, poll_closed);
    uv_close((uv_handle_t *) &tls_intercept->inner_poll, poll_closed);
}
