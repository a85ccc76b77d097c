/* response_head_test.c - the part of an upstream's response head that code gets. */
#include "base/table.h"
#include "base/test.h"
#include "egress/response_head.h"

#include <string.h>

static const char *written(const char *const lines[], unsigned headers)
{
    static char text[ANSWER_HEAD_MAX];
    static struct answer_head answer;
    struct egress_endpoint endpoint = { .port = 443,
                                        .is_tls = 1,
                                        .header_count = (uint16_t) headers,
                                        .name = "shop",
                                        .host = "api.example.org",
                                        .path = "/v1" };
    answer = (struct answer_head){ 0 };
    enum answer_verdict verdict = ANSWER_MORE;
    for (unsigned i = 0; lines[i] && verdict == ANSWER_MORE; i++)
        verdict = answer_head_take(&answer, lines[i], strlen(lines[i]));
    if (verdict != ANSWER_WHOLE)
        return "";
    text[answer_head_write(&answer, &endpoint, text)] = '\0';
    return text;
}

TEST(what_the_secret_was_worth_stays_outside)
{
    const char *const lines[] = { "HTTP/1.1 200 OK\r\n",
                                  "Set-Cookie: session=1\r\n",
                                  "SET-COOKIE:a=b\r\n",
                                  "X-Set-Cookie: c\r\n",
                                  "Content-Length: 0\r\n",
                                  "\r\n",
                                  NULL };
    const char *text = written(lines, 1);
    expect(!strstr(text, "session=1") && !strstr(text, "a=b") && strstr(text, "X-Set-Cookie: c"),
           "with a secret: %s", text);
    text = written(lines, 0);
    expect(strstr(text, "session=1") && strstr(text, "a=b"), "without: %s", text);
}

TEST(redirects_stay_below_the_endpoint)
{
    static const struct {
        const char *location, *told;
    } facts[] = {
        { "Location: /v1/x\r\n", "Location: http://shop.endpoint/x\r\n" },
        { "Location: https://api.example.org/v1/x\r\n", "Location: http://shop.endpoint/x\r\n" },
        { "Location: https://api.example.org:443/v1/\r\n", "Location: http://shop.endpoint/\r\n" },
        /* unchanged it would lead to /v1/v2/x */
        { "Location: /v2/x\r\n", "Location: https://api.example.org:443/v2/x\r\n" },
        { "Location: /v10\r\n", "Location: https://api.example.org:443/v10\r\n" },
        { "Location: /\r\n", "Location: https://api.example.org:443/\r\n" },
        { "Location: x\r\n", "Location: x\r\n" },
        { "Location: //api.example.org/v1/x\r\n", "Location: //api.example.org/v1/x\r\n" },
    };
    for_each(fact, facts) {
        const char *const lines[] = { "HTTP/1.1 302 Found\r\n", fact->location, "\r\n", NULL };
        const char *text = written(lines, 1);
        expect(strstr(text, fact->told), "%s became %s", fact->location, text);
    }
}

TEST(an_answer_that_can_be_read_in_two_ways_is_none)
{
    static const char *const facts[][2] = {
        { "Content-Length: 1\r\n", "Content-Length: 1\r\n" },
        { "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n" },
        { "Transfer-Encoding: chunked\r\n", "Content-Length: 1\r\n" },
        { "A: b\rSet-Cookie: c\r\n", "B: c\r\n" },
        { "no colon\r\n", "B: c\r\n" },
    };
    for_each(fact, facts) {
        const char *const lines[] = { "HTTP/1.1 200 OK\r\n", (*fact)[0], (*fact)[1], "\r\n", NULL };
        expect(written(lines, 0)[0] == '\0', "%s and %s passed", (*fact)[0], (*fact)[1]);
    }
}

TESTS(CASE(what_the_secret_was_worth_stays_outside), CASE(redirects_stay_below_the_endpoint),
      CASE(an_answer_that_can_be_read_in_two_ways_is_none))
