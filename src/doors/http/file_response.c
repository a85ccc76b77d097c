/* file_response.c - answers with a file, or with the part that the client wants. */
#include "base/cleanup.h"
#include "doors/http/http_internal.h"
#include "doors/http/range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TAG_SIZE = 80 };

/* RFC 9110: "*", or a list of tags, weak ones included. */
static bool names_tag(const char *list, const char *quoted)
{
    return list && (strcmp(list, "*") == 0 || strstr(list, quoted));
}

static int read_range(struct exchange *exchange, uint64_t size, const char *quoted,
                      struct byte_range *range)
{
    const char *text = exchange_header(exchange, MHD_HTTP_HEADER_RANGE);
    const char *only_if = exchange_header(exchange, MHD_HTTP_HEADER_IF_RANGE);
    *range = (struct byte_range){ 0, size };
    if (!text || (only_if && strcmp(only_if, quoted) != 0))
        return RANGE_WHOLE;
    return range_read(text, size, range);
}

static void refuse_range(struct exchange *exchange, uint64_t size)
{
    char value[40];
    error err;
    (void) snprintf(value, sizeof value, "bytes */%" PRIu64, size);
    exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_RANGE, value);
    (void) fail(&err, ERR_RANGE, "the file has %" PRIu64 " bytes; Range '%.60s' is beyond its end",
                size, exchange_header(exchange, MHD_HTTP_HEADER_RANGE));
    exchange_fail(exchange, &err);
}

static void send_part(struct exchange *exchange, int fd, const struct byte_range *range,
                      unsigned status, const char *mime)
{
    auto_fd file = fd;
    struct MHD_Response *response =
        MHD_create_response_from_fd_at_offset64(range->size, file, range->from);
    if (response)
        (void) take_fd(&file); /* libmicrohttpd closes it */
    exchange_queue(exchange, status, response, mime);
}

void exchange_file(struct exchange *exchange, int fd, uint64_t size, const char *mime,
                   const char *tag)
{
    auto_fd file = fd;
    struct byte_range range = { 0, size };
    int part = RANGE_WHOLE;
    if (tag) {
        char quoted[TAG_SIZE];
        (void) snprintf(quoted, sizeof quoted, "\"%.70s\"", tag);
        exchange_add_header(exchange, MHD_HTTP_HEADER_ETAG, quoted);
        exchange_add_header(exchange, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
        if (names_tag(exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH), quoted)) {
            exchange_answer_nothing(exchange, MHD_HTTP_NOT_MODIFIED);
            return;
        }
        part = read_range(exchange, size, quoted, &range);
    }
    if (part == RANGE_BEYOND) {
        refuse_range(exchange, size);
        return;
    }
    if (part == RANGE_PART) {
        char value[80];
        (void) snprintf(value, sizeof value, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.from,
                        range.from + range.size - 1, size);
        exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_RANGE, value);
    }
    send_part(exchange, take_fd(&file), &range,
              part == RANGE_PART ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, mime);
}
