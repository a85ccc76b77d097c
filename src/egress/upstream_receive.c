/* upstream_receive.c - removes secrets from an upstream's answer, and passes it on in pieces. */
#include "egress/upstream_request.h"

#include "base/table.h"

#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void exchange_flush(struct exchange *exchange)
{
    while (exchange->out_from < exchange->out_size) {
        ssize_t sent = send(exchange->socket, exchange->out + exchange->out_from,
                            exchange->out_size - exchange->out_from, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0) {
            exchange_end(exchange, EGRESS_BROKEN_OFF);
            return;
        }
        exchange->out_from += (size_t) sent;
    }
    exchange->out_from = exchange->out_size = 0;
}

static void put(struct exchange *exchange, const char *bytes, size_t size)
{
    memmove(exchange->out + exchange->out_size, bytes, size);
    exchange->out_size += size;
}

/* `size` clean bytes are at out_size + FRAME: adds the framing of a chunk. */
static void add_piece(struct exchange *exchange, size_t size)
{
    const char *piece = exchange->out + exchange->out_size + FRAME;
    char length[FRAME] = "";
    if (size == 0)
        return;
    if (exchange->answer.is_chunked)
        (void) snprintf(length, sizeof length, "%zx\r\n", size);
    put(exchange, length, strlen(length));
    put(exchange, piece, size);
    if (exchange->answer.is_chunked)
        put(exchange, "\r\n", 2);
}

/* Redacts and writes the head. Returns -1 if it does not fit, or if its body cannot be redacted. */
static int put_head(struct exchange *exchange)
{
    static char text[ANSWER_HEAD_MAX];
    size_t size = answer_head_write(&exchange->answer, &exchange->endpoint, text);
    if (size == 0 || (exchange->answer.is_encoded && exchange->secret))
        return -1;
    size_t clean = redact_take(&exchange->redact, text, size, exchange->out);
    clean += redact_end(&exchange->redact, exchange->out + clean);
    exchange->out_size = clean;
    exchange->scrubbed = exchange->redact.found;
    redact_init(&exchange->redact, exchange->redact.words, exchange->redact.count);
    return 0;
}

size_t exchange_field_came(char *bytes, size_t one, size_t size, void *context)
{
    struct exchange *exchange = context;
    (void) one;
    switch (answer_head_take(&exchange->answer, bytes, size)) {
    case ANSWER_MORE:
        return size;
    case ANSWER_WHOLE:
        return put_head(exchange) < 0 ? 0 : size;
    case ANSWER_BAD:
        break;
    }
    return 0;
}

size_t exchange_body_came(char *bytes, size_t one, size_t size, void *context)
{
    struct exchange *exchange = context;
    (void) one;
    exchange_flush(exchange);
    if (exchange->is_ended || !exchange->answer.is_whole || size > PIECE)
        return 0;
    if (exchange->out_size > 0) {
        exchange->waits_for_room = true;
        exchange_watch(exchange);
        return CURL_WRITEFUNC_PAUSE;
    }
    add_piece(exchange, redact_take(&exchange->redact, bytes, size, exchange->out + FRAME));
    exchange_flush(exchange);
    exchange_watch(exchange);
    return size;
}

/* Writes the bytes that were held back, and the last chunk. */
void exchange_finish(struct exchange *exchange)
{
    exchange_flush(exchange);
    if (exchange->is_ended || exchange->out_size > 0)
        return;
    if (exchange->answer.is_whole) {
        exchange->answer.is_whole = false; /* so that this is done once */
        add_piece(exchange, redact_end(&exchange->redact, exchange->out + FRAME));
        if (exchange->answer.is_chunked)
            put(exchange, "0\r\n\r\n", 5);
        exchange_flush(exchange);
    }
    if (exchange->out_size == 0)
        exchange_end(exchange, EGRESS_ALLOWED);
}

/* What is wrong with the upstream's certificate. libcurl checks the name last, and reports only
 * that something failed. */
static enum egress_reason distrust_of(CURL *easy)
{
    long result = X509_V_OK;
    (void) curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result);
    if (result == X509_V_OK || result == X509_V_ERR_UNSPECIFIED)
        return EGRESS_OTHER_NAME;
    if (result == X509_V_ERR_CERT_HAS_EXPIRED || result == X509_V_ERR_CERT_NOT_YET_VALID)
        return EGRESS_OUT_OF_DATE;
    return EGRESS_NO_TRUST;
}

static enum egress_reason reason_of(CURL *easy, CURLcode result)
{
    static const struct {
        CURLcode result;
        enum egress_reason reason;
    } table[] = {
        { CURLE_COULDNT_CONNECT, EGRESS_UNREACHABLE },
        { CURLE_OPERATION_TIMEDOUT, EGRESS_UNREACHABLE },
        { CURLE_SSL_CONNECT_ERROR, EGRESS_NO_TRUST },
    };
    if (result == CURLE_PEER_FAILED_VERIFICATION)
        return distrust_of(easy);
    for_each(row, table)
        if (row->result == result)
            return row->reason;
    return EGRESS_BROKEN_OFF;
}

void exchange_ended(void *context, CURLcode result)
{
    struct exchange *exchange = context;
    exchange->is_over = true;
    if (result == CURLE_OK && exchange->answer.is_whole) {
        exchange_finish(exchange);
        exchange_watch(exchange);
        return;
    }
    exchange_flush(exchange);
    exchange_end(exchange,
                 result == CURLE_OK ? EGRESS_BROKEN_OFF : reason_of(exchange->easy, result));
}
