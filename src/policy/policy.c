/* policy.c - checks names and variables, grants limits, and writes a policy in canonical form. */
#include "policy/policy.h"

#include "base/table.h"
#include "base/text.h"
#include "model/languages.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool policy_name_is_valid(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && length < POLICY_NAME_SIZE && name[length] == '\0';
}

bool policy_allows_language(const struct policy *policy, const char *language)
{
    for (size_t i = 0; i < policy->language_count; i++)
        if (language_is(policy->languages[i], language))
            return true;
    return false;
}

int policy_check_variable(const char *name, const char *value, error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    if (name[0] == '\0' || name[length] != '\0' || !strchr(letters, name[0]))
        return fail(err, ERR_BAD_REQUEST,
                    "'%.*s' is no name of a variable; use letters, digits and _",
                    text_head(name, 40), name);
    if (strncmp(name, "LD_", 3) == 0 || strcmp(name, "GLIBC_TUNABLES") == 0)
        return fail(err, ERR_BAD_REQUEST, "variable %.40s steers the loader; remove it", name);
    if (text_find_unclean(value, strlen(value)) != strlen(value))
        return fail(err, ERR_BAD_REQUEST,
                    "variable %.40s has a value that is no text; remove control characters", name);
    return 0;
}

int limits_ask(struct limits_asked *asked, enum limit_id id, uint64_t value, error *err)
{
    if (limit_set(&asked->values, id, value, err) < 0)
        return -1;
    asked->given |= UINT64_C(1) << id;
    return 0;
}

bool policy_bounds_sessions(const struct policy *policy, enum policy_session_bound bound,
                            uint64_t *ret_max)
{
    if (!(policy->sessions.given & (UINT64_C(1) << bound)))
        return false;
    *ret_max = policy->sessions.values[bound];
    return true;
}

int policy_narrow(const struct policy *policy, const struct limits_asked *asked,
                  struct limits *ret_granted, error *err)
{
    struct limits granted = policy->limits;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        if (!(asked->given & (UINT64_C(1) << id)))
            continue;
        uint64_t value = limit_get(&asked->values, id), maximum = limit_get(&policy->maximum, id);
        if (limit_set(&granted, id, value, err) < 0)
            return -1;
        if (!limit_exceeds(id, value, maximum))
            continue;
        char wish[32], max[32];
        limit_print(id, value, wish, sizeof wish);
        limit_print(id, maximum, max, sizeof max);
        if (limit_may_be_off(id) && value == 0)
            (void) snprintf(wish, sizeof wish, "no limit");
        return fail(err, ERR_LIMIT,
                    "limit %s: %s was asked, the maximum of policy %s is %s; ask for less or "
                    "choose a wider policy",
                    row->name, wish, policy->name, max);
    }
    *ret_granted = granted;
    return 0;
}

static int by_json_name(const void *left, const void *right)
{
    const enum limit_id *a = left, *b = right;
    return strcmp(limit_rows[*a].json_name, limit_rows[*b].json_name);
}

static void write_limits(struct bytes *out, const char *key, const struct limits *limits)
{
    enum limit_id sorted[LIMITS];
    for (size_t i = 0; i < LIMITS; i++)
        sorted[i] = (enum limit_id) i;
    qsort(sorted, LIMITS, sizeof *sorted, by_json_name);
    json_open_field(out, key, '{');
    for_each(id, sorted) {
        const struct limit_row *row = &limit_rows[*id];
        uint64_t value = limit_get(limits, *id);
        char number[32];
        if (row->unit != UNIT_MILLI) {
            json_count_field(out, row->json_name, value);
            continue;
        }
        limit_print(*id, value, number, sizeof number);
        json_key(out, row->json_name);
        json_raw(out, number, strlen(number));
    }
    json_close(out, '}');
}

/* Nothing, if no file states a bound. */
static void write_sessions(struct bytes *out, const struct policy_sessions *sessions)
{
    static const struct {
        enum policy_session_bound bound;
        const char *name;
    } sorted[] = { { SESSIONS_AGE, "age_ms" },
                   { SESSIONS_IDLE, "idle_ms" },
                   { SESSIONS_CHECKPOINTS, "checkpoints" },
                   { SESSIONS_CHECKPOINTS_SIZE, "checkpoints_bytes" },
                   { SESSIONS_MEMORY, "memory_bytes" },
                   { SESSIONS_MAX, "max" } };
    if (!sessions->given)
        return;
    json_open_field(out, "sessions", '{');
    for_each(row, sorted)
        if (sessions->given & (UINT64_C(1) << row->bound))
            json_count_field(out, row->name, sessions->values[row->bound]);
    json_close(out, '}');
}

