/* mcp.h - the Model Context Protocol at /mcp: shared by the files of this door.
 *
 * One message is one exchange and one `struct mcp_call`. A method or a tool answers at once
 * (mcp_result_open … mcp_result_close, mcp_fail), or sets `proceed` and returns: that is called
 * each time the exchange is woken. The answer is JSON; it becomes a stream of events if the call
 * takes longer than PATIENCE_MS, or when mcp_stream() is called.
 *
 * Two generations of the protocol are served: the revision of 2026-07-28, where each request is
 * complete in itself, and the earlier ones, which begin with a handshake. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "doors/http/http.h"
#include "engine/service/schema/schema.h"
#include "engine/service/service_runs.h"
#include "model/client_claim.h"
#include "json/member.h"
#include "json/payload.h"

#include <json.h>
#include <stdbool.h>
#include <stdint.h>

struct mcp_call;
struct mcp_client;

#define MCP_NEWEST "2026-07-28"
#define MCP_META   "io.modelcontextprotocol/"

enum mcp_era { ERA_HANDSHAKE = 1, ERA_STATELESS = 2, ERA_BOTH = 3 };

/* Error codes of JSON-RPC and MCP. */
enum mcp_code {
    MCP_PARSE = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_NEEDS_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

struct mcp_method {
    const char *name;
    enum mcp_era era;
    const char *named; /* the member of params that the header Mcp-Name must equal; NULL: none */
    void (*serve)(struct mcp_call *call);
};

enum mcp_hints { READS_ONLY = 1, DESTROYS = 2, IS_IDEMPOTENT = 4, IS_OPEN_WORLD = 8 };

/* Access to the user's folder that a `glovebox mcp` was given; only that process opens files. */
enum mcp_files { FILES_NONE, FILES_READ, FILES_WRITE };

struct mcp_tool {
    const char *name, *title;
    const char *text; /* what it does; if it runs code, a text on the policy follows */
    enum right right;
    unsigned hints;
    bool tells_policy;
    bool is_bare;                     /* the result is only what was printed */
    const struct property *arguments; /* with the types of schema.h */
    const char *schema;               /* in place of arguments, as JSON; not checked */
    const char *annotations;          /* JSON, in place of those of `hints` */
    const char *gives;                /* a schema of schema.h; NULL: only text */
    void (*begin)(struct mcp_call *call);
    enum mcp_files files; /* that the `glovebox mcp` must have */
};

enum { MCP_CLIENT_ID_SIZE = 36, MCP_SESSION_SIZE = 48, MCP_NAME_SIZE = 64, MCP_NOTE_SIZE = 656 };

/* A call that is answered before it has ended. */
enum { MCP_TASK_ID_SIZE = 64, MCP_TASK_POLL_MS = 1000 };
enum mcp_task_status {
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELLED
};
struct mcp_task {
    char id[MCP_TASK_ID_SIZE];
    enum mcp_task_status status;
    char message[MCP_NOTE_SIZE];    /* "": none */
    int64_t created_ms, updated_ms; /* since 1970 */
    int64_t ttl_ms;                 /* from its beginning; 0: no limit */
};

struct mcp_task_source {
    /* -1: no such task that the caller may see. */
    int (*find)(struct mcp_call *call, const char *id, struct mcp_task *ret_task);
    /* Adds "inputRequests", "result" or "error", depending on the status. */
    void (*tell)(struct mcp_call *call, const struct mcp_task *task, struct bytes *out);
    /* Takes answers to the questions of a task; NULL: tasks have none. */
    void (*update)(struct mcp_call *call, const struct mcp_task *task, struct json_object *answers);
    void (*cancel)(struct mcp_call *call, const struct mcp_task *task);
};

/* What is served, door.own: catalogue.c; in the conformance tests a table of fixtures. */
struct mcp_catalogue {
    const char *name, *title, *instructions;
    const struct mcp_tool *tools;
    size_t tool_count;
    bool tools_are_fixed;
    const struct mcp_method *methods; /* in addition to those of methods.c */
    size_t method_count;
    const char *capabilities;            /* JSON: members of the object, in a handshake */
    const char *stateless;               /* in server/discover; NULL: the same */
    const struct mcp_task_source *tasks; /* NULL: no tasks */
};

extern const struct route_table *const mcp_tables[];

/* The data of a tool during a call. */
struct mcp_work {
    struct session_wait *wait;
    struct watch *watch;
    struct artifact_check *check;
    bool is_damaged;
    void (*then)(struct mcp_call *call); /* called when the session runs */
    char session[MCP_SESSION_SIZE];      /* "": none */
    char note[MCP_NOTE_SIZE];            /* a sentence about the session, for the answer */
    bool is_named, is_mine, is_new;
    bool has_asked;    /* the client was asked for an approval */
    char approval[64]; /* its id */
    bool is_told;      /* the call was cancelled */
    struct file_task *file;
    struct payload content; /* to be written by file_write */
    uint64_t written;       /* bytes of it; for file_read: the offset */
    struct bytes read;      /* by file_read */
    struct bytes encoded;   /* by file_export */
    uint64_t seen;          /* by a subscription: version of the tools' texts */
};

struct mcp_call {
    struct exchange *exchange;
    const struct mcp_catalogue *catalogue;
    struct json_object *root; /* the message; the members below point into it, or are NULL */
    struct json_object *id, *params, *meta, *capabilities;
    const char *method_name;
    enum mcp_era era;
    const char *version;
    struct mcp_client *client;  /* of the handshake, or of the process; NULL: none */
    struct mcp_client *process; /* the `glovebox mcp` that sent the message; NULL: none */
    const struct mcp_method *method;
    const struct mcp_tool *tool;
    struct client_claim claim; /* of tools/call */
    struct json_object *arguments, *progress_token;
    struct mcp_call *next, *before; /* list of all calls under way */

