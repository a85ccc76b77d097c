/* schemas_sessions.c - the bodies for sessions, contexts, checkpoints, processes and ports, field
 * by field. Types are written as in schema.h. */
#include "engine/service/schema/schema.h"

/* clang-format off */
static const struct property session_request[] = {
    { "policy",       "string?",         "the default of GET /v1/policies if it is left out", true },
    { "template",     "string?",         "what the policy says if it is left out", true },
    { "limits",       "Limits?",         "what is asked for, of each cell; the policy's own where nothing is", true },
    { "network",      "string|NetworkWish?", "none, or less of the network than the policy allows", true },
    { "env",          "{name}string?",       "environment variables of everything in it", true },
    { "cwd",          "string /^/.{0,1023}$/?", "absolute; /workspace if it is left out", true },
    { "metadata",     "{64}string?",     "of the caller, to find it by; 16 KiB", true },
    { "idle_seconds", "number 0.001..31622400?", "it ends when nothing has happened for so long", true },
    { "ttl_seconds",  "number 0.001..31622400?", "it ends then, used or not", true },
    { 0 },
};
static const struct property session_change[] = {
    { "metadata",     "{64}string?", "in place of all that there was", true },
    { "idle_seconds", "number 0.001..31622400?", "it ends when nothing has happened for so long", true },
    { "ttl_seconds",  "number 0.001..31622400?", "from now on", true },
    { 0 },
};
static const struct property branch_request[] = {
    { "context", "string 1..63?", "whose variables the branch has; the one there is, if it is left out", true },
    { "checkpoint",    "string 1..63?", "id or name: as it was then", true },
    { 0 },
};
static const struct property session_end[] = {
    { "why",     "=deleted,idle,expired,lost,failed,stopped,daemon", "" },
    { "message", "string",  "the same in words" },
    { "ended_at", "moment?", "" },
    { "kept",    "string",  "what is left of it" },
    { 0 },
};
static const struct property session_origin[] = {
    { "session",     "string",   "that it is a branch of" },
    { "context",     "string",   "whose variables it has; empty: only the files" },
    { "checkpoint",        "string?",  "of which moment; null: as it was when it was branched" },
    { "not_carried", "[]string", "what of it a copy cannot have" },
    { 0 },
};
static const struct property session_usage[] = {
    { "cpu_ms",            "count", "of all processors" },
    { "memory_peak_bytes", "count", "files included" },
    { "processes_peak",    "count", "alive at once" },
    { "cells",             "count", "that have begun" },
    { 0 },
};
static const struct property session[] = {
    { "id",            "string /^ses_[0-9a-f]{32}$/", "" },
    { "state",         "=starting,running,paused,ended", "" },
    { "created_at",    "moment?",  "" },
    { "expires_at",    "moment?",  "null: it is paused or has ended" },
    { "idle_at",       "moment?",  "when it ends if nothing happens; null: something runs, it is paused, or has ended" },
    { "paused_at",     "moment?",  "" },
    { "paused_for",    "=request,cpu_seconds_per_day?", "a request, or the quota of the key that is used up" },
    { "held_by",       "=freezer,signals?", "how its programs are stopped while it is paused; null: there are none" },
    { "idle_seconds",  "number?",  "how long nothing may happen; null: it ended before the daemon was started again" },
    { "ended",         "SessionEnd?", "null: it has not" },
    { "parent",        "string?",  "the session that it is a branch of" },
    { "branched_from", "SessionOrigin?", "" },
    { "metadata",      "{}string", "of the caller" },
    { "contexts",      "[]Context", "" },
    { "usage",         "SessionUsage", "" },
    { "limits",        "Limits",   "that were granted to each cell; these five are missing for a session of an earlier daemon", true },
    { "languages",     "[]string", "that its contexts may be in", true },
    { "policy",        "Named",    "", true },
    { "template",      "Named",    "", true },
    { "isolation",     "Isolation", "", true },
    { 0 },
};
static const struct property session_page[] = {
    { "sessions",    "[]Session", "the newest first" },
    { "next_cursor", "string?",   "of the next page; null: this was the last" },
    { 0 },
};
static const struct property context_request[] = {
    { "language", "string?",         "one of the template's; python if the policy allows it, else its first", true },
    { "cwd",      "string /^/.{0,1023}$/?", "absolute; that of the session if it is left out", true },
    { "env",      "{name}string?",       "over that of the session", true },
    { 0 },
};
static const struct property context[] = {
    { "id",       "string",  "of the path; the first of a language has its name" },
    { "language", "string",  "" },
    { "cwd",      "string",  "" },
    { "state",    "=cold,starting,idle,busy", "cold: its interpreter begins with the next cell" },
    { "cells",    "count",   "that have begun" },
    { "queued",   "count",   "that wait" },
    { "last_end", "string?", "why the interpreter before this one ended" },
    { 0 },
};
static const struct property context_list[] = { { "contexts", "[]Context", "" }, { 0 } };
static const struct property context_removed[] = { { "removed", "string", "its id" }, { 0 } };
static const struct property interrupted[] = { { "interrupted", "boolean", "false: no cell ran" }, { 0 } };
static const struct property cell_request[] = {
    { "code",     "string",       "at most 10 MiB" },
    { "limits",   "Limits?",      "of this cell; the session's own where nothing is asked for", true },
    { "approval", "string?",      "the id of an approval that was asked for with this very request", true },
    { "expect",   "Expectation?", "what its output has to be like; whether it was so stands in `gate`", true },
    { 0 },
};
static const struct property cell[] = {
    { "session",       "string",  "" },
    { "context",       "string",  "" },
    { "number",        "count",   "of the cells of its context, from 1" },
    { "interrupted",   "boolean", "" },
    { "context_state", "=kept,lost", "lost: the next cell finds a fresh interpreter" },
    { "context_end",   "string?", "why" },
    { 0 },
};
static const struct property cell_result[] = { { "cell", "Cell", "which it was" }, { 0 } };