static void write_network(struct bytes *out, const struct policy *policy)
{
    const struct network_policy *route = &policy->route;
    char text[NETWORK_RULE_TEXT];
    json_key(out, "network");
    if (policy->network != POLICY_NETWORK_RULES) {
        json_string(out, policy->network == POLICY_NETWORK_LOOPBACK ? "loopback" : "none");
        return;
    }
    json_open(out, '{');
    json_open_field(out, "allow", '[');
    for (unsigned i = 0; i < route->count; i++) {
        network_rule_write(&route->rules[i], text);
        json_string(out, text);
    }
    json_close(out, ']');
    json_count_field(out, "bytes", route->sent);
    json_count_field(out, "connections", route->connections);
    if (route->endpoint_count > 0) {
        json_open_field(out, "endpoints", '[');
        for (unsigned i = 0; i < route->endpoint_count; i++) {
            network_endpoint_write(&route->endpoints[i], text);
            json_string(out, text);
        }
        json_close(out, ']');
    }
    json_count_field(out, "received", route->received);
    if (route->set_count > 0) {
        json_open_field(out, "sets", '[');
        for (unsigned i = 0; i < route->set_count; i++)
            json_string(out, route->sets[i]);
        json_close(out, ']');
    }
    json_close(out, '}');
}

/* Nothing, if no file has the key. */
static void write_precheck(struct bytes *out, const struct precheck *precheck)
{
    if (!precheck->is_on)
        return;
    json_open_field(out, "precheck", '{');
    if (precheck->module_count > 0) {
        json_open_field(out, "modules", '{');
        for (size_t i = 0; i < precheck->module_count; i++)
            json_string_field(
                out, precheck->modules[i].name,
                check_decision_name((enum check_decision) precheck->modules[i].decision));
        json_close(out, '}');
    }
    json_open_field(out, "rules", '{');
    for_each(row, check_rows)
        json_string_field(
            out, row->name,
            check_decision_name((enum check_decision) precheck->rules[row - check_rows]));
    json_close_all(out, "}}");
}

/* Nothing, if no approval is ever needed. */
static void write_approval(struct bytes *out, const struct policy_approval *approval)
{
    if (approval->when == 0)
        return;
    json_open_field(out, "approval", '{');
    json_string_field(out, "by", approval->is_out_of_band ? "out_of_band" : "terminal");
    json_count_field(out, "expires_ms", approval_expires_ms(approval));
    json_open_field(out, "scopes", '[');
    for (uint32_t bit = REACH_ONCE; bit <= REACH_TIME; bit <<= 1)
        if (approval_scopes(approval) & bit)
            json_string(out, approval_scope_name(bit));
    json_close(out, ']');
    json_open_field(out, "when", '[');
    for (uint32_t bit = ASKS_ALWAYS; bit <= ASKS_WARNING; bit <<= 1)
        if (approval->when & bit)
            json_string(out, approval_asks_name(bit));
    json_close_all(out, "]}");
}

/* Nothing, if no file has the key. The list is JSON already, its keys sorted. */
static void write_expect(struct bytes *out, const struct policy_expect *expect)
{
    const char *all = expect->text[0] ? expect->text : "[]";
    if (!expect->text[0] && expect->on_fault == ON_FAULT_UNSAID)
        return;
    json_open_field(out, "expect", '{');
    json_key(out, "all");
    json_raw(out, all, strlen(all));
    json_string_field(out, "on_fault", policy_on_fault_name(expect->on_fault));
    json_close(out, '}');
}

/* Writes the canonical form, from which the digest is computed: keys are sorted, and texts have no
 * control characters but tab and line feed. */
static void write_policy(struct bytes *out, const struct policy *policy)
{
    json_open(out, '{');
    write_approval(out, &policy->approval);
    json_string_field(out, "description", policy->description);
    json_open_field(out, "env", '{');
    for (size_t i = 0; i < policy->variable_count; i++)
        json_string_field(out, policy->variables[i].name, policy->variables[i].value);
    json_close(out, '}');
    write_expect(out, &policy->expect);
    json_open_field(out, "languages", '[');
    for (size_t i = 0; i < policy->language_count; i++)
        json_string(out, policy->languages[i]);
    json_close(out, ']');
    write_limits(out, "limits", &policy->limits);
    write_limits(out, "maximum", &policy->maximum);
    json_string_field(out, "name", policy->name);
    write_network(out, policy);
    write_precheck(out, &policy->precheck);
    write_sessions(out, &policy->sessions);
    json_string_field(out, "template", policy->template);
    json_close(out, '}');
}

int policy_render(const struct policy *policy, char **ret_text, error *err)
{
    auto_bytes out = { 0 };
    write_policy(&out, policy);
    (void) bytes_text(&out);
    if (out.failed)
        return fail(err, ERR_INTERNAL, "out of memory");
    *ret_text = out.data;
    out = (struct bytes){ 0 };
    return 0;
}

const char *default_policy_name(const char *setting,
                                bool (*can_use)(const void *context, const char *policy),
                                const void *context)
{
    if (setting && setting[0])
        return setting;
    return can_use(context, "data") ? "data" : "minimal";
}
