/* delivery.c - attempts to deliver, and the pauses between them.
 *
 *   waiting --a slot is free--> under way --2xx--> delivered
 *      ^                            |
 *      +------- pause, longer ------+--last attempt, redirect, 410--> gave up
 *
 * A witness gets only the newest checkpoint: while one is sent, a newer one replaces the one that
 * waits. Delivery to a witness is never given up. Of traces the fewest may wait. */
#include "notify/notify.h"

#include "base/clock.h"
#include "base/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DELIVERIES_MAX = 256, /* the most that may wait */
    IN_FLIGHT_MAX = 8,
    ATTEMPT_MS = 10000,
    FIRST_PAUSE_MS = 1000,
    LONGEST_PAUSE_MS = 300000,
    WITNESS_PAUSE_MS = 1000, /* between two checkpoints */
    WITNESS_LONGEST_PAUSE_MS = 60000,
    BATCHES_MAX = 16, /* the most batches of spans that may wait: 1 MiB */
    TRACE_ATTEMPTS = 3,
    PAUSE_GROWS = 4,
};

enum { GONE = 410, TOO_MANY = 429, BAD_GATEWAY = 502 };

struct delivery {
    struct notify *notify;
    enum notify_place place;
    struct notify_event event;
    unsigned attempts;
    bool is_in_flight, is_resting;
    bool has_news; /* witness only: `event` came after this attempt began */
    uint64_t pause_ms;
    uv_timer_t timer;
    CURL *easy;
    struct curl_slist *resolved, *headers;
    struct in6_addr addresses[ADDRESSES_MAX]; /* of this attempt */
    struct transfer_place to;
    char body[NOTIFY_BODY_SIZE]; /* of this attempt */
    struct bytes batch;          /* for NOTIFY_TRACES, in place of `body` */
    unsigned spans;
    struct delivery *next;
};

static void turn_soon(struct notify *notify);

static void tell(const struct delivery *delivery, enum notify_end end, unsigned status,
                 const char *cause)
{
    struct notify_outcome outcome = { .place = delivery->place,
                                      .end = end,
                                      .attempts = delivery->attempts,
                                      .status = status,
                                      .spans = delivery->spans };
    memcpy(outcome.id, delivery->event.id, sizeof outcome.id);
    (void) snprintf(outcome.cause, sizeof outcome.cause, "%s", cause);
    link_tell(delivery->notify, &outcome);
}

static void timer_closed(uv_handle_t *timer)
{
    struct delivery *delivery = timer->data;
    bytes_done(&delivery->batch);
    free(delivery);
}

static void leave(struct delivery *delivery)
{
    struct notify *notify = delivery->notify;
    if (list_remove(notify->deliveries, delivery, next))
        notify->waiting--;
    if (notify->witness == delivery)
        notify->witness = NULL;
    if (delivery->place == NOTIFY_TRACES)
        notify->batches--;
    uv_close((uv_handle_t *) &delivery->timer, timer_closed);
}

static void pause_is_over(uv_timer_t *timer)
{
    struct delivery *delivery = timer->data;
    delivery->is_resting = false;
    turn_soon(delivery->notify);
}

static void rest(struct delivery *delivery, uint64_t pause_ms)
{
    delivery->is_resting = true;
    (void) uv_timer_start(&delivery->timer, pause_is_over, pause_ms, 0);
}

static void grow_pause(struct delivery *delivery)
{
    uint64_t max = delivery->place == NOTIFY_WITNESS ? WITNESS_LONGEST_PAUSE_MS : LONGEST_PAUSE_MS;
    delivery->pause_ms *= PAUSE_GROWS;
    if (delivery->pause_ms > max)
        delivery->pause_ms = max;
}

/* --- how an attempt ends ---------------------------------------------------------------------- */

static void free_transfer(struct delivery *delivery)
{
    transfer_free(delivery->notify->transfers, delivery->easy);
    curl_slist_free_all(delivery->resolved);
    curl_slist_free_all(delivery->headers);
    delivery->easy = NULL;
    delivery->resolved = delivery->headers = NULL;
    if (delivery->is_in_flight && delivery->place != NOTIFY_WITNESS)
        delivery->notify->in_flight--;
    if (delivery->is_in_flight && delivery->place == NOTIFY_TRACES)
        delivery->notify->has_batch_in_flight = false;
    delivery->is_in_flight = false;
}

static void has_arrived(struct delivery *delivery, unsigned status)
{
    tell(delivery, NOTIFY_DELIVERED, status, "");
    if (delivery->place == NOTIFY_WITNESS) {
        delivery->attempts = 0;
        delivery->pause_ms = FIRST_PAUSE_MS;
        rest(delivery, WITNESS_PAUSE_MS);
    } else
        leave(delivery);
}

