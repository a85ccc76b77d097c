/* response_reader_test.c - heads of answers, whole and in pieces. */
#include "http1/response_reader.h"

#include "base/test.h"

#include <string.h>

/* Gives the head byte by byte: its end is found with its last byte, and no byte is searched
 * twice. */
static void comes_in_bytes(const char *head)
{
    size_t size = strlen(head), used = 0;
    struct port_answer answer = { .status = 0 };
    error err;
    for (size_t have = 1; have < size; have++) {
        require(port_answer_read(&answer, head, have, &used, &err) == ANSWER_CUT, "at %zu", have);
        expect(answer.looked == have, "looked at %zu of %zu", answer.looked, have);
    }
    require(port_answer_read(&answer, head, size, &used, &err) == ANSWER_WHOLE, "%s", err.text);
    expect(used == size && answer.status == 200 && answer.has_size && answer.left == 5,
           "used %zu of %zu, status %u", used, size, answer.status);
    bytes_done(&answer.headers);
}

TEST(a_head_may_come_in_any_pieces)
{
    comes_in_bytes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    comes_in_bytes("HTTP/1.1 200 OK\nContent-Length: 5\n\n");
    comes_in_bytes("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\n\r\n");
}

/* A status of 100 comes before the real answer, if the client asked for it by Expect. */
TEST(one_head_after_another_is_read_from_its_own_beginning)
{
    static const char both[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    struct port_answer answer = { .status = 0 };
    size_t first, second;
    error err;
    require(port_answer_read(&answer, both, 24, &first, &err) == ANSWER_CUT, "cut");
    require(port_answer_read(&answer, both, sizeof both - 1, &first, &err) == ANSWER_WHOLE, "%s",
            err.text);
    expect(answer.status == 100 && first == 25, "%u after %zu", answer.status, first);
    require(port_answer_read(&answer, both + first, sizeof both - 1 - first, &second, &err) ==
                ANSWER_WHOLE,
            "%s", err.text);
    expect(answer.status == 200 && first + second == sizeof both - 1, "%u", answer.status);
    bytes_done(&answer.headers);
}

TESTS(CASE(a_head_may_come_in_any_pieces),
      CASE(one_head_after_another_is_read_from_its_own_beginning))
