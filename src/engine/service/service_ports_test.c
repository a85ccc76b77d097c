/* service_ports_test.c - a connection to a port, where the test plays init: windows in both
 * directions, and an end that is reported once. */
#include "engine/service/fake_session_test.h"

#include "engine/service/service_ports.h"

#include <errno.h>

enum { IN_WINDOW = 256 * 1024 };

static struct port_link *connect_port(void)
{
    struct port_link *link = NULL;
    error err;
    require(service_port_connect(&fake_session, 8080, &fake_waker, &link, &err) == 0, "%s",
            err.text);
    return link;
}

/* Bytes in frames of this kind; for CREDIT the credit. */
static uint64_t bytes_sent(enum agent_kind kind)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sent_count; i++) {
        struct agent_amount more;
        memcpy(&more, sent[i].payload, sizeof more);
        if (sent[i].kind == kind)
            sum += kind == AGENT_CREDIT ? more.bytes : sent[i].size;
    }
    return sum;
}

static int grant(uint64_t bytes, error *err)
{
    const struct agent_amount more = { .bytes = bytes };
    return answer(AGENT_CREDIT, &more, sizeof more, err);
}

TEST(a_connection_is_counted_and_given_up)
{
    struct agent_connect connect;
    error err;
    fake_session_begin();
    struct port_link *link = connect_port();
    memcpy(&connect, sent[0].payload, sizeof connect);
    expect(sent_count == 1 && sent[0].kind == AGENT_CONNECT && connect.port == 8080, "%u frames",
           sent_count);
    expect(fake_session.transfer_counts.done[TRANSFER_PORTS] == 1 && fake_session.holds == 1,
           "it is not counted");
    expect(!port_link_is_open(link) && port_link_check(link, &err) == 0, "nothing is known");
    expect(answer(AGENT_OPENED, NULL, 0, &err) == 0 && port_link_is_open(link) && wakes == 1, "%s",
           err.text);
    port_link_free(link);
    expect(sent_count == 2 && sent[1].kind == AGENT_CANCEL, "it goes on");
    expect(fake_session.holds == 0 && !fake_session.operations, "the session is still in use");
}

TEST(no_more_is_sent_than_the_server_takes)
{
    static const char block[AGENT_WINDOW + 1000];
    error err;
    fake_session_begin();
    struct port_link *link = connect_port();
    port_link_give(link, block, sizeof block);
    port_link_end_input(link);
    expect(bytes_sent(AGENT_DATA) == AGENT_WINDOW, "%llu bytes",
           (unsigned long long) bytes_sent(AGENT_DATA));
    expect(grant(600, &err) == 0 && bytes_sent(AGENT_DATA) == AGENT_WINDOW + 600, "600 more");
    expect(sent[sent_count - 1].kind == AGENT_DATA, "an end before the last bytes");
    expect(grant(600, &err) == 0 && bytes_sent(AGENT_DATA) == sizeof block, "all of it");
    expect(sent[sent_count - 1].kind == AGENT_END, "its end");
    unsigned before = sent_count;
    expect(grant(600, &err) == 0 && sent_count == before, "the end is reported once");
    expect(fake_session.transfer_counts.done[TRANSFER_PORT_BYTES_IN] == sizeof block,
           "not counted");
    expect(grant(AGENT_WINDOW, &err) < 0 && err.code == ERR_PROTOCOL, "more than it was given");
    port_link_free(link);
}

TEST(room_that_a_flush_makes_sends_nothing_twice)
{
    static const char block[3 * AGENT_PAYLOAD_MAX / 2];
    error err;
    fake_session_begin();
    struct port_link *link = connect_port();
    tells_of_room = true;
    port_link_give(link, block, sizeof block);
    port_link_end_input(link);
    while (bytes_sent(AGENT_DATA) < sizeof block && grant(1000, &err) == 0)
        tells_of_room = true;
    unsigned ends = 0;
    for (unsigned i = 0; i < sent_count; i++)
        ends += sent[i].kind == AGENT_END;
    expect(bytes_sent(AGENT_DATA) == sizeof block && ends == 1 &&
               sent[sent_count - 1].kind == AGENT_END,
           "%llu of %zu bytes, %u ends", (unsigned long long) bytes_sent(AGENT_DATA), sizeof block,
           ends);
    port_link_free(link);
}

