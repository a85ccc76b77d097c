/* egress_words_fuzz.c - any message as a word of glovebox-egress, which hostile hosts and hostile
 * code talk with: each waiting callback is called once, with printable text; a glovebox-egress that
 * says anything else is given up; and no descriptor stays open. */
#include "dice.h"

#include "engine/network/connection_document.h"
#include "engine/network/egress_client.h"
#include "engine/observe/log.h"
#include "engine/schedule/accounts.h"

#include <stdio.h>

enum { WAYS = 4, KEPT = 2 /* of them, as sessions have them */ };

static uv_loop_t loop;
static uv_idle_t alive; /* the socket alone keeps no loop alive */
static struct traffic traffic;
static struct account account;
static struct policy policy;
static struct network *network;
static struct {
    struct egress_route *route;
    unsigned asked, told;
    bool is_ending, has_ended;
} egress_routes[WAYS];

/* A glovebox-egress that is given up is no news here. */
void log_fields(enum log_event event, enum log_level level, const struct log_field *fields)
{
    (void) level;
    (void) event;
    (void) fields;
}

static void on_told(void *context)
{
    unsigned index = (unsigned) (uintptr_t) context;
    assert(egress_routes[index].told < egress_routes[index].asked);
    egress_routes[index].told++;
}

static void on_ended(void *context)
{
    unsigned index = (unsigned) (uintptr_t) context;
    assert(egress_routes[index].is_ending && !egress_routes[index].has_ended);
    egress_routes[index].has_ended = true;
}

static void on_certified(void *context, const char *certificate)
{
    (void) context;
    assert(!certificate || strlen(certificate) < EGRESS_AUTHORITY_MAX);
}

static void open_way(unsigned index)
{
    error err;
    char id[16];
    (void) snprintf(id, sizeof id, "run_%u", index);
    struct egress_route_terms terms = { .order = { id, &account, &policy, &policy.route },
                                        .life_s = 60,
                                        .told = on_told,
                                        .certified = on_certified,
                                        .context = (void *) (uintptr_t) index };
    if (egress_routes[index].route)
        return;
    terms.sockets.count = EGRESS_LISTEN_PORT + 1;
    for (unsigned i = 0; i < terms.sockets.count; i++)
        terms.sockets.list[i] = fcntl(0, F_DUPFD_CLOEXEC, 3);
    int done = index < KEPT ? egress_route_keep(network, &terms, &egress_routes[index].route, &err)
                            : egress_route_open(network, &terms, &egress_routes[index].route, &err);
    assert(done == 0 || !egress_routes[index].route);
    egress_routes[index].asked = egress_routes[index].told = 0;
    egress_routes[index].is_ending = egress_routes[index].has_ended = false;
}

static void free_way(unsigned index)
{
    egress_route_free(egress_routes[index].route);
    egress_routes[index].route = NULL;
}

/* What results are made of. */
static void tell(const struct egress_route *route)
{
    struct connection_log connections;
    egress_route_tell(route, 0, &connections);
    for (size_t i = 0; i < connections.count; i++) {
        struct connection_texts texts;
        struct fact_connection fact;
        struct bytes json = { 0 };
        connection_fact(&connections.records[i], &policy.route, &texts, &fact);
        connection_write(&fact, connections.records[i].took_ms, &json);
        assert(json.size > 0 && !json.failed);
        bytes_done(&json);
    }
    connection_log_done(&connections);
}

static void ask_something(struct dice *dice)
{
    unsigned index = dice_byte(dice) % WAYS;
    unsigned what = dice_byte(dice) % 4;
    if (!egress_routes[index].route) {
        open_way(index);
    } else if (what == 0) {
        free_way(index);
    } else if (what == 1) {
        tell(egress_routes[index].route);
    } else if (index < KEPT) {
        egress_routes[index].asked++;
        egress_route_ask(egress_routes[index].route);
    } else if (!egress_routes[index].is_ending) {
        egress_routes[index].is_ending = true;
        egress_route_end(egress_routes[index].route, on_ended, (void *) (uintptr_t) index);
    }
}

