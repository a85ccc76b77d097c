/* catalogue.c - the tools, a row each. */
#include "base/table.h"
#include "doors/mcp/mcp.h"

static const char instructions[] =
    "Runs code that you write in sandboxes that cannot reach the user's machine. Without a session "
    "each call has a fresh sandbox; session: \"mine\" keeps variables and files between calls. The "
    "description of run_code says what is installed and allowed; results say what was denied and "
    "what to do instead.";

/* The two arguments that name a session, of which one is given. */
/* clang-format off */
#define RUN_SESSION                                                                                                   \
    { "session_id", "string 1..47", "runs in this session, which keeps variables and files; of session_open", true }, \
    { "session", "=mine", "mine: runs in a session of your own, which is begun when it is first used", true }
#define FILE_SESSION                                                       \
    { "session_id", "string 1..47", "whose file; of session_open", true }, \
    { "session", "=mine", "mine: the session of your own; one of these two is needed", true }

static const struct mcp_tool tools[] = {
    { "run_code", "Run code", "Runs a program in a sandbox and gives back what it printed, the value of its last expression, figures and files. "
                              "Without a session the sandbox is fresh and nothing is kept.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, .tells_policy = true, .gives = "RunOrCellResult", .begin = mcp_run_code,
      .arguments = FIELDS({ "code",       "string 1..10485760", "the program; what it prints and the files that it makes in /workspace come back" },
                          { "language",   "string 1..31",  "python if it is left out", true },
                          RUN_SESSION,
                          { "policy",     "string 1..63",  "what the run may do; the default policy if it is left out", true },
                          { "timeout_ms", "count 1..86400000", "it is ended then; at most what the policy allows", true },
                          { "stdin",      "string",        "what the program reads; not in a session", true },
                          { "files",      "[1024]RequestFile", "that lie in /workspace when it begins; not in a session", true },
                          { "approval_id", "string 1..63", "of an approval that was asked for with this very call", true }) },
    { "execute_python", "Run Python", "Runs Python code in a fresh sandbox, as run_code does.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, .gives = "RunResult", .begin = mcp_run_code,
      .arguments = FIELDS({ "code", "string 1..10485760", "the program, in Python" }) },
    { "run_command", "Run a command", "Runs a line of shell in a sandbox, as run_code runs code.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, .gives = "RunOrCellResult", .begin = mcp_run_code,
      .arguments = FIELDS({ "command",    "string 1..131072", "a line for the shell" },
                          RUN_SESSION,
                          { "policy",     "string 1..63",  "what the run may do; the default policy if it is left out", true },
                          { "timeout_ms", "count 1..86400000", "it is ended then; at most what the policy allows", true },
                          { "approval_id", "string 1..63", "of an approval that was asked for with this very call", true }) },
    { "session_open", "Open a session", "Begins a sandbox that is kept between calls: variables, files in /workspace and programs stay until session_close, or until nothing has happened for idle_seconds (10 minutes).",
      RIGHT_SESSIONS, 0, .gives = "Session", .begin = mcp_session_open,
      .arguments = FIELDS({ "policy",       "string", "what the session may do; the default policy if it is left out", true },
                          { "idle_seconds", "number 1..31622400", "it ends when nothing has happened for so long", true }) },
    { "session_close", "End a session", "Ends a session, its programs, variables and files.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, .gives = "Session", .begin = mcp_session_close,
      .arguments = FIELDS({ "session_id", "string 1..47", "as session_open gave it" }) },
    { "file_write", "Write a file", "Writes a file of a session.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, .gives = "FileWritten", .begin = mcp_file_write,
      .arguments = FIELDS({ "path",           "string 1..4095", "beneath /workspace; its folder must be there" },
                          { "content",        "string",  "its text; or", true },
                          { "content_base64", "base64",  "any bytes", true },
                          FILE_SESSION) },
    { "file_read", "Read a file", "Reads a file of a session: text as text, images as images, other bytes as they are.",
      RIGHT_SESSIONS, READS_ONLY, .begin = mcp_file_read,
      .arguments = FIELDS({ "path",   "string 1..4095", "beneath /workspace" },
                          { "offset", "count 0..9007199254740991", "the first byte; 0 if it is left out", true },
                          { "bytes",  "count 1..4194304", "at most so many; 65536 if it is left out", true },
                          FILE_SESSION) },
    { "file_list", "List files", "What lies in a folder of a session.",
      RIGHT_SESSIONS, READS_ONLY, .gives = "FileListing", .begin = mcp_file_list,
      .arguments = FIELDS({ "path",  "string 1..4095", "of the folder; /workspace if it is left out", true },
                          { "depth", "count 1..64",    "of folders below it; 1 if it is left out", true },
                          FILE_SESSION) },
    { "file_import", "Copy a file in", "Copies a file of the user's folder into a session, at most 16 MiB; it does not pass through you.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, .gives = "FileWritten", .begin = mcp_file_import, .files = FILES_READ,
      .arguments = FIELDS({ "file", "string 1..4095", "its path in the user's folder" },
                          { "path", "string 1..4095", "where it goes, beneath /workspace; its own name if it is left out", true },
                          FILE_SESSION) },
    { "file_export", "Copy a file out", "Copies a file of a session into the user's folder, at most 16 MiB; it does not pass through you.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, .begin = mcp_file_read, .files = FILES_WRITE,
      .arguments = FIELDS({ "path",    "string 1..4095", "beneath /workspace" },
                          { "file",    "string 1..4095", "the path that it gets in the user's folder" },
                          { "replace", "boolean", "true: takes the place of a file that is there", true },
                          FILE_SESSION) },
    { "run_status", "How a run is", "Where a run stands, or its result once it has ended.",
      RIGHT_RESULTS, READS_ONLY, .gives = "RunResultOrState", .begin = mcp_run_status,
      .arguments = FIELDS({ "run_id",       "string 1..63", "as a result gave it" },
                          { "wait_seconds", "count 0..300", "waits so long for its end", true }) },
    { "run_cancel", "Cancel a run", "Ends a run and gives what it has printed and made so far.",
      RIGHT_RESULTS, DESTROYS | IS_IDEMPOTENT, .gives = "RunOrCellResult", .begin = mcp_run_cancel,
      .arguments = FIELDS({ "run_id",       "string 1..63", "as a result gave it" }) },
    { "policy_explain", "What is allowed", "What runs may do here: languages, limits, network, what is installed, what a person is asked about.",
      RIGHT_ANY, READS_ONLY, .begin = mcp_policy_explain,
      .arguments = FIELDS({ "policy", "string 1..63", "which one; the default policy if it is left out", true }) },
};
/* clang-format on */

static const struct mcp_catalogue product = {
    .name = "glovebox",
    .title = "glovebox",
    .instructions = instructions,
    .tools = tools,
    .tool_count = COUNT_OF(tools),
    .capabilities = "\"tools\":{\"listChanged\":false},\"resources\":{\"listChanged\":false}",
    .stateless = "\"tools\":{\"listChanged\":true},\"resources\":{\"listChanged\":false},"
                 "\"extensions\":{\"" MCP_META "tasks\":{}}",
    .tasks = &mcp_run_tasks,
};

const struct door mcp_door = { mcp_tables, .own = &product };