static const struct property session_checkpoint_request[] = {
    { "name",    "string /^[A-Za-z0-9_-]{0,63}$/", "not of another checkpoint, and not ckp_…", true },
    { "context", "string 0..63", "whose variables it holds; the one there is, if it is left out", true },
    { 0 },
};
static const struct property rollback_request[] = { { 0 } };
static const struct property checkpoint[] = {
    { "id",          "string /^ckp_[0-9a-f]{32}$/", "" },
    { "name",        "string?",  "" },
    { "session",     "string?",  "" },
    { "context",     "string",   "whose variables it holds; empty: only the files" },
    { "created_at",  "moment?",  "" },
    { "bytes",       "count",    "what it takes" },
    { "not_carried", "[]string", "what of the session a checkpoint cannot hold" },
    { 0 },
};
static const struct property session_checkpoint_list[] = { { "checkpoints", "[]Checkpoint", "the newest first" }, { 0 } };

static const struct property terminal_size[] = {
    { "rows",    "count 0..1000", "24 if it is left out", true },
    { "columns", "count 0..1000", "80 if it is left out", true },
    { 0 },
};
static const struct property process_request[] = {
    { "command",    "[]string?",      "program and arguments; or", true },
    { "shell",      "string 0..32768", "a line for bash -l", true },
    { "env",        "{name}string?",      "over that of the session", true },
    { "cwd",        "string 0..2047", "beneath /workspace if it is not absolute", true },
    { "tag",        "string 0..128",  "a name for it in paths", true },
    { "stdin",      "boolean",        "its input stays open; else it is empty", true },
    { "terminal",   "TerminalSize?",  "a terminal in place of pipes", true },
    { "timeout_ms", "count 0..86400000", "it is killed then; 0: never", true },
    { 0 },
};
static const struct property process[] = {
    { "id",         "string /^prc_[0-9]+$/", "" },
    { "pid",        "count",    "inside the session; 0: it has not begun" },
    { "tag",        "string?",  "" },
    { "state",      "=starting,running,ended", "" },
    { "command",    "[]string|string", "as it was asked for; a text: a line for bash" },
    { "terminal",   "boolean",  "" },
    { "stdin",      "boolean",  "its input is open" },
    { "started_at", "moment",   "" },
    { "offset",     "count",    "of the first byte of its output that is still kept" },
    { "end_offset", "count",    "of the byte after the last" },
    { "exit_code",  "integer?", "" },
    { "signal",     "integer?", "that ended it" },
    { "timed_out",  "boolean",  "" },
    { "message",    "string?",  "why it did not begin, or what else ended it" },
    { "receipt",    "string?",  "id of its receipt, once it has ended" },
    { "stdout",     "string",   "with ?wait=: what is kept of it, the last MiB of both", true },
    { "stderr",     "string",   "with ?wait=", true },
    { "lost_bytes", "count",    "with ?wait=: of its output, thrown away before", true },
    { 0 },
};
static const struct property process_list[] = { { "processes", "[]Process", "" }, { 0 } };
static const struct property process_input[] = {
    { "data",        "string 0..1048576", "text; or", true },
    { "data_base64", "base64",  "any bytes", true },
    { "close",       "boolean", "then its input ends", true },
    { 0 },
};
static const struct property process_signal[] = {
    { "signal", "string /^((SIG)?(HUP|INT|QUIT|KILL|USR1|USR2|TERM|CONT|STOP|TSTP|WINCH)|[1-9][0-9]?)$/", "its name, or a number to 64" },
    { "group",  "boolean", "to its whole group", true },
    { 0 },
};
static const struct property port_token[] = {
    { "token",  "string", "opens all ports of this session while the key that requested it is valid" },
    { "header", "string", "the header for it in requests" },
    { 0 },
};