/* True if another attempt cannot succeed: a redirect is never followed, since no signature covers
 * its target; 410 means that the endpoint was removed. */
static bool is_for_nothing(const struct delivery *delivery, unsigned status)
{
    if (delivery->place == NOTIFY_TRACES) /* OTLP: 429, 502, 503 and 504 may be tried again */
        return status >= 300 && status != TOO_MANY &&
               (status < BAD_GATEWAY || status > BAD_GATEWAY + 2);
    return (status >= 300 && status < 400) || status == GONE;
}

static void has_failed(struct delivery *delivery, unsigned status, const char *cause)
{
    const struct notify *notify = delivery->notify;
    unsigned most = delivery->place == NOTIFY_TRACES ? TRACE_ATTEMPTS : notify->attempts_max;
    bool is_last = delivery->place != NOTIFY_WITNESS &&
                   (is_for_nothing(delivery, status) || delivery->attempts >= most);
    tell(delivery, is_last ? NOTIFY_GAVE_UP : NOTIFY_FAILED, status, cause);
    if (is_last) {
        leave(delivery);
        return;
    }
    delivery->has_news = true; /* to the witness the checkpoint must be sent again */
    rest(delivery, delivery->pause_ms);
    grow_pause(delivery);
}

static void end_attempt(struct delivery *delivery, unsigned status, const char *cause)
{
    struct notify *notify = delivery->notify;
    free_transfer(delivery);
    if (cause)
        has_failed(delivery, status, cause);
    else
        has_arrived(delivery, status);
    turn_soon(notify);
}

void delivery_transfer_ended(void *context, CURLcode result)
{
    struct delivery *delivery = context;
    char cause[NOTIFY_CAUSE_SIZE];
    long status = 0;
    (void) curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &status);
    if (result == CURLE_OK && status >= 200 && status < 300) {
        end_attempt(delivery, (unsigned) status, NULL);
        return;
    }
    if (result != CURLE_OK)
        (void) snprintf(cause, sizeof cause, "%s", curl_easy_strerror(result));
    else
        (void) snprintf(cause, sizeof cause, "it answered %ld%s", status,
                        status >= 300 && status < 400 ? "; no redirect is followed" : "");
    end_attempt(delivery, result == CURLE_OK ? (unsigned) status : 0, cause);
}

/* --- one attempt ------------------------------------------------------------------------------ */

/* NOLINTNEXTLINE(readability-non-const-parameter): the type that libcurl expects */
static size_t ignore_answer(char *data, size_t one, size_t count, void *context)
{
    (void) data;
    (void) context;
    return one * count;
}

static void add_header(struct delivery *delivery, const char *name, const char *value)
{
    char line[SIGNED_MAX + NOTIFY_ID_SIZE];
    (void) snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(delivery->headers, line);
    if (longer)
        delivery->headers = longer;
}

/* The timestamp is that of the attempt: receivers refuse one that is minutes old. */
static void add_headers(struct delivery *delivery)
{
    add_header(delivery, "User-Agent", "glovebox/" GLOVEBOX_VERSION);
    add_header(delivery, "Expect", "");
    if (delivery->place == NOTIFY_WITNESS) {
        add_header(delivery, "Content-Type", "text/plain; charset=utf-8");
        return;
    }
    add_header(delivery, "Content-Type", "application/json");
    if (delivery->place == NOTIFY_TRACES)
        return;
    char signature[SIGNED_MAX], moment[32];
    int64_t now_s = wall_clock_ms() / 1000;
    webhook_sign(&delivery->notify->secrets, &delivery->event, now_s, signature);
    (void) snprintf(moment, sizeof moment, "%" PRId64, now_s);
    add_header(delivery, "webhook-id", delivery->event.id);
    add_header(delivery, "webhook-timestamp", moment);
    add_header(delivery, "webhook-signature", signature);
}

static void addresses_came(void *context, const struct in6_addr *addresses, unsigned count)
{
    struct delivery *delivery = context;
    struct notify *notify = delivery->notify;
    const struct place *place = &notify->places[delivery->place];
    if (count == 0) {
        end_attempt(delivery, 0, "its name has no address");
        return;
    }
    memcpy(delivery->addresses, addresses, count * sizeof *addresses);
    delivery->to = (struct transfer_place){ .host = place->host,
                                            .port = place->port,
                                            .addresses = delivery->addresses,
                                            .address_count = count };
    delivery->easy = transfer_new(notify->transfers, &delivery->to, delivery, &delivery->resolved);
    if (!delivery->easy) {
        end_attempt(delivery, 0, "no memory");
        return;
    }
    add_headers(delivery);
    bool is_batch = delivery->place == NOTIFY_TRACES;
    size_t size = is_batch ? delivery->batch.size : delivery->event.size;
    memcpy(delivery->body, delivery->event.body, delivery->event.size);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_URL, place->url);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_TIMEOUT_MS, (long) ATTEMPT_MS);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_POST, 1L);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDS,
                            is_batch ? delivery->batch.data : delivery->body);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDSIZE, (long) size);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_HTTPHEADER, delivery->headers);
    (void) curl_easy_setopt(delivery->easy, CURLOPT_WRITEFUNCTION, ignore_answer);
    if (transfer_begin(notify->transfers, delivery->easy) < 0)
        end_attempt(delivery, 0, "libcurl refuses it");
}

