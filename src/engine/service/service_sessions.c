/* service_sessions.c - see service_sessions.h. */
#include "engine/service/service_sessions.h"

#include "base/hex.h"
#include "engine/process/processes.h"
#include "engine/session/branch.h"
#include "engine/session/checkpoints.h"
#include "engine/session/session_registry.h"

#include <stdio.h>
#include <string.h>

int service_session_enter(const struct service *service, const struct caller *caller,
                          const char *id, struct session **ret_session, error *err)
{
    return sessions_enter(service->sessions, caller->account, id, ret_session, err);
}

int service_session_look(const struct service *service, const struct caller *caller, const char *id,
                         struct session **ret_session, error *err)
{
    return sessions_look(service->sessions, caller->account, id, ret_session, err);
}

/* --- begin a session -------------------------------------------------------------------------- */

static int create_session(struct service *service, const struct caller *caller,
                          const struct session_order *order, struct session **ret_session,
                          error *err)
{
    char id[SESSION_ID_SIZE];
    struct session_request request;
    session_choose_id(id);
    if (session_request_read(json_object_get(order->request), true, &request, err) < 0)
        return -1;
    request.place->account = caller->account;
    request.id = id;
    if (service_order_keep(service, caller, order->order, id, err) < 0) {
        session_request_done(&request);
        return -1;
    }
    if (session_create(service->sessions, &request, NULL, ret_session, err) == 0)
        return 0;
    service_order_drop(service, order->order);
    return -1;
}

