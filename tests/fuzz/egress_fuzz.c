/* egress_fuzz.c - what code in a sandbox may say on its way out: questions about names, TLS
 * greetings, heads and bodies of requests. What is let through has one meaning only; nothing is
 * read beyond its end (the sanitizers see to that). The first byte chooses. */
#include "egress/client_hello.h"
#include "egress/dns.h"
#include "http1/chunked.h"
#include "http1/path_match.h"
#include "http1/request_head.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    char again[HOST_NAME_SIZE];
    assert(host_name_canonical(name, strlen(name), again) == 0 && strcmp(name, again) == 0);
    assert(!host_name_is_literal(name, strlen(name)));
}

static void try_question(const uint8_t *data, size_t size)
{
    struct dns_question question;
    unsigned char answer[DNS_ANSWER_MAX];
    struct in_addr address = { 0 };
    if (dns_read(data, size, &question) < 0)
        return;
    if (question.has_name)
        check_name(question.name);
    assert(strlen(question.name) < sizeof question.name);
    assert(dns_answer(&question, DNS_NO_ERROR, &address, answer) <= sizeof answer);
    assert(dns_answer(&question, DNS_REFUSED, NULL, answer) <= sizeof answer);
}

/* What is named in a part of the greeting is named in the whole of it. */
static void try_greeting(const uint8_t *data, size_t size)
{
    char name[HOST_NAME_SIZE];
    char whole[HOST_NAME_SIZE];
    if (client_hello_read(data, size / 2, name) != HELLO_NAMED)
        return;
    check_name(name);
    assert(client_hello_read(data, size, whole) == HELLO_NAMED && strcmp(name, whole) == 0);
}

/* A head that is written again parses to what it was, in every parser. It may have grown by Host
 * and Connection, and so out of the reader's own bounds. */
static void try_head(const uint8_t *data, size_t size)
{
    static char written[HTTP_HEAD_MAX + 1024];
    struct http_head head;
    struct http_head again;
    enum http_fault fault;
    if (http_head_read((const char *) data, size, 80, &head, &fault) != HTTP_WHOLE)
        return;
    assert(head.size <= size && head.field_count <= HTTP_FIELDS_MAX);
    assert(!(head.has_length && head.is_chunked) && !head.wants_upgrade && head.port != 0);
    if (!head.is_literal)
        check_name(head.name);
    size_t length = http_head_write(&head, written, sizeof written);
    if (length == 0 || head.target == HTTP_AUTHORITY || head.is_literal)
        return;
    if (length > HTTP_HEAD_MAX || head.field_count + 2 > HTTP_FIELDS_MAX)
        return;
    assert(http_head_read(written, length, 80, &again, &fault) == HTTP_WHOLE);
    assert(again.size == length && strcmp(again.name, head.name) == 0 && again.port == head.port);
    assert(again.path.size == head.path.size &&
           memcmp(again.path.at, head.path.at, head.path.size) == 0);
    assert(again.has_length == (head.has_length && !head.is_chunked) &&
           again.is_chunked == head.is_chunked && again.length == head.length);
    (void) http_path_is_below(head.path, "/repos/");
}

static void try_chunks(const uint8_t *data, size_t size)
{
    struct http_chunks chunks = { 0 };
    size_t at = 0;
    while (at < size) {
        size_t used;
        enum http_chunk_verdict verdict =
            http_chunks_take(&chunks, (const char *) data + at, size - at, &used);
        assert(used <= size - at);
        if (verdict == CHUNK_BAD || verdict == CHUNK_END)
            return;
        assert(used > 0 || verdict == CHUNK_DATA || verdict == CHUNK_SKIP);
        at += used > 0 ? used : 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const uint8_t *, size_t) = { try_question, try_greeting, try_head,
                                                              try_chunks };
    if (size == 0)
        return 0;
    /* A copy that ends where it ends. */
    uint8_t *copy = malloc(size);
    assert(copy);
    memcpy(copy, data, size);
    tries[copy[0] % 4](copy + 1, size - 1);
    free(copy);
    return 0;
}
