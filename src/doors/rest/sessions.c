/* sessions.c - /v1/sessions: translates HTTP into the calls of session_registry.h. */
#include "doors/rest/openapi/openapi.h"
#include "engine/session/session_registry.h"

#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/session/checkpoints.h"
#include "engine/session/processes.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 100, PAGE_MAX = 1000 };

void session_answer(struct exchange *exchange, struct session *session, unsigned status)
{
    struct bytes json = { 0 };
    session_write(session, &json);
    exchange_answer(exchange, status, &json);
}

int exchange_fields(struct exchange *exchange, const struct field *fields, size_t count, error *err)
{
    struct json_object *json = NULL;
    if (exchange->body_bytes > 0 && json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    if (exchange->body_bytes > 0 && !json) /* null */
        return fail(err, ERR_BAD_REQUEST, "the body must be a JSON object");
    int read = fields_read(json, fields, count, err);
    json_object_put(json);
    return read;
}

static struct session *find(struct exchange *exchange, __typeof__(sessions_enter) *enter)
{
    const struct service *service = exchange->service;
    struct session *session = NULL;
    error err;
    if (enter(service->sessions, exchange->caller.account, exchange->parameters[0], &session,
              &err) == 0)
        return session;
    exchange_fail(exchange, &err);
    return NULL;
}

struct session *exchange_session(struct exchange *exchange)
{
    return find(exchange, sessions_enter);
}

struct session *exchange_tombstone(struct exchange *exchange)
{
    return find(exchange, sessions_look);
}

static void get_session(struct exchange *exchange)
{
    struct session *session = exchange_tombstone(exchange);
    if (session)
        session_answer(exchange, session, MHD_HTTP_OK);
}

static void patch_session(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct json_object *json;
    struct session_request request;
    error err;
    if (!session)
        return;
    if (json_reader_end(&exchange->body, &json, &err) < 0 ||
        session_request_read(json, false, &request, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    int changed = session_change(session, &request, &err);
    session_request_done(&request);
    if (changed < 0)
        exchange_fail(exchange, &err);
    else
        session_answer(exchange, session, MHD_HTTP_OK);
}

static void delete_session(struct exchange *exchange)
{
    struct session *session = exchange_tombstone(exchange);
    error why;
    if (!session)
        return;
    (void) fail(&why, ERR_CONFLICT, "somebody deleted it");
    session_end(session, END_DELETED, &why);
    session_answer(exchange, session, MHD_HTTP_OK);
}

static void post_pause(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    const char *keep = exchange_query(exchange, "keep");
    bool files_only = keep && strcmp(keep, "files") == 0;
    error err;
    int done = -1;
    if (!session)
        return;
    if (keep && !files_only && strcmp(keep, "all") != 0)
        (void) fail(&err, ERR_BAD_REQUEST, "keep is all or files, not '%.40s'", keep);
    else
        done = session_pause(session, files_only, &err);
    if (done < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    session_answer(exchange, session, MHD_HTTP_OK);
}

static void post_resume(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    error err;
    if (!session)
        return;
    if (session_resume(session, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    session_answer(exchange, session, MHD_HTTP_OK);
}

/* --- lists --------------------------------------------------------------------------------------
 */

/* "key=value&other=value": every one of them must be there. */
static bool has_metadata(const struct session *session, const char *wanted)
{
    while (wanted && *wanted) {
        size_t length = strcspn(wanted, "&");
        const char *equals = memchr(wanted, '=', length);
        size_t key_size = equals ? (size_t) (equals - wanted) : length;
        char key[256];
        struct json_object *value = NULL;
        if (key_size >= sizeof key || !session->metadata)
            return false;
        memcpy(key, wanted, key_size);
        key[key_size] = '\0';
        if (!json_object_object_get_ex(session->metadata, key, &value))
            return false;
        size_t size = length - key_size - (equals ? 1 : 0);
        if (equals && ((size_t) json_object_get_string_len(value) != size ||
                       memcmp(json_object_get_string(value), equals + 1, size) != 0))
            return false;
        wanted += length + (wanted[length] == '&');
    }
    return true;
}

static bool is_wanted(const struct session *session, const char *state, const char *metadata)
{
    bool is_ended = session->state == SESSION_ENDED;
    bool wants_ended = state && strcmp(state, "ended") == 0;
    bool wants_all = state && strcmp(state, "all") == 0;
    return (wants_all || wants_ended == is_ended) && has_metadata(session, metadata);
}

static int read_page(struct exchange *exchange, unsigned long *ret_max,
                     struct session **ret_session, error *err)
{
    const struct service *service = exchange->service;
    const char *limit = exchange_query(exchange, "limit");
    const char *after = exchange_query(exchange, "after");
    char *end = NULL;
    *ret_max = limit ? strtoul(limit, &end, 10) : PAGE;
    if (limit && (*limit < '0' || *limit > '9' || *end || *ret_max == 0 || *ret_max > PAGE_MAX))
        return fail(err, ERR_BAD_REQUEST, "limit must be a number from 1 to %d", PAGE_MAX);
    *ret_session = service->sessions->newest;
    if (!after)
        return 0;
    const struct session *last = sessions_find(service->sessions, exchange->caller.account, after);
    if (!last)
        return fail(err, ERR_NOT_FOUND, "after names the unknown session '%.60s'; begin anew",
                    after);
    *ret_session = last->older;
    return 0;
}

static void get_sessions(struct exchange *exchange)
{
    const char *state = exchange_query(exchange, "state");
    const char *metadata = exchange_query(exchange, "metadata");
    unsigned long max;
    struct session *session = NULL;
    error err;
    if (read_page(exchange, &max, &session, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = { 0 };
    const char *next = NULL;
    const char *last = NULL;
    json_open(&json, '{');
    json_key(&json, "sessions");
    json_open(&json, '[');
    for (; session && !next; session = session->older) {
        if (!session_is_seen(session, exchange->caller.account) ||
            !is_wanted(session, state, metadata))
            continue;
        if (max == 0) {
            next = last;
            break;
        }
        max--;
        last = session->id;
        session_write(session, &json);
    }
    json_close(&json, ']');
    json_string_field(&json, "next", next);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const struct parameter list_query[] = {
    { "limit", IN_QUERY, "count 1..1000", "rows of a page; 100 if it is left out" },
    { "after", IN_QUERY, "string", "`next` of the page before" },
    { "state", IN_QUERY, "=ended,all", "those that have ended, or these too" },
    { "metadata", IN_QUERY, "string", "name=value&…, once more percent-encoded: all must match" },
    { 0 },
};
static const struct parameter begin_query[] = {
    { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT },
    { 0 },
};
static const struct parameter pause_query[] = {
    { "keep", IN_QUERY, "=all,files", "files: ends the programs and keeps the files" },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/sessions",      BODY_JSON, session_post,   "Begins a session: a sandbox that is kept between runs", .query = begin_query, .is_once = true, .status = 201, .takes = "SessionRequest", .gives = "Session" },
    { "GET",    "/v1/sessions",      BODY_NONE, get_sessions,   "Sessions, the newest first; ?metadata= and ?state= choose, ?limit= and ?after= page", .query = list_query, .gives = "SessionPage" },
    { "GET",    "/v1/sessions/{id}", BODY_NONE, get_session,    "A session, or its tombstone: when and why it ended, and what was kept", .gives = "Session" },
    { "PATCH",  "/v1/sessions/{id}", BODY_JSON, patch_session,  "Touches a session; changes its deadlines and metadata", .takes = "SessionChange", .gives = "Session", .awaits = AWAITS_NOTHING },
    { "POST",   "/v1/sessions/{id}/pause",  BODY_NONE, post_pause,  "Stops everything in a session, and its deadlines; ?keep=files ends the programs and keeps the files", .query = pause_query, .gives = "Session", .awaits = AWAITS_BOTH, .is_repeatable = true },
    { "POST",   "/v1/sessions/{id}/resume", BODY_NONE, post_resume, "Lets a session run on", .gives = "Session", .is_repeatable = true },
    { "POST",   "/v1/sessions/{id}/branch", BODY_JSON, session_post_branch, "Begins a session with the files of this one, and with the variables of one of its contexts", .query = begin_query, .is_once = true, .status = 201, .takes = "BranchRequest", .may_lack_body = true, .gives = "Session" },
    { "DELETE", "/v1/sessions/{id}", BODY_NONE, delete_session, "Ends a session and everything in it", .gives = "Session", .awaits = AWAITS_COPIES },
    /* clang-format on */
};

const struct route_table session_routes = { "sessions", rows, COUNT_OF(rows), RIGHT_SESSIONS };
