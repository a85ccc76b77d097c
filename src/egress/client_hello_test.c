/* client_hello_test.c - TLS greetings: complete or cut, with or without a name. */
#include "egress/client_hello.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

struct greeting {
    unsigned char bytes[CLIENT_HELLO_MAX + 64];
    size_t size;
};

static void put(struct greeting *greeting, const void *bytes, size_t size)
{
    memcpy(greeting->bytes + greeting->size, bytes, size);
    greeting->size += size;
}

static void put_number(struct greeting *greeting, size_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;)
        greeting->bytes[greeting->size++] = (unsigned char) (value >> (8 * i));
}

/* Makes a greeting of one record with these extensions. */
static void make_of(struct greeting *greeting, const void *extensions, size_t size)
{
    static const unsigned char random[32] = { 1 };
    size_t body = 2 + 32 + 1 + 4 + 2 + 2 + size;
    greeting->size = 0;
    put(greeting, "\26\3\1", 3);
    put_number(greeting, body + 4, 2);
    put_number(greeting, 1, 1);
    put_number(greeting, body, 3);
    put(greeting, "\3\3", 2);
    put(greeting, random, sizeof random);
    put(greeting, "\0\0\2\23\1\1\0", 7); /* no session, one cipher suite, no compression */
    put_number(greeting, size, 2);
    put(greeting, extensions, size);
}

static void make(struct greeting *greeting, const char *name, size_t length)
{
    static struct greeting extension;
    extension.size = 0;
    put_number(&extension, 0, 2);
    put_number(&extension, length + 5, 2);
    put_number(&extension, length + 3, 2);
    put_number(&extension, 0, 1);
    put_number(&extension, length, 2);
    put(&extension, name, length);
    make_of(greeting, extension.bytes, extension.size);
}

TEST(a_greeting_names_one_host)
{
    static const struct {
        const char *name;
        enum hello_verdict verdict;
    } facts[] = {
        { "api.example.org", HELLO_NAMED },
        { "API.Example.Org", HELLO_NAMED },
        { "api.example.org.", HELLO_NO_NAME }, /* RFC 6066: without the dot */
        { "93.184.216.34", HELLO_NO_NAME },
        { "api_1.example.org", HELLO_NO_NAME },
        { "b\xc3\xbc"
          "cher.example",
          HELLO_NO_NAME },
        { "", HELLO_NO_NAME },
    };
    static struct greeting greeting;
    char name[HOST_NAME_SIZE];
    for_each(fact, facts) {
        make(&greeting, fact->name, strlen(fact->name));
        enum hello_verdict verdict = client_hello_read(greeting.bytes, greeting.size, name);
        expect(verdict == fact->verdict, "'%s' gave %u", fact->name, verdict);
        expect(verdict != HELLO_NAMED || strcmp(name, "api.example.org") == 0, "'%s'", name);
    }
    make(&greeting, "api.example.org\0.evil.org", 25);
    expect(client_hello_read(greeting.bytes, greeting.size, name) == HELLO_NO_NAME, "NUL");
}

TEST(a_part_of_a_greeting_waits_for_the_rest)
{
    static struct greeting greeting;
    char name[HOST_NAME_SIZE];
    make(&greeting, "api.example.org", 15);
    for (size_t size = 0; size < greeting.size; size++)
        expect(client_hello_read(greeting.bytes, size, name) == HELLO_MORE, "%zu bytes", size);
}

TEST(a_greeting_may_be_cut_into_records)
{
    static struct greeting whole;
    static struct greeting cut;
    char name[HOST_NAME_SIZE];
    make(&whole, "api.example.org", 15);
    for (size_t piece = 1; piece < whole.size; piece++) {
        cut.size = 0;
        for (size_t at = 5; at < whole.size; at += piece) {
            size_t size = whole.size - at < piece ? whole.size - at : piece;
            put(&cut, whole.bytes, 3);
            put_number(&cut, size, 2);
            put(&cut, whole.bytes + at, size);
        }
        expect(client_hello_read(cut.bytes, cut.size, name) == HELLO_NAMED, "pieces of %zu", piece);
    }
}