static void attempt(struct delivery *delivery)
{
    struct notify *notify = delivery->notify;
    const struct place *place = &notify->places[delivery->place];
    delivery->attempts++;
    delivery->is_in_flight = true;
    delivery->has_news = false;
    if (place->known_count > 0)
        addresses_came(delivery, place->known, place->known_count);
    else
        (void) resolver_ask(notify->resolver, place->host, addresses_came, delivery);
}

/* --- turns ------------------------------------------------------------------------------------ */

static struct delivery *next_in_turn(const struct notify *notify)
{
    struct delivery *delivery = notify->deliveries;
    while (delivery && (delivery->is_in_flight || delivery->is_resting ||
                        (delivery->place == NOTIFY_TRACES && notify->has_batch_in_flight)))
        delivery = delivery->next;
    return delivery;
}

static void proceed(struct notify *notify)
{
    struct delivery *delivery;
    while (notify->in_flight < IN_FLIGHT_MAX && (delivery = next_in_turn(notify))) {
        notify->in_flight++;
        notify->has_batch_in_flight |= delivery->place == NOTIFY_TRACES;
        attempt(delivery);
    }
    struct delivery *witness = notify->witness;
    if (witness && witness->has_news && !witness->is_in_flight && !witness->is_resting)
        attempt(witness);
}

static void on_turn(uv_timer_t *timer)
{
    proceed(timer->data);
}

/* From a timer, not from the stack of a delivery that has just failed and may be freed. */
static void turn_soon(struct notify *notify)
{
    (void) uv_timer_start(&notify->turn, on_turn, 0, 0);
}

static struct delivery *delivery_new(struct notify *notify, enum notify_place place,
                                     const struct notify_event *event)
{
    struct delivery *delivery = calloc(1, sizeof *delivery);
    if (!delivery || uv_timer_init(&notify->loop, &delivery->timer) < 0) {
        free(delivery);
        return NULL;
    }
    delivery->notify = notify;
    delivery->place = place;
    delivery->event = *event;
    delivery->pause_ms = FIRST_PAUSE_MS;
    delivery->timer.data = delivery;
    return delivery;
}

static void queue(struct notify *notify, struct delivery *fresh)
{
    list_append(notify->deliveries, fresh, next);
    notify->waiting++;
}

void deliver_spans(struct notify *notify, struct bytes *body, unsigned spans)
{
    static const struct notify_event none = { 0 };
    struct delivery lost = { .notify = notify, .place = NOTIFY_TRACES, .spans = spans };
    struct delivery *fresh = !body->failed && notify->batches < BATCHES_MAX
                                 ? delivery_new(notify, NOTIFY_TRACES, &none)
                                 : NULL;
    if (!fresh) {
        bytes_done(body);
        tell(&lost, NOTIFY_DROPPED, 0, "too many wait already");
        return;
    }
    fresh->batch = *body;
    fresh->spans = spans;
    notify->batches++;
    queue(notify, fresh);
    turn_soon(notify);
}

void deliver(struct notify *notify, enum notify_place place, const struct notify_event *event)
{
    if (place == NOTIFY_WITNESS && notify->witness) {
        notify->witness->event = *event;
        notify->witness->has_news = true;
        turn_soon(notify);
        return;
    }
    struct delivery *fresh = place == NOTIFY_WITNESS || notify->waiting < DELIVERIES_MAX
                                 ? delivery_new(notify, place, event)
                                 : NULL;
    if (!fresh) {
        struct delivery none = { .notify = notify, .place = place, .event = *event };
        tell(&none, NOTIFY_DROPPED, 0, "too many wait already");
        return;
    }
    if (place == NOTIFY_WITNESS) {
        notify->witness = fresh;
        fresh->has_news = true;
    } else {
        queue(notify, fresh);
    }
    turn_soon(notify);
}

void deliveries_hurry(struct notify *notify)
{
    if (notify->witness && notify->witness->attempts == 0)
        notify->witness->is_resting = false;
    turn_soon(notify);
}

bool deliveries_are_done(const struct notify *notify)
{
    return !uv_is_active((const uv_handle_t *) &notify->turn) && notify->in_flight == 0 &&
           !(notify->witness && notify->witness->is_in_flight);
}