    void (*proceed)(struct mcp_call *call); /* when the exchange is woken */
    struct mcp_work work;

    struct bytes out;
    size_t sent;
    unsigned status;
    bool is_stream, is_over;
    bool is_cancelled;
    int64_t began_ms;
    deadline patience;
    unsigned progress;                 /* notifications so far */
    char server_request[24];           /* id of a pending request to the client; "": none */
    struct json_object *client_answer; /* to it */
};

/* --- call.c ----------------------------------------------------------------------------------- */

/* NULL: no memory. */
struct mcp_call *mcp_call_new(struct exchange *exchange, const struct mcp_catalogue *catalogue);
void mcp_call_free(struct mcp_call *call);
/* The call of an exchange whose body has come; NULL: it was answered already. */
struct mcp_call *mcp_call_open(struct exchange *exchange);
/* Answers, streams or waits, depending on the call. */
void mcp_call_settle(struct mcp_call *call);
void mcp_call_wake(void *call);
/* Calls `proceed` at that moment, if nothing wakes it before. */
void mcp_call_look_at(struct mcp_call *call, deadline moment);
/* From now on the answer is a stream of events, and all that is written is sent at once. */
void mcp_stream(struct mcp_call *call);
bool mcp_may_stream(const struct mcp_call *call);
/* The call of this client with this id, if it is under way; NULL: none. */
struct mcp_call *mcp_call_find(const struct mcp_call *asker, struct json_object *id);
struct mcp_call *mcp_call_of_server_request(const struct mcp_call *asker, const char *id);
void mcp_calls_forget_client(const struct mcp_client *client);

/* --- message.c: checks a message, and its generation. Fails if it was answered. --------------- */

int mcp_message_read(struct mcp_call *call, struct json_reader *body);

/* --- headers.c -------------------------------------------------------------------------------- */

/* Compares the headers with the body. -1: they differ, which was answered. */
int mcp_headers_check(struct mcp_call *call);
int mcp_header_check_version(struct mcp_call *call, const char *version);
int mcp_header_check_arguments(struct mcp_call *call);
const char *mcp_header_of(const char *argument); /* its x-mcp-header; NULL: none */

/* --- reply.c ---------------------------------------------------------------------------------- */

/* Opens an object that the caller fills. */
struct bytes *mcp_result_open(struct mcp_call *call, const char *type);
/* The same, for a tool: with its content, one text. In tools.c. */
struct bytes *mcp_result_open_text(struct mcp_call *call, const char *text);
void mcp_result_close(struct mcp_call *call);
void mcp_acknowledge(struct mcp_call *call); /* with an empty result */
void mcp_fail(struct mcp_call *call, int code, const char *format, ...) PRINTF(3, 4);
/* `data` is JSON. */
void mcp_fail_with(struct mcp_call *call, int code, const char *data, const char *message);
/* Ends the call without a result: for notifications. */
void mcp_accept(struct mcp_call *call);
/* Opens a message to the client on the call's stream: the caller fills in the members of
 * "params". */
struct bytes *mcp_notice_open(struct mcp_call *call, const char *method, const char *id);
void mcp_notice_close(struct mcp_call *call);
/* At most once a second, and only if the client wants it. */
void mcp_progress(struct mcp_call *call, const char *message);
void mcp_write_id(const struct mcp_call *call, struct bytes *out);
void mcp_write_server(const struct mcp_call *call, struct bytes *out);

/* --- methods.c, tools.c ----------------------------------------------------------------------- */

void mcp_dispatch(struct mcp_call *call);
const struct mcp_method *mcp_method_find(const struct mcp_call *call);
void mcp_write_caching(const struct mcp_call *call, struct bytes *out);
void mcp_subscriptions_listen(struct mcp_call *call); /* subscriptions.c */
void mcp_tools_list(struct mcp_call *call);
void mcp_tools_call(struct mcp_call *call);

/* The result of a tool that failed: a text for the model. */
void mcp_tool_fail(struct mcp_call *call, const error *cause);
void mcp_tool_text(struct mcp_call *call, const char *text, bool is_error);
void mcp_content_text(struct bytes *out, const char *text, size_t size);
/* Writes a file name as one line: escapes line ends, bidirectional controls and invisible
 * characters. */
void mcp_add_name(struct bytes *text, const char *name, size_t size);

/* tool_schema.c */
void mcp_input_schema_write(const struct mcp_tool *tool, struct bytes *out);
void mcp_output_schema_write(const char *name, struct bytes *out);
/* Fails  with a sentence that names the argument. */
int mcp_arguments_check(const struct mcp_tool *tool, struct json_object *arguments, error *err);

/* --- clients.c -------------------------------------------------------------------------------- */

enum mcp_client_kind {
    CLIENT_HANDSHAKE, /* known by Mcp-Session-Id */
    CLIENT_PROCESS,   /* a `glovebox mcp`: exists while its stream does */
    CLIENT_KEY,       /* all requests with one key and without a handshake */
};

struct mcp_client {
    enum mcp_client_kind kind;
    char id[MCP_CLIENT_ID_SIZE];
    const struct account *account;
    const char *version;              /* of the handshake; NULL: none */
    struct client_claim claim;        /* of the handshake: name and version */
    unsigned capabilities;            /* of the handshake: bits of mcp_capabilities */
    char mine[MCP_SESSION_SIZE];      /* its default session; "": none yet */
    enum mcp_files files;             /* of a process */
    struct bytes sessions;            /* of a process: those it has begun, each ended by NUL */
    const struct mcp_client *process; /* of a handshake: the process that sent it; NULL: none */
    void (*ended)(const struct mcp_client *client); /* of a process with tasks, or NULL */
    int64_t used_ms;
    struct mcp_client *next;
};

/* Gives  a new one; NULL: too many, or no memory. */
struct mcp_client *mcp_client_new(enum mcp_client_kind kind, const char *id,
                                  const struct exchange *exchange);
struct mcp_client *mcp_client_find(enum mcp_client_kind kind, const char *id,
                                   const struct exchange *exchange);
/* The client for a new handshake; a process has one already. NULL: as mcp_client_new(). */
struct mcp_client *mcp_client_begin(const struct mcp_call *call);
/* The client that owns `mine`: that of the call, or of its key. NULL: no memory. */
struct mcp_client *mcp_client_of(struct mcp_call *call);
void mcp_client_end(struct mcp_client *client, const struct exchange *exchange);
/* A session that is ended with the process of the call. */
void mcp_client_remember_session(const struct mcp_call *call, const char *session);
void mcp_client_answered(struct mcp_call *call);

/* --- claim.c ---------------------------------------------------------------------------------- */

/* Copies what the client says of itself and its call to call->exchange->caller. */
void mcp_claim(struct mcp_call *call);
void mcp_claim_client(struct client_claim *claim, struct json_object *info);

/* --- tool_session.c: the session of a call ---------------------------------------------------- */

/* Finds or begins the session that the arguments name, work.session; `then` is called when it
 * runs. */
void mcp_session_use(struct mcp_call *call, void (*then)(struct mcp_call *call));

/* --- request_state.c, ask.c, approval.c ------------------------------------------------------- */

enum { MCP_STATE_SIZE = 128 };

/* Adds a sealed text that the client returns with its next request. */
void mcp_state_write(const struct mcp_call *call, const char *text, struct bytes *out);
/* 1: it was returned; 0: none; -1: an invalid one, which was answered. */
int mcp_state_read(struct mcp_call *call, char ret_text[MCP_STATE_SIZE]);

/* CAN_ELICIT: by a form; CAN_ELICIT_URL: by a page that the client opens for its user. */
enum mcp_capabilities { CAN_ELICIT = 1, CAN_SAMPLE = 2, CAN_ROOTS = 4, CAN_ELICIT_URL = 8 };

struct mcp_question {
    const char *name, *method;
    const char *params; /* JSON: the members of the object */
};

bool mcp_may_ask(const struct mcp_call *call, const char *capability);
/* Bits of the capabilities that a client has declared. */
unsigned mcp_capabilities_read(struct json_object *declared);
bool mcp_may_lead_to_page(const struct mcp_call *call);
/* `state` is sealed; NULL: none. After a handshake `proceed` continues with client_answer. */
void mcp_ask(struct mcp_call *call, const struct mcp_question *question, const char *state);
/* Several questions at once, as JSON; only for calls without a handshake. */
void mcp_ask_all(struct mcp_call *call, const char *requests, const char *state);
struct json_object *mcp_answer_to(const struct mcp_call *call, const char *name);

/* Asks the client's user about a run that waits for approval; false: the client cannot. */
bool mcp_approval_ask(struct mcp_call *call, const char *id);
/* Takes the answer. 0: the call may be tried again; -1: it was answered. */
int mcp_approval_hear(struct mcp_call *call, const char *id);

/* --- tasks.c, run_tasks.c --------------------------------------------------------------------- */

/* May this call be answered with a task? */
bool mcp_may_be_task(const struct mcp_call *call);
void mcp_fail_needs_tasks(struct mcp_call *call);
void mcp_task_answer(struct mcp_call *call, const struct mcp_task *task);
void mcp_tasks_get(struct mcp_call *call);
void mcp_tasks_update(struct mcp_call *call);
void mcp_tasks_cancel(struct mcp_call *call);

extern const struct mcp_task_source mcp_run_tasks;
/* Answers the call with a task for its run; false: there are too many tasks. */
bool mcp_run_becomes_task(struct mcp_call *call);

/* --- run_content.c ---------------------------------------------------------------------------- */

/* Writes the members of a tool result with the end of a run. */
void mcp_run_tell(struct mcp_call *call, const struct watch *watch);
/* Writes only the result: the members of the object. */
void mcp_run_write(const struct mcp_call *call, const struct bytes *text, struct bytes *out);
/* For tool_run.c: prints the state of the run and what it has used so far. */
void mcp_run_state_print(const struct watch *watch, char *text, size_t size);

/* The tools of the product. */
void mcp_run_code(struct mcp_call *call);
void mcp_run_status(struct mcp_call *call);
void mcp_run_cancel(struct mcp_call *call);
void mcp_session_open(struct mcp_call *call);
void mcp_session_close(struct mcp_call *call);
void mcp_policy_explain(struct mcp_call *call);
void mcp_file_write(struct mcp_call *call);
void mcp_file_read(struct mcp_call *call);
void mcp_file_list(struct mcp_call *call);
void mcp_file_import(struct mcp_call *call);

void mcp_python_code(struct mcp_call *call);

/* python_sse.c: the older transport with two URLs, for model servers. */
void mcp_python_get(struct exchange *exchange);
void mcp_python_post(struct exchange *exchange);

/* resources.c */
void mcp_artifact_woken(void *user, const error *why);
void mcp_artifact_checked(struct mcp_call *call);
void mcp_resources_list(struct mcp_call *call);
void mcp_resource_templates_list(struct mcp_call *call);
void mcp_resources_read(struct mcp_call *call);
