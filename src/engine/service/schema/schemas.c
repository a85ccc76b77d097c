/* schemas.c - the bodies of requests and answers, field by field. Types are written as in
 * schema.h. */
#include "engine/service/schema/schema.h"

#include <stddef.h>

/* clang-format off */
static const struct property request_file[] = {
    { "path",           "string 1..4095", "beneath /workspace" },
    { "content",        "string",         "text; or", true },
    { "content_base64", "base64",         "any bytes", true },
    { "read_only",      "boolean",        "the code cannot change it", true },
    { 0 },
};
static const struct property run_request[] = {
#define RUN_REQUEST(name, member, kind, type, text) { #name, type, text, true },
#include "model/run_request.def"
#undef RUN_REQUEST
    { 0 },
};
static const struct property network_wish[] = {
    { "allow",       "[]any",        "rules as policies have them, each within one of the policy's", true },
    { "bytes",       "count|string", "to the network, as 10 MiB", true },
    { "received",    "count|string", "from it", true },
    { "connections", "count",        "at once", true },
    { 0 },
};
static const struct property limit_ended[] = {
    { "name",    "string", "which limit ended the run" },
    { "granted", "number", "how much of it there was" },
    { "unit",    "string", "ms, bytes, or a count" },
    { "used",    "number", "how much was used" },
    { "message", "string", "what happened, what is kept, what to do" },
    { 0 },
};
static const struct property limit_hit[] = {
    { "name",  "string", "a limit that was met" },
    { "count", "count",  "how often" },
    { 0 },
};
static const struct property truncated[] = {
    { "stdout_total_bytes", "count",   "that the program wrote" },
    { "stderr_total_bytes", "count",   "that the program wrote" },
    { "full_output",        "string?", "not in this version" },
    { 0 },
};
static const struct property display_data[] = {
    { "main",     "boolean", "the value of the last expression" },
    { "data",     "{}any",   "one value by MIME type" },
    { "chart",    "object?", "the numbers of a matplotlib figure: docs/cells.md" },
    { "metadata", "object",  "by MIME type, where the program gave some", true },
    { "id",       "string 0..255", "of display(…, display_id=…)", true },
    { "update",   "boolean", "it replaces the value with this id", true },
    { 0 },
};
static const struct property exception[] = {
    { "name",      "string",   "its type" },
    { "value",     "string",   "its text" },
    { "traceback", "string",   "as Python prints it" },
    { "frames",    "[]any",    "the stack: file, line, function, code" },
    { "causes",     "[]any",   "the exceptions that caused it, the nearest first", true },
    { "exceptions", "[]any",   "of a group", true },
    { 0 },
};
static const struct property artifact[] = {
    { "path",   "string", "beneath /workspace" },
    { "bytes",  "count",  "its size" },
    { "sha256", "string", "in hex" },
    { "mime",   "string", "by its name, else by its first bytes" },
    { "url",    "string", "where its bytes are" },
    { 0 },
};
static const struct property denial[] = {
    { "layer",   "string", "syscall, network, artifact, …" },
    { "target",  "string", "what was tried" },
    { "count",   "count",  "how often" },
    { "message", "string", "why it was refused, and what to do" },
    { 0 },
};
static const struct property connection[] = {
    { "host",        "string",  "as it was asked for" },
    { "port",        "count 0..65535", "" },
    { "decision",    "=allow,deny", "" },
    { "rule",        "string?", "that allowed it" },
    { "reason",      "string?", "why not" },
    { "address",     "string?", "that was connected to" },
    { "intercepted", "boolean", "method and path were looked at" },
    { "method",      "string?", "" },
    { "path",        "string?", "" },
    { "status",      "integer", "that was answered; 0: not known" },
    { "sent",        "integer", "bytes" },
    { "received",    "integer", "bytes" },
    { "took_ms",     "count",   "" },
    { 0 },
};
static const struct property check_found[] = {
    { "rule",     "string", "docs/reference/checks.md lists them" },
    { "decision", "=warn,ask,deny", "by the policy" },
    { "line",     "count",  "from 1; 0: the whole of it" },
    { "column",   "count",  "from 1; 0: not known" },
    { "subject",  "string", "what it is about" },
    { "message",  "string", "the same in words" },
    { 0 },
};
static const struct property checks[] = {
    { "decision", "=allow,warn,ask,deny", "the strictest of all" },
    { "findings", "[]CheckFound", "up to 100, by line" },
    { "unlisted", "count",   "findings beyond those" },
    { "failure",  "string?", "why the checker itself gave no answer: then nothing runs" },
    { "took_ms",  "count",   "" },
    { 0 },
};
static const struct property expected_output[] = {
    { "schema",    "any",    "JSON Schema, draft 2020-12, by the keywords of docs/reference/output-validation.md: others are refused", true },
    { "type",      "string", "one of the types of docs/reference/output-validation.md, by content", true },
    { "min_bytes", "count",  "", true },
    { "max_bytes", "count",  "", true },
    { 0 },
};
static const struct property expected_result[] = {
    { "schema", "any", "of the value of a cell", true },
    { 0 },
};
static const struct property expected_artifact[] = {
    { "name",      "string",  "its path beneath /workspace; or", true },
    { "pattern",   "string",  "the same with * and ?, which end at a slash", true },
    { "type",      "string",  "one of the types of docs/reference/output-validation.md, by content", true },
    { "schema",    "any",     "that it is JSON, and of this schema", true },
    { "min_bytes", "count",   "", true },
    { "max_bytes", "count",   "", true },
    { "required",  "boolean", "true if it is left out: there has to be one", true },
    { 0 },
};
static const struct property expectation[] = {
    { "stdout",    "ExpectedOutput",     "", true },
    { "result",    "ExpectedResult",     "with mode cell", true },
    { "artifacts", "[]ExpectedArtifact", "at most 64", true },
    { "others",    "=allow,forbid",      "artifacts that none of those names", true },
    { "secrets",   "=allow,forbid",      "what looks like one, anywhere in what is handed over", true },
    { 0 },
};
static const struct property output_check_found[] = {
    { "rule",    "string",  "docs/reference/output-validation.md lists them" },
    { "where",   "=stdout,stderr,result,error,artifacts,artifact,expected", "in what; expected: what is not there" },
    { "path",    "string?", "of the artifact, or as it was expected" },
    { "line",    "count",   "from 1; 0: the whole of it" },
    { "detail",  "string",  "a place in the schema, a size, the name of a pattern; never a piece of the output" },
    { "message", "string",  "the same in words" },
    { 0 },
};
static const struct property output_check[] = {
    { "verdict",     "=passed,failed,error", "error: the check failed, which is no pass" },
    { "expectation", "string",  "SHA-256 of `expect` in canonical JSON (RFC 8785); with a policy's, of the list of all" },
    { "findings",    "[]GateFound", "up to 100" },
    { "unlisted",    "count",   "findings beyond those" },
    { "failure",     "string?", "with error: why" },
    { "took_ms",     "count",   "" },
    { "withheld",    "string?", "what was not handed over, as the policy hands over only output that has passed" },
    { 0 },
};
static const struct property usage[] = {
#define USAGE(name, limit, text) { #name, "count", text },
#include "model/result_fields.def"
    { "queued_ms",         "count", "until there was a sandbox" },
    { "start",             "string", "parked, built or session" },
    { 0 },
};
static const struct property named[] = {
    { "name",   "string", "" },
    { "digest", "string", "" },
    { 0 },
};
static const struct property isolation[] = {
    { "tier",     "string",   "native" },
    { "walls",    "[]string", "that stood" },
    { "degraded", "[]string", "walls in a weaker form" },
    { 0 },
};
const struct property run_result[] = {
#define RESULT(name, type, lost, text) { #name, type, text },
#include "model/result_fields.def"
    { 0 },
};
static const struct property run_state[] = {
    { "id",     "string", "" },
    { "status", "=queued,building,loading,running,stopping,collecting,gating,done", "where it stands" },
    { "url",    "string", "where the result will be" },
    { 0 },
};
static const struct property run_row[] = {
    { "id",         "string",   "" },
    { "status",     "string",   "its state, or its status once it has ended" },
    { "fault",      "string?",  "" },
    { "created_at", "moment",   "" },
    { "took_ms",    "integer?", "from the request to the result" },
    { 0 },
};
static const struct property run_page[] = {
    { "runs", "[]RunRow", "" },
    { "next_cursor", "string?", "of the next page; null: this was the last" },
    { 0 },
};
static const struct property failure[] = {
    { "code",       "string",  "docs/reference/errors.md lists them" },
    { "message",    "string",  "the cause, and what to do" },
    { "fault",      "string",  "caller, policy or glovebox" },
    { "retryable",  "boolean", "the same request may succeed later" },
    { "request_id", "string",  "as in X-Request-Id" },
    { 0 },
};
static const struct property error_answer[] = {
    { "error", "Failure", "" },
    { 0 },
};
static const struct property health[] = {
    { "status",  "=ok,unavailable", "" },
    { "cause",   "string?", "why nothing can be started, such as a disk that is full or read-only" },
    { "version", "string", "" },
    { "slots",   "count", "sandboxes that may be at once" },
    { "in_use",  "count", "of them" },
    { "parked",  "count", "built ahead" },
    { "active",  "count", "runs under way" },
    { "queued",  "count", "runs that wait" },
    { 0 },
};
static const struct property input_text[] = {
    { "path",   "string?", "of a file", true }, { "bytes", "count", "" }, { "sha256", "string", "" }, { "text", "string?", "null: it is too large or no text, and not shown" },
    { "hidden_characters", "[]HiddenCharacter", "", true },
    { 0 },
};
static const struct property hidden_character[] = { { "line", "count", "" }, { "character", "string", "as U+202E" }, { 0 } };
static const struct property limit_asked[] = {
    { "name", "string", "" }, { "asked", "string", "" }, { "usual", "string", "what a run gets that does not ask for more" }, { "is_above", "boolean", "" },
    { 0 },
};
static const struct property card[] = {
    { "kind",      "=run,command,cell", "" },
    { "language",  "string?",     "" },
    { "code",      "string?",     "all of it; show it with its control characters made visible" },
    { "hidden_characters", "[]HiddenCharacter", "that change how code looks, or do not show at all", true },
    { "filename",  "string?",     "" },
    { "command",   "[]string",    "" },
    { "args",      "[]string",    "" },
    { "stdin",     "InputText?",  "" },
    { "files",     "[]InputText", "" },
    { "environment_names", "[]string", "" },
    { "reasons",   "[]string",    "why a person is asked: always, network, over_limits, precheck_warning, precheck" },
    { "checks",    "any",         "what the pre-check found, with lines, as in results; null: there was none" },
    { "policy",    "string",      "" },
    { "template",  "string",      "" },
    { "limits",    "[]LimitAsked", "" },
    { "network",   "[]string",    "places that it may reach" },
    { "leaves",    "[]string",    "what can leave the sandbox" },
    { 0 },
};
static const struct property approval[] = {
    { "id",         "string",   "apr_ and 32 hex digits" },
    { "state",      "=pending,approved,denied,expired,used,revoked", "" },
    { "asker",      "string",   "id of the key, or owner" },
    { "asker_name", "string?",  "name of that key" },
    { "tenant",     "string?",  "" },
    { "policy",     "string",   "" },
    { "session",    "string?",  "" },
    { "sha256",     "string",   "of the code, as its receipt names it" },
    { "asked_at",   "moment",   "" },
    { "expires_at", "moment",   "it is denied if it was not decided by then" },
    { "scopes",     "[]string", "how far it may be approved" },
    { "by",         "=terminal,out_of_band", "" },
    { "decided_at", "moment?",  "" },
    { "approver",   "string?",  "id of the key that has decided, or taken it back; or owner" },
    { "approver_name", "string?", "name of that key" },
    { "scope",      "string?",  "how far it was approved" },
    { "until_at",   "moment?",  "until when that holds" },
    { "reason",     "string?",  "" },
    { "run",        "string?",  "that has used it" },
    { "card",       "Card?",    "what to decide on, while it is pending", true },
    { 0 },
};
static const struct property approval_list[] = {
    { "approvals", "[]Approval", "the oldest first" },
    { "next_cursor", "string?",  "of the next page; null: this was the last" },
    { 0 },
};
static const struct property decision[] = {
    { "decision",      "=approve,deny,revoke", "revoke: takes an approval back before it was used" },
    { "scope",         "=once,code,session,time", "once if it is left out", true },
    { "until_seconds", "count 1..2592000", "how long it holds; as long as it could wait, if it is left out", true },
    { "reason",        "string",  "sent to the asker", true },
    { 0 },
};
static const struct property protected_resource[] = {
    { "resource",              "string",   "this service, as tokens name it in aud" },
    { "authorization_servers", "[]string", "whose tokens are accepted" },
    { "scopes_supported",      "[]string", "" },
    { "bearer_methods_supported", "[]string", "" },
    { "resource_name",         "string",   "" },
    { 0 },
};
static const struct property rule_use[] = {
    { "rule",        "string",   "as policies' rules are written" },
    { "set",         "string?",  "the named set that it comes from" },
    { "connections", "count",    "that it allowed and that have ended" },
    { "refused",     "count",    "that it allowed and that failed for another reason" },
    { "sent",        "count",    "bytes from sandboxes" },
    { "received",    "count",    "bytes to sandboxes" },
    { "last_used_at", "moment?", "null: never" },
    { 0 },
};
static const struct property policy_use[] = {
    { "name",            "string",   "of a policy with rules" },
    { "refused",         "count",    "what no rule allowed" },
    { "last_refused_at", "moment?", "null: never" },
    { "rules",           "[]RuleUse", "in their order" },
    { 0 },
};
static const struct property network_rules[] = {
    { "started_at", "moment",    "when this daemon was started, and counts from" },
    { "policies", "[]PolicyUse", "" },
    { 0 },
};

