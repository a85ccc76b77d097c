/* http_transfers.c - see http_transfers.h. */
#include "outbound/http_transfers.h"

#include "base/host_name.h"
#include "outbound/socket_watcher.h"
#include "policy/address.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECT_MS = 10000 };

struct transfers {
    CURLM *multi;
    uv_timer_t timer;
    struct watched_sockets sockets;
    void *trusted; /* X509_STORE */
    transfer_ended *ended;
};

static void hear_ends(struct transfers *transfers)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(transfers->multi, &left))) {
        void *context = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        transfers->ended(context, message->data.result);
    }
}

static void act(struct transfers *transfers, curl_socket_t socket, int events)
{
    int running;
    (void) curl_multi_socket_action(transfers->multi, socket, events, &running);
    hear_ends(transfers);
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
    struct transfers *transfers = context;
    (void) easy;
    (void) unused;
    return watched_change(&transfers->sockets, socket,
                          what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                          what == CURL_POLL_OUT || what == CURL_POLL_INOUT);
}

static int timer_changes(CURLM *multi, long ms, void *context)
{
    struct transfers *transfers = context;
    (void) multi;
    if (ms < 0)
        (void) uv_timer_stop(&transfers->timer);
    else
        (void) uv_timer_start(&transfers->timer, time_is_up, (uint64_t) ms, 0);
    return 0;
}

static CURLcode trust(CURL *easy, void *context, void *transfers)
{
    (void) easy;
    SSL_CTX_set1_cert_store(context, ((struct transfers *) transfers)->trusted);
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
        *ret_store =
            store; /* a host without certificates trusts none: requests end with NO_TRUST */
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

int transfers_open(uv_loop_t *loop, int ca_file, transfer_ended *ended,
                   struct transfers **ret_transfers, error *err)
{
    static struct transfers the_transfers;
    struct transfers *transfers = &the_transfers;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !(transfers->multi = curl_multi_init()) || uv_timer_init(loop, &transfers->timer) < 0)
        return fail(err, ERR_SYSTEM, "start libcurl");
    if (read_trusted(ca_file, &transfers->trusted, err) < 0)
        return -1;
    transfers->sockets =
        (struct watched_sockets){ .loop = loop, .ready = socket_is_ready, .context = transfers };
    transfers->ended = ended;
    transfers->timer.data = transfers;
    (void) curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, socket_changes);
    (void) curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    (void) curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, timer_changes);
    (void) curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    *ret_transfers = transfers;
    return 0;
}

/* Makes "host:port:address,address", so that libcurl asks no resolver. NULL for a host that is an
 * IPv6 address: libcurl needs no such line then, and would not understand it. */
static struct curl_slist *list_addresses(const struct transfer_place *place)
{
    char line[HOST_NAME_SIZE + 16 + 16 * (ADDRESS_TEXT + 3)];
    int used = snprintf(line, sizeof line, "%s:%u:", place->host, place->port);
    for (unsigned i = 0; i < place->address_count; i++) {
        char address[ADDRESS_TEXT];
        address_write(&place->addresses[i], address);
        used += snprintf(line + used, sizeof line - (size_t) used,
                         strchr(address, ':') ? "%s[%s]" : "%s%s", i > 0 ? "," : "", address);
    }
    return curl_slist_append(NULL, line);
}

/* Called by libcurl before it connects: allows only an address that was checked. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    const struct transfer_place *place = context;
    struct in6_addr address = IN6ADDR_ANY_INIT;
    (void) purpose;
    if (to->family == AF_INET)
        address_map(&((const struct sockaddr_in *) (const void *) &to->addr)->sin_addr, &address);
    else if (to->family == AF_INET6)
        address = ((const struct sockaddr_in6 *) (const void *) &to->addr)->sin6_addr;
    for (unsigned i = 0; i < place->address_count; i++)
        if (memcmp(&address, &place->addresses[i], sizeof address) == 0)
            return socket(to->family, to->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->protocol);
    return CURL_SOCKET_BAD;
}

CURL *transfer_new(struct transfers *transfers, const struct transfer_place *place, void *context,
                   struct curl_slist **ret_resolved)
{
    CURL *easy = curl_easy_init();
    bool is_known = place->host[0] == '[';
    *ret_resolved = is_known ? NULL : list_addresses(place);
    if (!easy || (!is_known && !*ret_resolved)) {
        curl_easy_cleanup(easy);
        return NULL;
    }
    (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void) curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_MS);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    (void) curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    (void) curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    (void) curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, trust);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, transfers);
    (void) curl_easy_setopt(easy, CURLOPT_RESOLVE, *ret_resolved);
    (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, place);
    (void) curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
    return easy;
}

int transfer_begin(struct transfers *transfers, CURL *easy)
{
    return curl_multi_add_handle(transfers->multi, easy) == CURLM_OK ? 0 : -1;
}

void transfer_free(struct transfers *transfers, CURL *easy)
{
    if (!easy)
        return;
    (void) curl_multi_remove_handle(transfers->multi, easy);
    curl_easy_cleanup(easy);
}
