/* signed_urls.c - URLs that need no key: for one path and one method, until a time. */
#include "doors/rest/file_request.h"

#include "base/clock.h"
#include "base/table.h"
#include "doors/http/url_signature.h"
#include "engine/service/service_sessions.h"
#include "http1/percent_encode.h"
#include "json/writer.h"

#include <inttypes.h>
#include <string.h>

enum { SIGNED_SECONDS_MAX = 7 * 24 * 3600 };

static void write_url(struct bytes *out, const struct pass *pass)
{
    char signature[PASS_SIZE];
    pass_sign(pass, signature);
    bytes_print(out, "/v1/signed/%s/", pass->session);
    percent_encode(out, pass->path->data, pass->path->size, PERCENT_PATH);
    bytes_print(out, "?expires=%" PRIu64, pass->expires);
    if (*pass->key)
        bytes_print(out, "&key=%s", pass->key);
    if (*pass->mode)
        bytes_print(out, "&mode=%s", pass->mode);
    bytes_print(out, "&signature=%s", signature);
}

/* A request for a signed URL. */
struct wish {
    struct bytes path, method, mode;
    uint64_t seconds;
};

static int read_wish(struct exchange *exchange, struct wish *wish, error *err)
{
    const struct field fields[] = {
        { "path", FIELD_TEXT, &wish->path, FILE_PATH_MAX },
        { "path_base64", FIELD_BASE64, &wish->path, FILE_PATH_MAX },
        { "method", FIELD_TEXT, &wish->method, 8 },
        { "mode", FIELD_TEXT, &wish->mode, 4 },
        { "expires_seconds", FIELD_COUNT, &wish->seconds, SIGNED_SECONDS_MAX },
    };
    uint32_t mode;
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0 ||
        file_path_check(&wish->path, err) < 0)
        return -1;
    const char *method = bytes_text(&wish->method);
    bool is_put = strcmp(method, "PUT") == 0;
    if ((!is_put && *method && strcmp(method, "GET") != 0) || wish->path.size == 0 ||
        wish->seconds == 0 || (wish->mode.size > 0 && !is_put))
        return fail(err, ERR_BAD_REQUEST,
                    "a signed URL needs one 'path', the 'method' GET or PUT (with the 'mode' "
                    "of the file), and its seconds");
    return wish->mode.size > 0 ? file_mode_read(bytes_text(&wish->mode), &mode, err) : 0;
}

static void answer_signed(struct exchange *exchange, struct wish *wish)
{
    auto_bytes url = { 0 };
    const struct pass pass = { .key = service_key_id(&exchange->caller),
                               .session = exchange->parameters[0],
                               .transfer =
                                   wish->method.size > 0 ? bytes_text(&wish->method) : "GET",
                               .mode = bytes_text(&wish->mode),
                               .path = &wish->path,
                               .expires = (uint64_t) wall_clock_ms() / 1000 + wish->seconds };
    write_url(&url, &pass);
    struct bytes json = json_begin('{');
    json_string_field(&json, "url", bytes_text(&url));
    json_string_field(&json, "method", pass.transfer);
    json_moment_field(&json, "expires_at", (int64_t) pass.expires * 1000);
    exchange_end_json(exchange, &json, "}");
}

void file_sign(struct exchange *exchange)
{
    error err = { 0 };
    struct wish wish = { .seconds = 300 };
    struct session *session = exchange_session(exchange);
    if (!session)
        return;
    if (read_wish(exchange, &wish, &err) < 0) {
        exchange_fail(exchange, &err);
    } else {
        service_session_count_signature(session);
        answer_signed(exchange, &wish);
    }
    bytes_done(&wish.path);
    bytes_done(&wish.method);
    bytes_done(&wish.mode);
}

static const char *query_or_nothing(const struct exchange *exchange, const char *name)
{
    const char *value = exchange_query(exchange, name);
    return value ? value : "";
}

int file_check_permit(struct exchange *exchange, error *err)
{
    uint64_t expires = exchange_query_count(exchange, "expires", 0);
    auto_bytes path = { 0 };
    bytes_add_text(&path, exchange->parameters[1]);
    const struct pass pass = { .key = query_or_nothing(exchange, "key"),
                               .session = exchange->parameters[0],
                               .transfer = strcmp(exchange->method, "PUT") == 0 ? "PUT" : "GET",
                               .mode = query_or_nothing(exchange, "mode"),
                               .path = &path,
                               .expires = expires };
    if (!pass_fits(&pass, exchange_query(exchange, "signature")))
        return fail(err, ERR_UNAUTHORIZED, "the signature is not valid for this URL and method");
    if ((uint64_t) wall_clock_ms() / 1000 >= expires)
        return fail(err, ERR_UNAUTHORIZED, "the signature has expired; ask for a new one");
    return pass_use(exchange, &pass, err);
}

int file_begin_signed_put(struct exchange *exchange, error *err)
{
    return file_check_permit(exchange, err) < 0 ? -1 : file_begin_put(exchange, err);
}
