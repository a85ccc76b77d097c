#include "base/table.h"
#include "base/test.h"
#include "doors/mcp/mcp.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

/* A call as sent by a client. */
struct sent {
    struct exchange exchange;
    struct mcp_call call;
};

static struct account *account; /* of the key that sends it */
static int64_t now = 1000;
static const int64_t valid_ms = 900000; /* as docs/mcp.md says */

int64_t __wrap_now_ms(void);
int64_t __wrap_now_ms(void)
{
    return now;
}

static void send_call(struct sent *sent, const char *params)
{
    static const struct mcp_catalogue catalogue = { .name = "test", .title = "test" };
    memset(sent, 0, sizeof *sent);
    sent->exchange.caller.account = account;
    sent->call.exchange = &sent->exchange;
    sent->call.catalogue = &catalogue;
    sent->call.era = ERA_STATELESS;
    sent->call.method_name = "tools/call";
    sent->call.params = json_tokener_parse(params);
}

static int read_state(const char *params, const char *state, char text[MCP_STATE_SIZE])
{
    struct sent sent;
    send_call(&sent, params);
    (void) json_object_object_add(sent.call.params, "requestState", json_object_new_string(state));
    int result = mcp_state_read(&sent.call, text);
    (void) json_object_put(sent.call.params);
    bytes_done(&sent.call.out);
    return result;
}

TEST(a_state_is_good_for_its_call_and_once)
{
    static const char params[] = "{\"name\":\"run\",\"arguments\":{\"a\":1,\"b\":2}}";
    static const char same[] = "{\"arguments\":{\"b\":2,\"a\":1},\"name\":\"run\"}";
    struct sent sent;
    char text[MCP_STATE_SIZE];
    auto_bytes state = { 0 };
    expect(sodium_init() >= 0, "libsodium");
    send_call(&sent, params);
    mcp_state_write(&sent.call, "apr_1", &state);
    (void) json_object_put(sent.call.params);
    expect(read_state("{\"name\":\"run\",\"arguments\":{\"a\":1}}", bytes_text(&state), text) < 0,
           "other arguments");
    expect(read_state("{\"name\":\"ran\",\"arguments\":{\"a\":1,\"b\":2}}", bytes_text(&state),
                      text) < 0,
           "another tool");
    expect(read_state(params, "v1.AAAA", text) < 0, "too short");
    expect(read_state(params, "", text) < 0, "empty");
    expect(read_state(same, bytes_text(&state), text) == 1 && strcmp(text, "apr_1") == 0, "good");
    expect(read_state(params, bytes_text(&state), text) < 0, "it was used");
}

TEST(a_state_with_another_character_anywhere_is_refused)
{
    struct sent sent;
    char text[MCP_STATE_SIZE];
    auto_bytes state = { 0 };
    expect(sodium_init() >= 0, "libsodium");
    send_call(&sent, "{}");
    mcp_state_write(&sent.call, "apr_1", &state);
    (void) json_object_put(sent.call.params);
    for (size_t i = 0; i < state.size; i++) {
        char was = state.data[i];
        state.data[i] = was == 'A' ? 'B' : 'A';
        expect(read_state("{}", bytes_text(&state), text) < 0, "character %zu", i);
        state.data[i] = was;
    }
    expect(read_state("{}", bytes_text(&state), text) == 1, "as it was");
}

TEST(a_state_is_good_for_fifteen_minutes)
{
    static const struct {
        int64_t after_ms;
        int result;
    } facts[] = {
        { 0, 1 },
        { 900000, 1 },
        { 900001, -1 },
        { 86400000, -1 },
    };
    expect(sodium_init() >= 0, "libsodium");
    for_each(fact, facts) {
        struct sent sent;
        char text[MCP_STATE_SIZE];
        auto_bytes state = { 0 };
        send_call(&sent, "{}");
        mcp_state_write(&sent.call, "apr_1", &state);
        (void) json_object_put(sent.call.params);
        now += fact->after_ms;
        int result = read_state("{}", bytes_text(&state), text);
        expect(result == fact->result, "after %" PRId64 " ms: %d", fact->after_ms, result);
        expect(read_state("{}", bytes_text(&state), text) < 0, "again after %" PRId64 " ms",
               fact->after_ms);
    }
}

/* Used states are remembered until they expire, and no longer. */
TEST(an_expired_state_makes_room_and_stays_used)
{
    static char one;
    char text[MCP_STATE_SIZE];
    struct sent sent;
    auto_bytes state = { 0 };
    expect(sodium_init() >= 0, "libsodium");
    account = (void *) &one;
    send_call(&sent, "{}");
    mcp_state_write(&sent.call, "apr_1", &state);
    (void) json_object_put(sent.call.params);
    expect(read_state("{}", bytes_text(&state), text) == 1, "good");
    now += valid_ms;
    for (int i = 1; i <= 3; i++)
        expect(read_state("{}", bytes_text(&state), text) < 0, "used, in its last moment: %d", i);
    now++;
    expect(read_state("{}", bytes_text(&state), text) < 0, "used and expired");
    account = NULL;
}

static int go_round(void)
{
    struct sent sent;
    char text[MCP_STATE_SIZE];
    auto_bytes state = { 0 };
    send_call(&sent, "{}");
    mcp_state_write(&sent.call, "apr_1", &state);
    (void) json_object_put(sent.call.params);
    return read_state("{}", bytes_text(&state), text);
}

TEST(many_states_of_one_account_leave_room_for_those_of_another)
{
    static char accounts[2];
    int good = 0;
    expect(sodium_init() >= 0, "libsodium");
    account = (void *) &accounts[0];
    for (int i = 0; i < 300; i++)
        good += go_round() == 1;
    expect(good == 256, "%d were taken", good);
    account = (void *) &accounts[1];
    expect(go_round() == 1, "the other's");
    account = (void *) &accounts[0];
    now += valid_ms + 1;
    expect(go_round() == 1, "its own, after the others have expired");
    account = NULL;
}

TESTS(CASE(a_state_is_good_for_its_call_and_once),
      CASE(a_state_with_another_character_anywhere_is_refused),
      CASE(a_state_is_good_for_fifteen_minutes), CASE(an_expired_state_makes_room_and_stays_used),
      CASE(many_states_of_one_account_leave_room_for_those_of_another))