TEST(a_door_stops_giving_while_there_is_no_room)
{
    static const char block[AGENT_WINDOW];
    error err;
    fake_session_begin();
    struct port_link *link = connect_port();
    port_link_give(link, block, sizeof block);
    expect(port_link_has_room(link), "all of it is under way");
    port_link_give(link, block, sizeof block);
    expect(!port_link_has_room(link), "a window waits");
    expect(grant(1, &err) == 0 && port_link_has_room(link), "a byte less");
    answer_done(ECONNRESET);
    expect(port_link_has_room(link), "what nobody takes any more holds up nobody");
    port_link_give(link, block, sizeof block);
    port_link_free(link);
}

TEST(bytes_from_a_server_are_ordered_anew_when_they_are_taken)
{
    static const char block[AGENT_PAYLOAD_MAX] = { 'x' };
    size_t waiting;
    uint64_t came = 0;
    error err;
    fake_session_begin();
    struct port_link *link = connect_port();
    for (; came + sizeof block <= IN_WINDOW; came += sizeof block)
        expect(answer(AGENT_DATA, block, sizeof block, &err) == 0, "%s", err.text);
    expect(*port_link_waiting(link, &waiting) == 'x' && waiting == came, "%zu bytes", waiting);
    expect(bytes_sent(AGENT_CREDIT) == 0, "nothing was taken");
    port_link_take(link, waiting - 1);
    (void) port_link_waiting(link, &waiting);
    expect(waiting == 1 && bytes_sent(AGENT_CREDIT) == came - 1, "%llu of %llu bytes",
           (unsigned long long) bytes_sent(AGENT_CREDIT), (unsigned long long) came - 1);
    expect(fake_session.transfer_counts.done[TRANSFER_PORT_BYTES_OUT] == came, "not counted");
    int kept = 0;
    for (uint64_t more = 0; more <= IN_WINDOW && kept == 0; more += sizeof block)
        kept = answer(AGENT_DATA, block, sizeof block, &err);
    expect(kept < 0 && err.code == ERR_PROTOCOL, "more than a window");
    port_link_free(link);
}

TEST(why_there_is_no_answer)
{
    static const struct {
        int os;
        enum error_code code;
        const char *says;
    } rows[] = {
        { ECONNREFUSED, ERR_UNREACHED, "" },
        { ENETUNREACH, ERR_POLICY, "network: loopback" },
    };
    error err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_session_begin();
        struct port_link *link = connect_port();
        answer_done(rows[i].os);
        expect(port_link_check(link, &err) < 0 && err.code == (int) rows[i].code &&
                   strstr(err.text, rows[i].says),
               "row %zu: %s", i, err.text);
        expect(port_link_has_ended(link), "row %zu: it goes on", i);
        port_link_free(link);
    }
    fake_session_begin();
    struct port_link *link = connect_port();
    expect(answer(AGENT_DATA, "x", 1, &err) == 0, "%s", err.text);
    fake_session_ends();
    expect(port_link_check(link, &err) == 0 && port_link_has_ended(link), "what came is an answer");
    port_link_free(link);
    expect(sent_count == 1, "nothing is sent to a session that has ended");
}

TEST(a_policy_that_withholds_has_no_ports)
{
    struct port_link *link = NULL;
    error err;
    fake_session_begin();
    fake_session_withholds();
    expect(service_port_connect(&fake_session, 80, &fake_waker, &link, &err) < 0 &&
               err.code == ERR_POLICY && sent_count == 0 && !link,
           "%s", err.text);
}

TESTS(CASE(a_connection_is_counted_and_given_up), CASE(no_more_is_sent_than_the_server_takes),
      CASE(room_that_a_flush_makes_sends_nothing_twice),
      CASE(a_door_stops_giving_while_there_is_no_room),
      CASE(bytes_from_a_server_are_ordered_anew_when_they_are_taken), CASE(why_there_is_no_answer),
      CASE(a_policy_that_withholds_has_no_ports))