TEST(what_does_not_fit_is_no_greeting)
{
    static const struct {
        size_t at;
        unsigned char value;
        enum hello_verdict verdict;
        const char *what;
    } facts[] = {
        { 0, 23, HELLO_NO_TLS, "not a handshake" },
        { 0, 'G', HELLO_NO_TLS, "HTTP" },
        { 1, 2, HELLO_NO_TLS, "SSL 2" },
        { 3, 0xff, HELLO_NO_TLS, "a record over the most" },
        { 5, 2, HELLO_NO_TLS, "a server's greeting" },
        { 6, 1, HELLO_NO_TLS, "a greeting over the most" },
        { 43, 0xff, HELLO_NO_TLS, "a session beyond the end" },
        { 44, 0xff, HELLO_NO_TLS, "cipher suites beyond the end" },
        { 48, 0xff, HELLO_NO_TLS, "compression beyond the end" },
        { 51, 1, HELLO_NO_TLS, "fewer extensions than there are" },
        { 55, 0xff, HELLO_NO_TLS, "an extension beyond the end" },
        { 57, 1, HELLO_NO_NAME, "a list that is shorter" },
        { 58, 7, HELLO_NO_NAME, "a name of another kind" },
        { 60, 1, HELLO_NO_NAME, "a name that is shorter" },
    };
    static struct greeting greeting;
    char name[HOST_NAME_SIZE];
    for_each(fact, facts) {
        make(&greeting, "api.example.org", 15);
        greeting.bytes[fact->at] = fact->value;
        enum hello_verdict verdict = client_hello_read(greeting.bytes, greeting.size, name);
        expect(verdict == fact->verdict, "%s gave %u", fact->what, verdict);
    }
    make(&greeting, "api.example.org", 15);
    memset(greeting.bytes + 3, 0, 2);
    expect(client_hello_read(greeting.bytes, greeting.size, name) == HELLO_NO_TLS, "empty record");
}

/* A greeting of the greatest size, whose last record goes on after its end. */
TEST(records_that_do_not_fit_the_longest_greeting_are_none)
{
    static struct greeting greeting;
    static const size_t records[] = { 16384, 557 };
    char name[HOST_NAME_SIZE];
    greeting.size = 0;
    put(&greeting, "\26\3\1\0\4\1", 6);
    put_number(&greeting, CLIENT_HELLO_MAX - 4, 3);
    for_each(size, records) {
        put(&greeting, "\26\3\1", 3);
        put_number(&greeting, *size, 2);
        greeting.size += *size;
    }
    expect(client_hello_read(greeting.bytes, greeting.size, name) == HELLO_NO_TLS, "it waits");
}

TEST(extensions_are_read_to_their_end)
{
    static const char other[] = "\0\53\0\3\2\3\4";
    static const char twice[] = "\0\0\0\10\0\6\0\0\3a.b\0\0\0\10\0\6\0\0\3a.b";
    static const char two_names[] = "\0\0\0\16\0\14\0\0\3a.b\0\0\3c.d";
    static const char cut[] = "\0\0\0";
    static const char stray[] = "\0\0\0\11\0\6\0\0\3a.bX";
    static const struct {
        const char *bytes;
        size_t size;
        enum hello_verdict verdict;
    } facts[] = {
        { other, sizeof other - 1, HELLO_NO_NAME }, /* no SNI */
        { twice, sizeof twice - 1, HELLO_NO_NAME },
        { two_names, sizeof two_names - 1, HELLO_NO_NAME },
        { cut, sizeof cut - 1, HELLO_NO_TLS },
        { stray, sizeof stray - 1, HELLO_NO_NAME },
        { "", 0, HELLO_NO_NAME },
    };
    static struct greeting greeting;
    char name[HOST_NAME_SIZE];
    for_each(fact, facts) {
        make_of(&greeting, fact->bytes, fact->size);
        enum hello_verdict verdict = client_hello_read(greeting.bytes, greeting.size, name);
        expect(verdict == fact->verdict, "row %ld gave %u", (long) (fact - facts), verdict);
    }
    make_of(&greeting, "", 0); /* and one that ends before them: TLS 1.0 */
    greeting.bytes[4] = (unsigned char) (greeting.bytes[4] - 2);
    greeting.bytes[8] = (unsigned char) (greeting.bytes[8] - 2);
    expect(client_hello_read(greeting.bytes, greeting.size - 2, name) == HELLO_NO_NAME, "TLS 1.0");
}

TEST(a_greeting_without_an_end_is_bounded)
{
    static struct greeting greeting;
    char name[HOST_NAME_SIZE];
    greeting.size = 0;
    put(&greeting, "\26\3\1\0\4\1\0\100\0", 9); /* claims 16,384 bytes, which arrive 4 at a time */
    while (greeting.size + 9 < sizeof greeting.bytes)
        put(&greeting, "\26\3\1\0\4\0\0\0\0", 9);
    enum hello_verdict verdict = client_hello_read(greeting.bytes, greeting.size, name);
    expect(verdict == HELLO_MORE, "%u", verdict); /* connection.c bounds the bytes */
    put_number(&greeting, 0, 1);
    expect(client_hello_read(greeting.bytes + 9, 9, name) == HELLO_NO_TLS, "no greeting's begin");
}

TESTS(CASE(records_that_do_not_fit_the_longest_greeting_are_none), CASE(a_greeting_names_one_host),
      CASE(a_part_of_a_greeting_waits_for_the_rest), CASE(a_greeting_may_be_cut_into_records),
      CASE(what_does_not_fit_is_no_greeting), CASE(extensions_are_read_to_their_end),
      CASE(a_greeting_without_an_end_is_bounded))
