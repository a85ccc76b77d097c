/* dns_test.c - DNS questions: which are valid, what they ask, how they are answered. */
#include "egress/dns.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

#define HEAD      "\0\7\1\0\0\1\0\0\0\0\0\0"
#define NAME      "\3api\7example\3org\0"
#define ASKS_A    "\0\1\0\1"
#define LABEL(c)  "\77" c c c c c c c c c c c c c c c c c c c c c
#define THREE(c)  c c c
#define TEXT(...) (__VA_ARGS__), sizeof(__VA_ARGS__) - 1

TEST(a_question_is_one_name_of_one_kind)
{
    static const struct {
        const char *bytes;
        size_t size;
        int result;
        bool has_name;
        const char *name;
    } facts[] = {
        { TEXT(HEAD NAME ASKS_A), 0, true, "api.example.org" },
        { TEXT(HEAD "\3API\7Example\3ORG\0" ASKS_A), 0, true, "api.example.org" },
        { TEXT(HEAD NAME "\0\34\0\1"), 0, true, "api.example.org" },
        { TEXT("\0\7\1\0\0\1\0\0\0\0\0\1" NAME ASKS_A "\0\0\51"), 0, true, "api.example.org" },
        { TEXT(HEAD "\4a%2f\3org\0" ASKS_A), 0, false, "a?2f.org" },
        { TEXT(HEAD "\3a\0b\3org\0" ASKS_A), 0, false, "a?b.org" },
        { TEXT(HEAD "\3a.b\3org\0" ASKS_A), 0, false, "a?b.org" }, /* a dot inside a label */
        { TEXT(HEAD "\0" ASKS_A "\0"), 0, false, "" },
        { TEXT(HEAD "\0" ASKS_A), 0, false, "" }, /* the shortest */
        { TEXT(HEAD "\0\0\1\0"), -1, false, "" },
        { TEXT(HEAD "\177\0\0\1" ASKS_A), -1, false, "" }, /* a label over 63 */
        { TEXT(HEAD "\100" THREE("abcdefghijklmnopqrst") "abcd\0" ASKS_A), -1, false, "" },
        { TEXT(HEAD "\300\14" ASKS_A), -1, false, "" }, /* a pointer */
        { TEXT(HEAD "\77abc" ASKS_A), -1, false, "" },  /* cut */
        { TEXT(HEAD NAME "\0\1\0\3"), -1, false, "" },  /* another class */
        { TEXT("\0\7\201\0\0\1\0\0\0\0\0\0" NAME ASKS_A), -1, 0, "" } /* an answer */,
        { TEXT("\0\7\50\0\0\1\0\0\0\0\0\0" NAME ASKS_A), -1, 0, "" }, /* an update */
        { TEXT("\0\7\1\0\0\2\0\0\0\0\0\0" NAME ASKS_A NAME ASKS_A), -1, 0, "" },
        { TEXT("\0\7\1\0\0\1\0\1\0\0\0\0" NAME ASKS_A), -1, 0, "" },
        { TEXT("\0\7\1\0\0\1\0\0\0\0\0\2" NAME ASKS_A "\0\0\51"), -1, 0, "" },
        { TEXT(HEAD), -1, 0, "" },
        { TEXT(""), -1, 0, "" },
        { TEXT(HEAD THREE(LABEL("abc")) "\75" THREE("aaaaaaaaaaaaaaaaaaaa") "a\0" ASKS_A), 0, true,
          NULL },
        { TEXT(HEAD THREE(LABEL("abc")) LABEL("abc") "\0" ASKS_A), 0, false, NULL },
        { TEXT(HEAD THREE(LABEL("abc")) LABEL("abc") "\1a\0" ASKS_A), -1, false, NULL },
    };
    for_each(fact, facts) {
        struct dns_question question = { 0 };
        int result = dns_read((const unsigned char *) fact->bytes, fact->size, &question);
        long row = fact - facts;
        expect(result == fact->result, "row %ld gave %d", row, result);
        if (result < 0 || fact->result < 0)
            continue;
        expect(question.has_name == fact->has_name, "row %ld: has_name %d", row, question.has_name);
        expect(!fact->name || strcmp(question.name, fact->name) == 0, "row %ld: '%s'", row,
               question.name);
        expect(question.id == 7 && question.recursion, "row %ld: id %u", row, question.id);
    }
}

TEST(a_message_beyond_the_max_is_none)
{
    static unsigned char message[DNS_QUESTION_MAX + 1];
    struct dns_question question;
    memcpy(message, HEAD NAME ASKS_A, sizeof HEAD NAME ASKS_A - 1);
    expect(dns_read(message, sizeof message - 1, &question) == 0, "the most");
    expect(dns_read(message, sizeof message, &question) < 0, "one more");
}

TEST(a_question_that_is_cut_is_none)
{
    static const unsigned char message[] = HEAD NAME ASKS_A;
    struct dns_question question;
    for (size_t size = 0; size < sizeof message - 1; size++)
        expect(dns_read(message, size, &question) < 0, "%zu bytes", size);
}

TEST(an_answer_repeats_the_question)
{
    static const unsigned char message[] = HEAD NAME ASKS_A;
    struct dns_question question;
    unsigned char answer[DNS_ANSWER_MAX];
    struct in_addr address = { htonl(198U << 24 | 18U << 16 | 1) };
    size_t asked = sizeof NAME ASKS_A - 1;
    require(dns_read(message, sizeof message - 1, &question) == 0, "a question");
    memset(answer, 0xff, sizeof answer);
    size_t size = dns_answer(&question, DNS_NO_ERROR, &address, answer);
    expect(size == 12 + asked + 16, "%zu bytes", size);
    expect(memcmp(answer, "\0\7\201\200\0\1\0\1\0\0\0\0", 12) == 0, "its head");
    expect(memcmp(answer + 12, NAME ASKS_A, asked) == 0, "the question");
    expect(memcmp(answer + size - 16, "\300\14\0\1\0\1\0\0", 8) == 0, "name, type and class");
    expect(memcmp(answer + size - 6, "\0\4", 2) == 0, "the length of the address");
    expect(memcmp(answer + size - 4, &address, 4) == 0, "the address");
    size = dns_answer(&question, DNS_REFUSED, NULL, answer);
    expect(size == 12 + asked && answer[3] == 0x85 && answer[7] == 0, "a refusal");
    question.recursion = false;
    (void) dns_answer(&question, DNS_NO_ERROR, NULL, answer);
    expect(answer[2] == 0x80, "recursion that nobody asked for");
}

TESTS(CASE(a_question_is_one_name_of_one_kind), CASE(a_message_beyond_the_max_is_none),
      CASE(a_question_that_is_cut_is_none), CASE(an_answer_repeats_the_question))