const struct schema session_schemas[] = {
    { "SessionRequest", "The settings of a new session", session_request,
      .example = "{\"policy\":\"minimal\",\"metadata\":{\"user\":\"ada\"},\"idle_seconds\":300,\"env\":{\"LANG\":\"C.UTF-8\"}}" },
    { "SessionChange", "What to change", session_change, .example = "{\"idle_seconds\":600,\"metadata\":{\"user\":\"ada\",\"step\":\"2\"}}" },
    { "BranchRequest", "The context or checkpoint to branch, and the settings of the branch", branch_request, .first = session_change,
      .example = "{\"context\":\"python\",\"metadata\":{\"try\":\"1\"}}" },
    { "SessionEnd", "When and why a session ended", session_end },
    { "SessionOrigin", "What a branch was branched from", session_origin },
    { "SessionUsage", "What a session has used", session_usage },
    { "Session", "A session, or its tombstone", session },
    { "SessionPage", "A page of sessions", session_page },
    { "ContextRequest", "The settings of a new context", context_request, .example = "{\"language\":\"python\",\"cwd\":\"/workspace\"}" },
    { "Context", "An interpreter with a state of its own", context,
      .example = "{\"id\":\"python\",\"language\":\"python\",\"cwd\":\"/workspace\",\"state\":\"idle\",\"cells\":2,\"queued\":0,\"last_end\":null}" },
    { "ContextList", "The contexts of a session", context_list },
    { "ContextRemoved", "A context that was removed", context_removed },
    { "Interrupted", "Whether there was something to interrupt", interrupted },
    { "CellRequest", "Code for a context", cell_request, .example = "{\"code\":\"x = 6 * 7\\nx\",\"limits\":{\"wall_ms\":5000}}" },
    { "Cell", "Which cell of which context", cell },
    { "CellResult", "How a cell ended and what came of it", cell_result, .first = run_result },
    { "CheckpointRequest", "The name of a new checkpoint, and its context", session_checkpoint_request, .example = "{\"name\":\"cleaned\",\"context\":\"python\"}" },
    { "RollbackRequest", "Empty: the path names the checkpoint", rollback_request, .example = "{}" },
    { "Checkpoint", "A moment of a session", checkpoint },
    { "CheckpointList", "The checkpoints of a session", session_checkpoint_list },
    { "TerminalSize", "How large a terminal is", terminal_size, .example = "{\"rows\":24,\"columns\":80}" },
    { "ProcessRequest", "A program and what it is given", process_request,
      .example = "{\"command\":[\"sleep\",\"30\"],\"tag\":\"waiter\",\"cwd\":\"/workspace\",\"terminal\":{\"rows\":24,\"columns\":80},\"timeout_ms\":60000}" },
    { "Process", "A program in a session", process },
    { "ProcessList", "The programs of a session", process_list },
    { "ProcessInput", "What a program reads", process_input, .example = "{\"data\":\"yes\\n\"}" },
    { "ProcessSignal", "A signal", process_signal, .example = "{\"signal\":\"SIGTERM\",\"group\":true}" },
    { "PortToken", "What opens the ports of a session without a key", port_token },
    { 0 },
};
/* clang-format on */