/* Takes a text out of the overrides; the rest is as in a change of a session. "": none. */
static int take_override(struct json_object *overrides, const char *name,
                         char text[CONTEXT_ID_SIZE], error *err)
{
    struct json_object *value = NULL;
    text[0] = '\0';
    if (!json_object_is_type(overrides, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "the body must be a JSON object");
    if (!json_object_object_get_ex(overrides, name, &value))
        return 0;
    int length =
        json_object_is_type(value, json_type_string) ? json_object_get_string_len(value) : 0;
    if (length == 0 || length >= CONTEXT_ID_SIZE ||
        strlen(json_object_get_string(value)) != (size_t) length)
        return fail(err, ERR_BAD_REQUEST, "'%s' must be an id, a text", name);
    (void) snprintf(text, CONTEXT_ID_SIZE, "%s", json_object_get_string(value));
    json_object_object_del(overrides, name);
    return 0;
}

static int choose_source(struct json_object *overrides, struct session_source *source, error *err)
{
    char context[CONTEXT_ID_SIZE];
    char checkpoint[CONTEXT_ID_SIZE];
    if (take_override(overrides, "context", context, err) < 0 ||
        take_override(overrides, "checkpoint", checkpoint, err) < 0)
        return -1;
    if (checkpoint[0] && context[0])
        return fail(err, ERR_BAD_REQUEST, "a checkpoint has one context; leave 'context' out");
    if (!checkpoint[0])
        return branch_choose(source->session, context[0] ? context : NULL, &source->context, err);
    if (session_check_running(source->session, err) < 0)
        return -1;
    return session_checkpoint_find(source->session, checkpoint, &source->checkpoint, err);
}

static int branch_session(struct service *service, const struct caller *caller,
                          const struct session_order *order, struct session **ret_session,
                          error *err)
{
    char id[SESSION_ID_SIZE];
    struct session *parent = NULL;
    if (service_session_enter(service, caller, order->parent, &parent, err) < 0)
        return -1;
    struct session_source source = { .session = parent,
                                     .processes = processes_running(service->processes, parent),
                                     .id = id };
    session_choose_id(id);
    if (choose_source(order->request, &source, err) < 0 ||
        service_order_keep(service, caller, order->order, id, err) < 0)
        return -1;
    if (session_branch(&source, caller->account, order->request, ret_session, err) == 0)
        return 0;
    service_order_drop(service, order->order);
    return -1;
}

/* Finds what a known order has begun; NULL: that failed, and it may begin now. */
static int find_begun(const struct service *service, const struct caller *caller,
                      struct order *order, struct session **ret_session, error *err)
{
    struct session *session = sessions_find(service->sessions, caller->account, order->id);
    if (!session)
        return order_fail_forgotten(order, err);
    if (!session_has_failed(session))
        *ret_session = session;
    order->is_replayed = *ret_session != NULL;
    return 0;
}

int service_session_begin(struct service *service, const struct caller *caller,
                          const struct session_order *order, struct session **ret_session,
                          error *err)
{
    *ret_session = NULL;
    int found = service_order_find(service, caller, order->order, err);
    if (found == ORDER_KNOWN)
        found = find_begun(service, caller, order->order, ret_session, err);
    if (found < 0 || *ret_session)
        return found;
    return order->parent ? branch_session(service, caller, order, ret_session, err)
                         : create_session(service, caller, order, ret_session, err);
}

/* --- an existing session ---------------------------------------------------------------------- */

void service_session_write(struct session *session, struct bytes *out)
{
    session_write(session, out);
}

void service_session_count_signature(struct session *session)
{
    session_count(session, TRANSFER_URLS_SIGNED, 1);
}

const char *service_session_id(const struct session *session)
{
    return session_id(session);
}

bool service_session_has_ended(const struct session *session)
{
    return session_state(session) == SESSION_ENDED;
}

int service_session_change(struct session *session, struct json_object *change, error *err)
{
    struct session_request request;
    if (session_request_read(change, false, &request, err) < 0)
        return -1;
    int changed = session_change(session, &request, err);
    session_request_done(&request);
    return changed;
}

int service_session_pause(struct session *session, bool files_only, error *err)
{
    return session_pause(session, files_only, err);
}

int service_session_resume(struct session *session, error *err)
{
    return session_resume(session, err);
}

void service_session_delete(struct session *session)
{
    error why;
    (void) fail(&why, ERR_CONFLICT, "it was deleted");
    session_end(session, END_DELETED, &why);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* True if `escaped`, which may have %XX, is `text`. */
static bool is(const char *escaped, size_t length, const char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++, at++) {
        int byte = (unsigned char) escaped[i];
        if (byte == '%' && length - i >= 3 && hex_digit(escaped[i + 1]) >= 0 &&
            hex_digit(escaped[i + 2]) >= 0) {
            byte = hex_digit(escaped[i + 1]) * 16 + hex_digit(escaped[i + 2]);
            i += 2;
        }
        if (at >= size || (unsigned char) text[at] != byte)
            return false;
    }
    return at == size;
}

/* One "key=value" of a filter; without "=value" any value matches. */
static bool has_pair(struct json_object *metadata, const char *pair, size_t length)
{
    const char *equals = memchr(pair, '=', length);
    size_t key_size = equals ? (size_t) (equals - pair) : length;
    json_object_object_foreach(metadata, key, value)
    {
        if (is(pair, key_size, key, strlen(key)))
            return !equals || is(equals + 1, length - key_size - 1, json_object_get_string(value),
                                 (size_t) json_object_get_string_len(value));
    }
    return false;
}

/* "key=value&other=value", each percent-encoded: all must match. */
static bool has_metadata(const struct session *session, const char *wanted)
{
    while (wanted && *wanted) {
        size_t length = strcspn(wanted, "&");
        if (!session_metadata(session) || !has_pair(session_metadata(session), wanted, length))
            return false;
        wanted += length + (wanted[length] == '&');
    }
    return true;
}

static bool is_wanted(const struct session *session, const struct session_page *page)
{
    bool is_ended = session_state(session) == SESSION_ENDED;
    bool wants_ended = page->state && strcmp(page->state, "ended") == 0;
    bool wants_all = page->state && strcmp(page->state, "all") == 0;
    return (wants_all || wants_ended == is_ended) && has_metadata(session, page->metadata);
}

int service_sessions_page(const struct service *service, const struct caller *caller,
                          const char *cursor, struct session_page *page, error *err)
{
    page->at = service->sessions->newest;
    page->next = page->last = NULL;
    if (!cursor)
        return 0;
    const struct session *last = sessions_find(service->sessions, caller->account, cursor);
    if (!last)
        return fail(err, ERR_NOT_FOUND, "there is no cursor '%.60s'; ask for the first page again",
                    cursor);
    page->at = session_older(last);
    return 0;
}

struct session *service_sessions_next(const struct caller *caller, struct session_page *page)
{
    struct session *session = page->at;
    while (session && (!session_is_seen(session, caller->account) || !is_wanted(session, page)))
        session = session_older(session);
    if (session && page->limit == 0) {
        page->next = page->last;
        session = NULL;
    }
    if (!session) {
        page->at = NULL;
        return NULL;
    }
    page->limit--;
    page->last = session_id(session);
    page->at = session_older(session);
    return session;
}
