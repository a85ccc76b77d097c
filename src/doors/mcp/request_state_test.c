#include "base/test.h"
#include "doors/mcp/mcp.h"

#include <sodium.h>
#include <string.h>

/* A call as a client sends it. */
struct sent {
    struct exchange exchange;
    struct mcp_call call;
};

static struct account *account; /* whose key it comes with */

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
    account = NULL;
}

TESTS(CASE(a_state_is_good_for_its_call_and_once),
      CASE(many_states_of_one_account_leave_room_for_those_of_another))
