/* sink_test.c - facts about what crosses JSON. */
#include "base/sink.h"
#include "base/table.h"
#include "base/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(the_first_bad_byte_is_found)
{
    static const struct {
        const char *text;
        size_t size, bad;
    } facts[] = {
        { "", 0, 0 },
        { "plain", 5, 5 },
        { "gr\xc3\xbc\xc3\x9f", 6, 6 },
        { "\xf0\x9f\x98\x80", 4, 4 },
        { "a\0b", 3, 1 }, /* NUL would end the text somewhere else */
        { "a\xff", 2, 1 },
        { "a\xc3", 2, 1 },            /* cut short */
        { "\xc0\xaf", 2, 0 },         /* overlong '/' */
        { "\xe0\x80\xaf", 3, 0 },     /* overlong */
        { "\xf0\x80\x80\xaf", 4, 0 }, /* overlong */
        { "\xed\xa0\x80", 3, 0 },     /* a surrogate */
        { "\xf4\x90\x80\x80", 4, 0 }, /* above U+10FFFF */
        { "\xf5\x80\x80\x80", 4, 0 },
        { "ok\x80", 3, 2 },
    };
    for_each(fact, facts) {
        size_t bad = text_first_bad_byte(fact->text, fact->size);
        expect(bad == fact->bad, "'%s' gave %zu", fact->text, bad);
    }
}

TEST(base64_is_strict)
{
    static const struct {
        const char *text;
        int64_t size; /* -1: refused */
        const char *bytes;
    } facts[] = {
        { "", 0, "" },        { "Zg==", 1, "f" },        { "Zm8=", 2, "fo" },
        { "Zm9v", 3, "foo" }, { "Zm9vYg==", 4, "foob" }, { "AP8=", 2, "\0\xff" },
        { "Zg", -1, "" },     { "Zg=", -1, "" },         { "Zg==Zg==", -1, "" },
        { "Z===", -1, "" },   { "Zm 9", -1, "" },        { "=Zm9", -1, "" },
        { "Zm9-", -1, "" },   { "Z=9v", -1, "" },
    };
    for_each(fact, facts) {
        char out[16] = "";
        int64_t size = base64_decode(fact->text, strlen(fact->text), out);
        expect(size == fact->size && (size < 0 || memcmp(out, fact->bytes, (size_t) size) == 0),
               "'%s' gave %lld", fact->text, (long long) size);
    }
}

/* What a sink writes into a socket must be what it counted. */
static void check_written(void (*write_all)(struct sink *), const char *expected, size_t size)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no socketpair");
    struct sink sink;
    error err;
    sink_init(&sink, -1);
    write_all(&sink);
    expect(sink.total == size, "counted %llu, not %zu", (unsigned long long) sink.total, size);
    sink_init(&sink, pair[0]);
    write_all(&sink);
    expect(sink_flush(&sink, &err) == 0, "not written");
    (void) close(pair[0]);
    char came[256] = "";
    ssize_t got = recv(pair[1], came, sizeof came, MSG_WAITALL);
    expect(got == (ssize_t) size && memcmp(came, expected, size) == 0, "'%.*s' came", (int) got,
           came);
    (void) close(pair[1]);
}

static void write_strings(struct sink *sink)
{
    sink_json_string(sink, "a\"b\\c\n\t\x01\x7fü", 11);
    sink_json_string(sink, "", 0);
}

static void write_base64(struct sink *sink)
{
    sink_base64(sink, "", 0);
    sink_base64(sink, "f", 1);
    sink_base64(sink, "fo", 2);
    sink_base64(sink, "foo", 3);
    sink_base64(sink, "\0\xff", 2);
}

TEST(a_sink_writes_what_it_counted)
{
    static const char strings[] = "\"a\\\"b\\\\c\\n\\u0009\\u0001\x7fü\"\"\"";
    static const char encoded[] = "\"\"\"Zg==\"\"Zm8=\"\"Zm9v\"\"AP8=\"";
    check_written(write_strings, strings, strlen(strings));
    check_written(write_base64, encoded, strlen(encoded));
}

TEST(a_reader_that_is_gone_is_a_failure)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no socketpair");
    (void) close(pair[1]);
    struct sink sink;
    error err;
    sink_init(&sink, pair[0]);
    sink_text(&sink, "nobody reads this");
    expect(sink_flush(&sink, &err) < 0 && err.code == ERR_SYSTEM, "it was sent");
    (void) close(pair[0]);
}

TESTS(CASE(the_first_bad_byte_is_found), CASE(base64_is_strict),
      CASE(a_sink_writes_what_it_counted), CASE(a_reader_that_is_gone_is_a_failure))
