/* upstream_fuzz.c - what an endpoint's upstream may answer, and the URL that it is named by: no
 * secret comes through however the answer is cut, a head that is passed on has one meaning. The
 * first byte chooses. */
#include "base/endpoint_url.h"
#include "base/host_name.h"
#include "egress/redact.h"
#include "egress/response_head.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 16384, WORDS_MAX = 8 };

/* --- scrub: the plain way to say the same, with the whole text at hand ------------------------ */

static void cover(char *text, size_t size, const char *origin, const struct redact_word *word)
{
    for (size_t at = 0; at < size; at++) {
        size_t same = 0;
        while (same < word->size && at + same < size && origin[at + same] == word->at[same])
            same++;
        if (same >= redact_enough(word->size))
            memset(text + at, '*', same);
    }
}

/* "PIECE word,word\ntext": pieces of so many bytes. */
static void try_scrub(const uint8_t *data, size_t size)
{
    static char expected[TEXT_MAX];
    static char clean[2 * TEXT_MAX + REDACT_HOLD_MAX];
    static struct redact redact;
    struct redact_word words[WORDS_MAX];
    unsigned count = 0;
    if (size < 2 || size > TEXT_MAX)
        return;
    size_t step = data[0] % 64U + 1;
    const char *at = (const char *) data + 1;
    const char *end = memchr(at, '\n', size - 1);
    if (!end)
        return;
    while (at < end && count < WORDS_MAX) {
        const char *comma = memchr(at, ',', (size_t) (end - at));
        const char *stop = comma ? comma : end;
        if (stop > at)
            words[count++] = (struct redact_word){ at, (size_t) (stop - at) };
        at = stop + 1;
    }
    const char *text = end + 1;
    size_t left = size - (size_t) (text - (const char *) data);
    memcpy(expected, text, left);
    for (unsigned i = 0; i < count; i++)
        cover(expected, left, text, &words[i]);
    redact_init(&redact, words, count);
    size_t got = 0;
    for (size_t from = 0; from < left; from += step) {
        size_t piece = left - from < step ? left - from : step;
        size_t taken = redact_take(&redact, text + from, piece, clean + got);
        assert(taken <= piece + REDACT_HOLD_MAX && redact.held < REDACT_HOLD_MAX);
        got += taken;
    }
    got += redact_end(&redact, clean + got);
    assert(got == left);
    bool is_spelled = false; /* where not, the plain spelling is the only one */
    for (size_t i = 0; i < left; i++)
        is_spelled |= text[i] && strchr("%+\\&", text[i]);
    for (size_t i = 0; i < left; i++)
        assert(clean[i] == expected[i] || (is_spelled && clean[i] == '*'));
}

/* --- answer_head ------------------------------------------------------------------------------ */

static const struct egress_endpoint endpoint = {
    .name = "api",
    .host = "api.example.org",
    .path = "/v1",
    .port = 443,
    .is_tls = 1,
    .header_count = 1,
};

/* How many lines of the head have this name. */
static unsigned lines_of(const char *head, size_t size, const char *name)
{
    unsigned found = 0;
    size_t length = strlen(name);
    for (size_t at = 0; at + length < size; at++)
        found += at > 0 && head[at - 1] == '\n' && strncasecmp(head + at, name, length) == 0 &&
                 head[at + length] == ':';
    return found;
}

static void check_head(const struct answer_head *answer)
{
    static char head[ANSWER_HEAD_MAX];
    size_t size = answer_head_write(answer, &endpoint, head);
    if (size == 0)
        return;
    assert(size < sizeof head && strncmp(head, "HTTP/1.1 ", 9) == 0);
    assert(memcmp(head + size - 4, "\r\n\r\n", 4) == 0);
    assert((const char *) memmem(head, size, "\r\n\r\n", 4) == head + size - 4);
    for (size_t at = 0; at < size; at++) {
        assert(head[at] != '\0' && (head[at] != '\r' || head[at + 1] == '\n'));
        assert(head[at] != '\n' || head[at - 1] == '\r');
    }
    unsigned lengths = lines_of(head, size, "content-length");
    unsigned codings = lines_of(head, size, "transfer-encoding");
    assert(lengths <= 1 && codings <= 1 && lengths + codings <= 1);
    assert(lines_of(head, size, "connection") == 1);
    static const char *const never[] = { "set-cookie", "upgrade", "keep-alive",        "trailer",
                                         "alt-svc",    "te",      "proxy-authenticate" };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert(lines_of(head, size, never[i]) == 0);
}

static void try_answer(const uint8_t *data, size_t size)
{
    static struct answer_head answer;
    memset(&answer, 0, sizeof answer);
    answer.has_no_body = size > 0 && data[0] & 1;
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end ? (size_t) (end - data) + 1 : size;
        enum answer_verdict verdict = answer_head_take(&answer, (const char *) data, length);
        if (verdict == ANSWER_BAD)
            return;
        if (verdict == ANSWER_WHOLE) {
            assert(answer.status >= 200 && answer.status <= 599);
            assert(!(answer.has_length && (answer.has_coding || answer.is_chunked)));
            check_head(&answer);
        }
        data += length;
        size -= length;
    }
}

/* --- endpoint_url ----------------------------------------------------------------------------- */

static void try_url(const uint8_t *data, size_t size)
{
    struct endpoint_url url;
    struct endpoint_url again;
    char text[sizeof url.host + sizeof url.path + 32];
    char canonical[HOST_NAME_SIZE];
    char *given = strndup((const char *) data, size);
    assert(given);
    int result = endpoint_url_read(given, &url);
    free(given);
    if (result < 0)
        return;
    size_t length = strlen(url.path);
    assert(url.port != 0 && !host_name_is_literal(url.host, strlen(url.host)));
    assert(host_name_canonical(url.host, strlen(url.host), canonical) == 0 &&
           strcmp(canonical, url.host) == 0);
    assert(length == 0 || (url.path[0] == '/' && url.path[length - 1] != '/'));
    assert(!strstr(url.path, "/.") && !strpbrk(url.path, "?#%\\ \r\n"));
    (void) snprintf(text, sizeof text, "%s://%s:%u%s", url.is_tls ? "https" : "http", url.host,
                    url.port, url.path);
    assert(endpoint_url_read(text, &again) == 0 && again.is_tls == url.is_tls &&
           again.port == url.port && strcmp(again.host, url.host) == 0 &&
           strcmp(again.path, url.path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const uint8_t *, size_t) = { try_scrub, try_answer, try_url };
    if (size == 0)
        return 0;
    /* A copy that ends where it ends. */
    uint8_t *copy = malloc(size);
    assert(copy);
    memcpy(copy, data, size);
    tries[copy[0] % 3](copy + 1, size - 1);
    free(copy);
    return 0;
}