static const struct schema common[] = {
    { "RequestFile", "A file that the code finds", request_file },
    { "RunRequest", "What to run, and how", run_request,
      .example = "{\"code\":\"print(open('in.txt').read())\",\"language\":\"python\",\"policy\":\"minimal\","
                 "\"limits\":{\"wall_ms\":5000},\"files\":[{\"path\":\"in.txt\",\"content\":\"hello\"}]}" },
    { "NetworkWish", "What a run wants of the network", network_wish, .is_open = true },
    { "ExpectedOutput", "What stdout has to be like", expected_output },
    { "ExpectedResult", "What the value of a cell has to be like", expected_result },
    { "ExpectedArtifact", "What a file that the run makes has to be like", expected_artifact },
    { "Expectation", "What the output of a run has to be like", expectation },
    { "LimitEnded", "The limit that ended a run", limit_ended },
    { "LimitHit", "A limit that was met", limit_hit },
    { "Truncated", "How much was printed in all", truncated },
    { "Shown", "A value that a cell showed", display_data },
    { "Exception", "What ended the code", exception },
    { "Artifact", "A file that a run made", artifact },
    { "Denial", "A refused operation", denial },
    { "Connection", "A connection out of a sandbox", connection },
    { "CheckFound", "A finding of the pre-execution check", check_found },
    { "Checks", "A look at code before it ran: a lint, the sandbox is the boundary", checks },
    { "GateFound", "Where an output is not what was expected", output_check_found },
    { "Gate", "Whether an output was what was expected of it", output_check },
    { "Usage", "What a run used", usage },
    { "Named", "A name and the digest of what it stood for", named },
    { "Isolation", "The walls around a run", isolation },
    { "RunResult", "How a run ended and what came of it", run_result },
    { "RunState", "A run that has not ended", run_state },
    { "RunOrCellResult", "The result of a run, or of a cell", NULL, { "RunResult", "CellResult" } },
    { "RunResultOrState", "The result, or where it stands", NULL, { "RunResult", "CellResult", "RunState" } },
    { "RunRow", "A run in a list", run_row },
    { "RunPage", "A page of runs", run_page },
    { "Failure", "Why there is no answer", failure },
    { "Error", "A request that failed", error_answer },
    { "ProtectedResource", "Who gives access tokens for this service", protected_resource },
    { "Health", "Whether runs can be started", health },
    { "HealthOrError", "What is missing", NULL, { "Health", "Error" } },
    { "HiddenCharacter", "A character that is not shown as what it is", hidden_character },
    { "InputText", "An input", input_text },
    { "LimitAsked", "A limit that is asked for", limit_asked },
    { "Card", "What an approver is shown", card },
    { "Approval", "A request that waits for a person, or was decided on", approval },
    { "ApprovalList", "Approvals", approval_list },
    { "Decision", "Approves, denies or revokes", decision, .example = "{\"decision\":\"approve\",\"scope\":\"once\",\"reason\":\"looks right\"}" },
    { "RuleUse", "How often a rule was used", rule_use },
    { "PolicyUse", "The rules of a policy", policy_use },
    { "NetworkRules", "How often rules were used", network_rules },
    { 0 },
};
/* clang-format on */

const struct schema *const schema_tables[] = { common,       catalog_schemas, session_schemas,
                                               file_schemas, log_schemas,     NULL };
