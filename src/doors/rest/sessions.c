/* sessions.c - /v1/sessions: translates HTTP into the calls of service_sessions.h. */
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/schema/schema.h"
#include "engine/service/service_sessions.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <string.h>

enum { PAGE = 100 };

void session_answer(struct exchange *exchange, struct session *session, unsigned status)
{
    struct bytes json = { 0 };
    service_session_write(session, &json);
    exchange_answer(exchange, status, &json);
}

int exchange_take_json(struct exchange *exchange, struct json_object **ret_json, error *err)
{
    *ret_json = NULL;
    if (exchange->body_bytes > 0 && json_reader_end(&exchange->body, ret_json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    if (exchange->body_bytes > 0 && !*ret_json) /* null */
        return fail(err, ERR_BAD_REQUEST, "the body must be a JSON object");
    return 0;
}

int exchange_fields(struct exchange *exchange, const struct field *fields, size_t count, error *err)
{
    auto_json json = NULL;
    if (exchange_take_json(exchange, &json, err) < 0)
        return -1;
    return fields_read(json, fields, count, err);
}

static struct session *find(struct exchange *exchange, __typeof__(service_session_enter) *enter)
{
    struct session *session = NULL;
    error err;
    if (enter(exchange->service, &exchange->caller, exchange->parameters[0], &session, &err) == 0)
        return session;
    exchange_fail(exchange, &err);
    return NULL;
}

struct session *exchange_session(struct exchange *exchange)
{
    return find(exchange, service_session_enter);
}

struct session *exchange_tombstone(struct exchange *exchange)
{
    return find(exchange, service_session_look);
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
    error err;
    if (!session)
        return;
    if (json_reader_end(&exchange->body, &json, &err) < 0 ||
        service_session_change(session, json, &err) < 0)
        exchange_fail(exchange, &err);
    else
        session_answer(exchange, session, MHD_HTTP_OK);
}

static void delete_session(struct exchange *exchange)
{
    struct session *session = exchange_tombstone(exchange);
    if (!session)
        return;
    service_session_delete(session);
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
        done = service_session_pause(session, files_only, &err);
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
    if (service_session_resume(session, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    session_answer(exchange, session, MHD_HTTP_OK);
}

static void get_sessions(struct exchange *exchange)
{
    struct session_page page = { .state = exchange_query(exchange, "state"),
                                 .limit = exchange_query_count(exchange, "limit", PAGE),
                                 .metadata = exchange_query(exchange, "metadata") };
    struct session *session;
    error err;
    if (service_sessions_page(exchange->service, &exchange->caller,
                              exchange_query(exchange, "cursor"), &page, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = json_begin('{');
    json_open_field(&json, "sessions", '[');
    while ((session = service_sessions_next(&exchange->caller, &page)))
        service_session_write(session, &json);
    json_close(&json, ']');
    json_string_field(&json, "next_cursor", page.next);
    exchange_end_json(exchange, &json, "}");
}

static const struct parameter begin_query[] = {
    { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/sessions",      BODY_JSON, session_post,   "Begins a session: a sandbox that is kept between runs", .query = begin_query, .is_once = true, .status = 201, .takes = "SessionRequest", .gives = "Session", .operation = "createSession" },
    { "GET",    "/v1/sessions",      BODY_NONE, get_sessions,   "Sessions, the newest first; ?metadata= and ?state= choose, ?limit= and ?cursor= page", .gives = "SessionPage", .operation = "listSessions",
      .query = QUERY({ "limit", IN_QUERY, "count 1..1000", "rows of a page; 100 if it is left out" },
                     { "cursor", IN_QUERY, "string", "`next_cursor` of the page before" },
                     { "state", IN_QUERY, "=ended, all", "those that have ended, or these too" },
                     { "metadata", IN_QUERY, "string", "name=value&…, once more percent-encoded: all must match" }) },
    { "GET",    "/v1/sessions/{id}", BODY_NONE, get_session,    "A session, or its tombstone: when and why it ended, and what was kept", .gives = "Session", .awaits = AWAITS_STANDING, .operation = "getSession" },
    { "PATCH",  "/v1/sessions/{id}", BODY_JSON, patch_session,  "Touches a session; changes its deadlines and metadata", .takes = "SessionChange", .gives = "Session", .operation = "updateSession" },
    { "POST",   "/v1/sessions/{id}/pause",  BODY_NONE, post_pause,  "Stops everything in a session, and its deadlines; ?keep=files ends the programs and keeps the files", .gives = "Session", .awaits = AWAITS_BOTH, .is_repeatable = true, .operation = "pauseSession",
      .query = QUERY({ "keep", IN_QUERY, "=all, files", "files: ends the programs and keeps the files" }) },
    { "POST",   "/v1/sessions/{id}/resume", BODY_NONE, post_resume, "Lets a session run on", .gives = "Session", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "resumeSession" },
    { "POST",   "/v1/sessions/{id}/branch", BODY_JSON, session_post_branch, "Begins a session with the files of this one, and with the variables of one of its contexts", .query = begin_query, .is_once = true, .status = 201, .takes = "BranchRequest", .may_lack_body = true, .gives = "Session", .awaits = AWAITS_STANDING, .operation = "branchSession" },
    { "DELETE", "/v1/sessions/{id}", BODY_NONE, delete_session, "Ends a session and everything in it", .gives = "Session", .awaits = AWAITS_COPIES_TO_END, .operation = "endSession" },
    /* clang-format on */
};

const struct route_table session_routes = { "sessions", rows, COUNT_OF(rows), RIGHT_SESSIONS,
                                            .text = "Sandboxes that are kept between runs" };
