/* catalogue.c - the tools, a row each. */
#include "base/table.h"
#include "doors/mcp/mcp.h"

static const char instructions[] =
    "Runs code that you write in sandboxes that cannot reach the user's machine. Without a session "
    "each call has a fresh sandbox; session: \"mine\" keeps variables and files between calls. The "
    "description of run_code says what is installed and allowed; results say what was denied and "
    "what to do instead.";

/* clang-format off */
static const struct mcp_tool tools[] = {
    { "run_code", "Run code", "Runs a program in a sandbox and gives back what it printed, the value of its last expression, figures and files. "
                              "Without a session the sandbox is fresh and nothing is kept.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, true, false, mcp_run_code_arguments, NULL, NULL, "RunOrCellResult", mcp_run_code },
    { "execute_python", "Run Python", "Runs Python code in a fresh sandbox, as run_code does.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, false, false, mcp_python_arguments, NULL, NULL, "RunResult", mcp_run_code },
    { "run_command", "Run a command", "Runs a line of shell in a sandbox, as run_code runs code.",
      RIGHT_RUN, DESTROYS | IS_OPEN_WORLD, false, false, mcp_run_command_arguments, NULL, NULL, "RunOrCellResult", mcp_run_code },
    { "session_open", "Open a session", "Begins a sandbox that is kept between calls: variables, files in /workspace and programs stay until session_close, or until nothing has happened for idle_seconds (10 minutes).",
      RIGHT_SESSIONS, 0, false, false, mcp_session_open_arguments, NULL, NULL, "Session", mcp_session_open },
    { "session_close", "End a session", "Ends a session, its programs, variables and files.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, false, false, mcp_session_id_arguments, NULL, NULL, "Session", mcp_session_close },
    { "file_write", "Write a file", "Writes a file of a session.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, false, false, mcp_file_write_arguments, NULL, NULL, "FileWritten", mcp_file_write },
    { "file_read", "Read a file", "Reads a file of a session: text as text, images as images, other bytes as they are.",
      RIGHT_SESSIONS, READS_ONLY, false, false, mcp_file_read_arguments, NULL, NULL, NULL, mcp_file_read },
    { "file_list", "List files", "What lies in a folder of a session.",
      RIGHT_SESSIONS, READS_ONLY, false, false, mcp_file_list_arguments, NULL, NULL, "FileListing", mcp_file_list },
    { "file_import", "Copy a file in", "Copies a file of the user's folder into a session, at most 16 MiB; it does not pass through you.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, false, false, mcp_file_import_arguments, NULL, NULL, "FileWritten", mcp_file_import, FILES_READ },
    { "file_export", "Copy a file out", "Copies a file of a session into the user's folder, at most 16 MiB; it does not pass through you.",
      RIGHT_SESSIONS, DESTROYS | IS_IDEMPOTENT, false, false, mcp_file_export_arguments, NULL, NULL, NULL, mcp_file_read, FILES_WRITE },
    { "run_status", "How a run is", "Where a run stands, or its result once it has ended.",
      RIGHT_RESULTS, READS_ONLY, false, false, mcp_run_status_arguments, NULL, NULL, "RunResultOrState", mcp_run_status },
    { "run_cancel", "Cancel a run", "Ends a run and gives what it has printed and made so far.",
      RIGHT_RESULTS, DESTROYS | IS_IDEMPOTENT, false, false, mcp_run_id_arguments, NULL, NULL, "RunOrCellResult", mcp_run_cancel },
    { "policy_explain", "What is allowed", "What runs may do here: languages, limits, network, what is installed, what a person is asked about.",
      RIGHT_ANY, READS_ONLY, false, false, mcp_policy_arguments, NULL, NULL, NULL, mcp_policy_explain },
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
