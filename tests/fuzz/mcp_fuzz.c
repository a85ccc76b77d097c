/* mcp_fuzz.c - any messages of the Model Context Protocol under any headers: each is answered once,
 * in JSON that has its id and no line end within, or, if it is a notification, with nothing.
 *
 * An input is up to eight messages with 0x1E between them; one is lines "Name: value", an empty
 * line, and a body. The value "@" is the session that the last handshake was given. */
#include "doors/mcp/mcp.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service_artifacts.h"
#include "engine/service/service_tools.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MESSAGES_MAX = 8, HEADERS_MAX = 16, TEXT_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__wrap_exchange_header(const struct exchange *exchange, const char *name);
void __wrap_exchange_each_header(const struct exchange *exchange,
                                 void (*each)(void *context, const char *name, const char *value),
                                 void *context);
void __wrap_exchange_add_header(struct exchange *exchange, const char *name, const char *value);
void __wrap_exchange_wake(struct exchange *exchange);
int __wrap_service_tool_words(const struct service *service, const struct caller *caller,
                              struct tool_words *words, error *err);
int __wrap_service_artifact_check(const struct service *service, const struct caller *caller,
                                  const char *hash, struct artifact_check **ret_check, error *err);
void __wrap_exchange_rest(struct exchange *exchange);
uint64_t __wrap_service_tool_words_version(const struct service *service);

static struct header {
    char *name, *value;
} headers[HEADERS_MAX];
static unsigned header_count;
static char text[TEXT_MAX]; /* of the headers */
static char session[MCP_CLIENT_ID_SIZE];

