/* python_sse.c - /mcp/python: a server called `python` whose only tool is python(code), for model
 * servers whose built-in interpreter has this name. They use the older transport: messages are sent
 * by POST, and answers come on a stream that was opened before. All streams with one x-session-id
 * share a session. */
#include "base/list.h"
#include "base/table.h"
#include "doors/mcp/mcp.h"

#include <microhttpd.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS_MAX = 1024, CALLS_MAX = 16, ID_SIZE = 33 };

struct python_stream {
    struct exchange *exchange;
    char id[ID_SIZE];     /* for its messages */
    char client[ID_SIZE]; /* of x-session-id */
    struct mcp_call *calls[CALLS_MAX];
    struct bytes out;
    size_t sent;
    struct python_stream *next;
};

static struct python_stream *streams;
static size_t stream_count;

/* clang-format off */
static const struct mcp_tool tools[] = {
    { .name = "python", .text = "Runs Python code in an interpreter that keeps its variables, and gives back what it prints.",
      .right = RIGHT_SESSIONS, .is_bare = true, .arguments = FIELDS({ "code", "string 1..10485760", "the program, in Python" }),
      .annotations = "{\"include_in_prompt\":false}", .begin = mcp_python_code },
};
/* clang-format on */

static const struct mcp_catalogue python = {
    .name = "python",
    .title = "python",
    .instructions =
        "Use this tool to execute Python code in your chain of thought. The code will not be shown "
        "to the user. It runs in a sandbox that keeps variables and files between calls.",
    .tools = tools,
    .tool_count = COUNT_OF(tools),
    .capabilities = "\"tools\":{\"listChanged\":false}",
};

/* Moves what the call has written to the stream, and frees the call if it has ended. */
static void take_out(struct python_stream *stream, struct mcp_call **call)
{
    bytes_add(&stream->out, (*call)->out.data, (*call)->out.size);
    stream->out.failed |= (*call)->out.failed;
    (*call)->out.size = 0;
    if (!(*call)->is_over)
        return;
    mcp_call_free(*call);
    *call = NULL;
}

static ssize_t read_stream(struct exchange *exchange, char *bytes, size_t size)
{
    struct python_stream *stream = exchange->user;
    if (stream->sent == stream->out.size) {
        stream->out.size = stream->sent = 0;
        for (size_t i = 0; i < CALLS_MAX; i++) {
            struct mcp_call *call = stream->calls[i];
            if (call && !call->is_over && call->proceed)
                call->proceed(call);
            if (call)
                take_out(stream, &stream->calls[i]);
        }
    }
    size_t left = stream->out.size - stream->sent, here = left < size ? left : size;
    if (stream->out.failed)
        return STREAM_BROKEN;
    if (here == 0)
        return STREAM_LATER;
    memcpy(bytes, stream->out.data + stream->sent, here);
    stream->sent += here;
    return (ssize_t) here;
}

static void close_stream(struct exchange *exchange)
{
    struct python_stream *stream = exchange->user;
    (void) list_remove(streams, stream, next);
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (stream->calls[i])
            mcp_call_free(stream->calls[i]);
    bytes_done(&stream->out);
    stream_count--;
    free(stream);
}

static void name_stream(struct python_stream *stream)
{
    unsigned char random[(ID_SIZE - 1) / 2];
    const char *said = exchange_header(stream->exchange, "x-session-id");
    randombytes_buf(random, sizeof random);
    (void) sodium_bin2hex(stream->id, sizeof stream->id, random, sizeof random);
    if (said)
        (void) crypto_generichash(random, sizeof random, (const unsigned char *) said, strlen(said),
                                  NULL, 0);
    (void) sodium_bin2hex(stream->client, sizeof stream->client, random, sizeof random);
}

void mcp_python_get(struct exchange *exchange)
{
    struct python_stream *stream = stream_count < STREAMS_MAX ? calloc(1, sizeof *stream) : NULL;
    error err;
    if (!stream) {
        (void) fail(&err, ERR_BUSY, "%d streams of this kind are open; close one", STREAMS_MAX);
        exchange_fail(exchange, &err);
        return;
    }
    stream->exchange = exchange;
    name_stream(stream);
    bytes_print(&stream->out, "event: endpoint\ndata: /mcp/python/messages?session_id=%s\n\n",
                stream->id);
    stream->next = streams;
    streams = stream;
    stream_count++;
    exchange->user = stream;
    exchange->closed = close_stream;
    exchange_add_header(exchange, "X-Accel-Buffering", "no");
    exchange_stream(exchange, read_stream);
}

static struct python_stream *find_stream(const struct exchange *exchange)
{
    const char *id = exchange_query(exchange, "session_id");
    for (struct python_stream *stream = streams; id && stream; stream = stream->next)
        if (strcmp(stream->id, id) == 0 &&
            stream->exchange->caller.account == exchange->caller.account)
            return stream;
    return NULL;
}

/* Gives  a free entry for one more call; NULL: none. */
static struct mcp_call **free_place(struct python_stream *stream)
{
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (!stream->calls[i])
            return &stream->calls[i];
    return NULL;
}

static int begin_call(struct python_stream *stream, struct exchange *exchange, error *err)
{
    struct mcp_call **place = free_place(stream);
    if (!place)
        return fail(err, ERR_BUSY, "%d calls of this stream are under way", CALLS_MAX);
    struct mcp_call *call = mcp_call_new(stream->exchange, &python);
    if (!call)
        return fail(err, ERR_SYSTEM, "no memory for a message");
    *place = call;
    call->client = mcp_client_find(CLIENT_KEY, stream->client, stream->exchange);
    if (!call->client)
        call->client = mcp_client_new(CLIENT_KEY, stream->client, stream->exchange);
    mcp_stream(call);
    if (mcp_message_read(call, &exchange->body) == 0)
        mcp_dispatch(call);
    exchange_wake(stream->exchange);
    return 0;
}

void mcp_python_post(struct exchange *exchange)
{
    struct python_stream *stream = find_stream(exchange);
    error err;
    int result = stream ? begin_call(stream, exchange, &err)
                        : fail(&err, ERR_NOT_FOUND,
                               "no stream has this session_id; GET "
                               "/mcp/python/sse names one");
    if (result < 0)
        exchange_fail(exchange, &err);
    else
        exchange_answer_nothing(exchange, MHD_HTTP_ACCEPTED);
}
