/* schemas_catalog.c - schemas of policies, templates and limits. */
#include "engine/service/schema/schema.h"

/* clang-format off */
static const struct property policy_row[] = {
    { "name", "string", "" }, { "digest", "string", "" }, { "description", "string?", "" }, { "policy", "PolicyValues", "its effective values" },
    { 0 },
};
static const struct property network_values[] = {
    { "allow",       "[]string", "rules" },
    { "bytes",       "count",    "to the network; 0: no bound" },
    { "connections", "count",    "at once" },
    { "endpoints",   "[]string", "", true },
    { "received",    "count",    "" },
    { "sets",        "[]string", "", true },
    { 0 },
};
static const struct property session_values[] = {
    { "age_ms",       "count", "", true },
    { "idle_ms",      "count", "", true },
    { "memory_bytes", "count", "of all that are alive", true },
    { "max",          "count", "alive at once", true },
    { 0 },
};
static const struct property approval_values[] = {
    { "by",         "=terminal,out_of_band", "" },
    { "expires_ms", "count",    "" },
    { "scopes",     "[]string", "" },
    { "when",       "[]string", "" },
    { 0 },
};
static const struct property precheck_values[] = {
    { "modules", "{}string", "decisions by module", true },
    { "rules",   "{}string", "decisions by rule" },
    { 0 },
};
static const struct property policy_values[] = {
    { "approval",    "ApprovalValues", "when a person is asked", true },
    { "description", "string?",   "" },
    { "env",         "{}string",  "" },
    { "languages",   "[]string",  "" },
    { "limits",      "Limits",    "of a run that does not ask for more" },
    { "maximum",     "Limits",    "what may be asked for" },
    { "name",        "string",    "" },
    { "network",     "=none,loopback|NetworkValues", "" },
    { "precheck",    "PrecheckValues", "", true },
    { "sessions",    "SessionValues", "bounds, in place of the daemon's own", true },
    { "template",    "string?",   "" },
    { 0 },
};
static const struct property policy_list[] = {
    { "default",  "string",      "used if a request of this caller names none" },
    { "policies", "[]PolicyRow", "" },
    { 0 },
};
static const struct property template_row[] = {
    { "name", "string", "" }, { "digest", "string", "" }, { "description", "string?", "" }, { "languages", "[]string", "" },
    { 0 },
};
static const struct property template_list[] = { { "templates", "[]TemplateRow", "" }, { 0 } };
static const struct property limit_row[] = {
    { "name", "string", "" }, { "default", "number", "" }, { "min", "number", "" }, { "max", "number", "" }, { "text", "string", "" },
    { 0 },
};
static const struct property limit_list[] = { { "limits", "[]LimitRow", "" }, { 0 } };

const struct schema catalog_schemas[] = {
    { "PolicyRow", "A policy", policy_row },
    { "PolicyValues", "What a policy says, with what it extends", policy_values, .is_open = true },
    { "NetworkValues", "Where runs may connect to", network_values },
    { "SessionValues", "Bounds for sessions", session_values },
    { "ApprovalValues", "When a person is asked", approval_values },
    { "PrecheckValues", "What the pre-execution check looks for", precheck_values },
    { "PolicyList", "Policies", policy_list },
    { "TemplateRow", "A template", template_row },
    { "TemplateList", "Templates", template_list },
    { "LimitRow", "A limit with its bounds", limit_row },
    { "LimitList", "Limits", limit_list },
    { 0 },
};
/* clang-format on */
