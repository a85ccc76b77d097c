/* upstreams.c - see upstreams.h. */
#include "egress/exchange.h"

#include "base/clock.h"
#include "base/table.h"
#include "egress/watched.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

static void hear_ends(struct upstreams *upstreams)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(upstreams->multi, &left))) {
        struct exchange *exchange = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        exchange_ended(exchange, message->data.result);
    }
}

static void act(struct upstreams *upstreams, curl_socket_t socket, int events)
{
    int running;
    (void) curl_multi_socket_action(upstreams->multi, socket, events, &running);
    hear_ends(upstreams);
}

static void socket_is_ready(void *context, int socket, bool reads, bool writes)
{
    act(context, socket, (reads ? CURL_CSELECT_IN : 0) | (writes ? CURL_CSELECT_OUT : 0));
}

static void time_is_up(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int socket_changes(CURL *easy, curl_socket_t socket, int what, void *context, void *unused)
{
    struct upstreams *upstreams = context;
    (void) easy;
    (void) unused;
    return watched_change(upstreams->sockets, socket,
                          what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                          what == CURL_POLL_OUT || what == CURL_POLL_INOUT);
}

static int timer_changes(CURLM *multi, long ms, void *context)
{
    struct upstreams *upstreams = context;
    (void) multi;
    if (ms < 0)
        (void) uv_timer_stop(&upstreams->timer);
    else
        (void) uv_timer_start(&upstreams->timer, time_is_up, (uint64_t) ms, 0);
    return 0;
}

CURLcode upstreams_trust(CURL *easy, void *context, void *upstreams)
{
    (void) easy;
    SSL_CTX_set1_cert_store(context, ((struct upstreams *) upstreams)->trusted);
    return CURLE_OK;
}

static unsigned add_certificates(X509_STORE *store, BIO *file)
{
    unsigned count = 0;
    STACK_OF(X509_INFO) *list = PEM_X509_INFO_read_bio(file, NULL, NULL, NULL);
    for (int i = 0; list && i < sk_X509_INFO_num(list); i++) {
        const X509_INFO *entry = sk_X509_INFO_value(list, i);
        if (entry->x509 && X509_STORE_add_cert(store, entry->x509) == 1)
            count++;
    }
    sk_X509_INFO_pop_free(list, X509_INFO_free);
    return count;
}

static int read_trusted(int ca_file, void **ret_store, error *err)
{
    X509_STORE *store = X509_STORE_new();
    if (!store)
        return fail(err, ERR_SYSTEM, "no memory for certificates");
    if (ca_file < 0) {
        (void) X509_STORE_load_file(store, "/etc/ssl/certs/ca-certificates.crt");
        *ret_store = store; /* a host without any trusts none: NO_TRUST says so */
        return 0;
    }
    BIO *file = BIO_new_fd(ca_file, BIO_NOCLOSE);
    unsigned count = file ? add_certificates(store, file) : 0;
    BIO_free(file);
    if (count == 0) {
        X509_STORE_free(store);
        return fail(err, ERR_BAD_REQUEST,
                    "the CA file holds no certificate; write them in PEM, -----BEGIN CERTIFICATE");
    }
    *ret_store = store;
    return 0;
}

int upstreams_open(uv_loop_t *loop, const struct secrets *secrets, int ca_file,
                   struct upstreams **ret_upstreams, error *err)
{
    static struct watched_sockets sockets;
    static struct upstreams the_upstreams;
    struct upstreams *upstreams = &the_upstreams;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !(upstreams->multi = curl_multi_init()) || uv_timer_init(loop, &upstreams->timer) < 0)
        return fail(err, ERR_SYSTEM, "start libcurl");
    if (read_trusted(ca_file, &upstreams->trusted, err) < 0)
        return -1;
    sockets =
        (struct watched_sockets){ .loop = loop, .ready = socket_is_ready, .context = upstreams };
    upstreams->loop = loop;
    upstreams->secrets = secrets;
    upstreams->sockets = &sockets;
    upstreams->timer.data = upstreams;
    (void) curl_multi_setopt(upstreams->multi, CURLMOPT_SOCKETFUNCTION, socket_changes);
    (void) curl_multi_setopt(upstreams->multi, CURLMOPT_SOCKETDATA, upstreams);
    (void) curl_multi_setopt(upstreams->multi, CURLMOPT_TIMERFUNCTION, timer_changes);
    (void) curl_multi_setopt(upstreams->multi, CURLMOPT_TIMERDATA, upstreams);
    *ret_upstreams = upstreams;
    return 0;
}