static void send_word(struct dice *dice, int socket)
{
    static const int fds[2];
    uint32_t channel = dice_byte(dice) % 8;
    struct egress_hello hello = { .version = EGRESS_VERSION };
    struct egress_record record = { .channel = channel,
                                    .reason = dice_byte(dice) % EGRESS_REASONS,
                                    .label = dice_byte(dice) % 4,
                                    .port = 443,
                                    .name = "api.example.org",
                                    .path = "/x" };
    struct egress_closed closed = { .channel = channel, .lost = 1 };
    struct egress_authority authority = { .channel = channel, .size = 4, .whole = 4 };
    switch (dice_byte(dice) % 8) {
    case 0:
        dice_change(dice, &hello, sizeof hello);
        send_anything(socket, EGRESS_HELLO, &hello, sizeof hello, NULL, 0);
        break;
    case 1:
        send_anything(socket, EGRESS_CLOSED, &closed, sizeof closed, NULL, 0);
        break;
    case 2:
        send_anything(socket, EGRESS_TOLD, &closed, sizeof closed, fds, dice_byte(dice) % 40 == 1);
        break;
    case 3:
        dice_change(dice, &authority, sizeof authority);
        send_anything(socket, EGRESS_AUTHORITY, &authority, sizeof authority, NULL, 0);
        break;
    case 4: {
        uint32_t kind = dice_byte(dice) % 64;
        size_t size = dice->left < 700 ? dice->left : 700;
        send_anything(socket, kind, dice->at, size, fds, dice_byte(dice) % 3);
        break;
    }
    default:
        dice_change(dice, &record, sizeof record);
        send_anything(socket, dice_byte(dice) % 2 ? EGRESS_RECORD : EGRESS_BEGUN, &record,
                      sizeof record, NULL, 0);
    }
}

/* What gloveboxd has sent is read as it comes, or it would wait for room. */
static void read_orders(int socket)
{
    struct packet packet;
    error err;
    while (packet_receive(socket, &packet, &err) == PACKET_CAME)
        packet_done(&packet);
}

static void nothing(uv_idle_t *idle)
{
    (void) idle;
}

static void prepare(void)
{
    struct network_rule rule = { .port_count = 1, .ports = { 443 }, .host = "api.example.org" };
    if (policy.route.count > 0)
        return;
    if (uv_loop_init(&loop) < 0 || uv_idle_init(&loop, &alive) < 0)
        abort();
    (void) snprintf(policy.name, sizeof policy.name, "web");
    policy.network = POLICY_NETWORK_RULES;
    policy.route.rules[policy.route.count++] = rule;
    policy.route.connections = 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dice dice = { data, size };
    error err;
    int pair[2];
    prepare();
    memset(egress_routes, 0, sizeof egress_routes);
    policy.route.rules[0].intercept = dice_byte(&dice) % 2;
    unsigned before = descriptors_open();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        network_open(&loop, pair[1], &traffic, &network, &err) < 0)
        abort();
    (void) uv_idle_start(&alive, nothing);
    struct egress_hello hello = { .version = EGRESS_VERSION };
    send_anything(pair[0], EGRESS_HELLO, &hello, sizeof hello, NULL, 0);
    while (dice.left > 0) {
        (void) uv_run(&loop, UV_RUN_NOWAIT);
        if (dice_byte(&dice) % 2)
            ask_something(&dice);
        else
            send_word(&dice, pair[0]);
        (void) uv_run(&loop, UV_RUN_NOWAIT);
        read_orders(pair[0]);
    }
    for (unsigned i = 0; i < WAYS; i++)
        if (egress_routes[i].route)
            free_way(i);
    network_close(network);
    (void) uv_idle_stop(&alive);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    (void) close(pair[0]);
    assert(descriptors_open() == before);
    traffic_done(&traffic);
    return 0;
}