const char *__wrap_exchange_header(const struct exchange *exchange, const char *name)
{
    (void) exchange;
    for (unsigned i = 0; i < header_count; i++)
        if (strcasecmp(headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}

void __wrap_exchange_each_header(const struct exchange *exchange,
                                 void (*each)(void *context, const char *name, const char *value),
                                 void *context)
{
    (void) exchange;
    for (unsigned i = 0; i < header_count; i++)
        each(context, headers[i].name, headers[i].value);
}

void __wrap_exchange_add_header(struct exchange *exchange, const char *name, const char *value)
{
    (void) exchange;
    assert(strcmp(name, "Mcp-Session-Id") == 0 && strlen(value) < sizeof session);
    memcpy(session, value, strlen(value) + 1);
}

void __wrap_exchange_wake(struct exchange *exchange)
{
    (void) exchange;
}

void __wrap_exchange_rest(struct exchange *exchange)
{
    (void) exchange;
}

uint64_t __wrap_service_tool_words_version(const struct service *service)
{
    (void) service;
    return 1;
}

int __wrap_service_tool_words(const struct service *service, const struct caller *caller,
                              struct tool_words *words, error *err)
{
    (void) service, (void) caller, (void) words;
    return fail(err, ERR_NOT_FOUND, "no policy");
}

int __wrap_service_artifact_check(const struct service *service, const struct caller *caller,
                                  const char *hash, struct artifact_check **ret_check, error *err)
{
    (void) service, (void) caller, (void) ret_check;
    return fail(err, ERR_NOT_FOUND, "no artifact %.80s", hash);
}

/* --- a tool that asks, and one whose arguments stand in headers too --------------------------- */

static void heard(struct mcp_call *call)
{
    struct json_object *answer = mcp_answer_to(call, "q");
    const char *action = member_text(answer, "action");
    mcp_tool_text(call, action ? action : "none", false);
}

static void ask(struct mcp_call *call)
{
    static const struct mcp_question question = { "q", "elicitation/create", "\"message\":\"?\"" };
    char state[MCP_STATE_SIZE];
    int asked = mcp_state_read(call, state);
    if (asked < 0)
        return;
    if (asked > 0)
        heard(call);
    else if (!mcp_may_ask(call, "elicitation"))
        mcp_fail_needs_tasks(call);
    else
        mcp_ask(call, &question, "state");
    call->proceed = heard;
}

static void echo(struct mcp_call *call)
{
    const char *code = member_text(call->arguments, "code");
    auto_bytes name = { 0 };
    assert(code && *code);
    mcp_add_name(&name, code, strlen(code));
    mcp_tool_text(call, bytes_text(&name), false);
}

static const struct mcp_tool tools[] = {
    { .name = "run",
      .title = "Run",
      .text = "…",
      .tells_policy = true,
      .begin = echo,
      .arguments =
          FIELDS({ "code", "string 1..10485760", "…" }, { "policy", "string 1..63", "…", true },
                 { "timeout_ms", "count 1..86400000", "…", true }) },
    { .name = "ask",
      .title = "Ask",
      .text = "…",
      .begin = ask,
      .arguments = FIELDS({ "policy", "string 1..63", "…", true }) },
    { .name = "mirror",
      .text = "…",
      .schema = "{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"},\"b\":{\"x-mcp-header\":\"B\"}}}",
      .begin = ask },
};

/* The task "w" works, "q" asks, and every other one of a letter has ended. */
static int find_task(struct mcp_call *call, const char *id, struct mcp_task *task)
{
    (void) call;
    assert(strlen(id) < sizeof task->id);
    *task = (struct mcp_task){ .created_ms = 1, .updated_ms = 2, .ttl_ms = 3 };
    memcpy(task->id, id, strlen(id) + 1);
    task->status = *id == 'w' ? TASK_WORKING : *id == 'q' ? TASK_INPUT_REQUIRED : TASK_COMPLETED;
    return *id ? 0 : -1;
}

static void tell_task(struct mcp_call *call, const struct mcp_task *task, struct bytes *out)
{
    (void) call;
    bytes_add_text(out, task->status == TASK_COMPLETED ? ",\"result\":{}" : "");
}

static void update_task(struct mcp_call *call, const struct mcp_task *task,
                        struct json_object *answers)
{
    (void) call;
    assert(task->status == TASK_INPUT_REQUIRED && json_object_is_type(answers, json_type_object));
}

static void cancel_task(struct mcp_call *call, const struct mcp_task *task)
{
    (void) call;
    assert(task->status != TASK_COMPLETED);
}

static const struct mcp_task_source tasks = { find_task, tell_task, update_task, cancel_task };
static const struct mcp_catalogue catalogue = { .name = "fuzz",
                                                .title = "fuzz",
                                                .tools = tools,
                                                .tool_count = 3,
                                                .capabilities = "",
                                                .tasks = &tasks };

/* --- one message ------------------------------------------------------------------------------ */

/* Gives  where the body begins. */
static size_t read_headers(const uint8_t *data, size_t size)
{
    size_t at = 0;
    header_count = 0;
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = data[i] == 0 ? ' ' : (char) data[i];
    text[length] = '\0';
    for (char *end; header_count < HEADERS_MAX && (end = strchr(text + at, '\n'));) {
        char *line = text + at;
        *end = '\0';
        at = (size_t) (end - text) + 1;
        char *value = strstr(line, ": ");
        if (!value)
            break;
        *value = '\0';
        headers[header_count].name = line;
        headers[header_count++].value = strcmp(value + 2, "@") == 0 ? session : value + 2;
    }
    return at;
}

static void check_message(const struct mcp_call *call, const char *json, size_t size)
{
    struct json_object *message = NULL;
    error err;
    assert(json_read(json, size, &message, &err) == 0);
    assert(strcmp(member_text(message, "jsonrpc"), "2.0") == 0);
    struct json_object *id = json_member(message, "id");
    bool is_answer = json_member(message, "result") || json_member(message, "error");
    assert(is_answer ? json_object_equal(id, call->id) : member_text(message, "method") != NULL);
    for (size_t i = 0; i < size; i++)
        assert((unsigned char) json[i] >= ' ');
    assert(!memmem(json, size, "\xC2\x85", 2) && !memmem(json, size, "\xE2\x80\xA8", 3));
    (void) json_object_put(message);
}

static void check_answer(const struct mcp_call *call)
{
    static const char field[] = "event: message\ndata: ";
    const char *at = call->out.data, *end = at + call->out.size;
    assert(!call->out.failed && (call->is_over || call->is_stream || call->proceed));
    if (call->out.size == 0)
        return;
    if (!call->is_stream) {
        assert(call->is_over);
        check_message(call, at, call->out.size);
        return;
    }
    while (at < end) {
        assert(strncmp(at, field, sizeof field - 1) == 0);
        at += sizeof field - 1;
        const char *line_end = memchr(at, '\n', (size_t) (end - at));
        assert(line_end && line_end + 1 < end && line_end[1] == '\n');
        check_message(call, at, (size_t) (line_end - at));
        at = line_end + 2;
    }
}

static struct mcp_call *serve(struct exchange *exchange, const uint8_t *body, size_t size)
{
    error err;
    struct mcp_call *call = mcp_call_new(exchange, &catalogue);
    assert(call && json_reader_open(&exchange->body, &err) == 0);
    json_reader_take(&exchange->body, (const char *) body, size);
    if (mcp_message_read(call, &exchange->body) == 0)
        mcp_dispatch(call);
    json_reader_close(&exchange->body);
    bool is_silent = call->is_over && call->out.size == 0;
    assert(!is_silent || !call->method_name || !call->id);
    check_answer(call);
    return call;
}

/* Calls whose question was answered go on; then everybody goes. */
static void end_all(struct mcp_call **calls, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!calls[i]->is_over && calls[i]->client_answer) {
            calls[i]->out.size = 0;
            calls[i]->proceed(calls[i]);
            check_answer(calls[i]);
        }
        mcp_call_free(calls[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct account accounts[2] = { { .key.id = "" }, { .key.id = "k" } };
    static struct exchange exchanges[MESSAGES_MAX];
    struct mcp_call *calls[MESSAGES_MAX];
    char sessions[MESSAGES_MAX][MCP_CLIENT_ID_SIZE] = { 0 };
    unsigned count = 0;
    session[0] = '\0';
    memset(exchanges, 0, sizeof exchanges);
    exchanges[0].caller.account = &accounts[0];
    struct mcp_client *process = mcp_client_new(CLIENT_PROCESS, "p", &exchanges[0]);
    for (const uint8_t *end = data; end && count < MESSAGES_MAX; count++) {
        end = memchr(data, 0x1E, size);
        size_t here = end ? (size_t) (end - data) : size;
        size_t begin = read_headers(data, here);
        bool is_other = __wrap_exchange_header(NULL, "Authorization") != NULL;
        exchanges[count].caller.account = &accounts[is_other];
        calls[count] = serve(&exchanges[count], data + begin, here - begin);
        memcpy(sessions[count], session, sizeof session);
        data += end ? here + 1 : 0;
        size -= end ? here + 1 : 0;
    }
    end_all(calls, count);
    exchanges[0].caller.account = &accounts[0];
    mcp_client_end(process, &exchanges[0]);
    for (unsigned i = 0; i < 2 * count; i++) {
        exchanges[0].caller.account = &accounts[i % 2];
        struct mcp_client *client =
            mcp_client_find(CLIENT_HANDSHAKE, sessions[i / 2], &exchanges[0]);
        if (client)
            mcp_client_end(client, &exchanges[0]);
    }
    return 0;
}
