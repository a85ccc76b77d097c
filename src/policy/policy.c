/* policy.c - questions to a policy: names, what it grants, how it is written down and named by
 * digest. */
#include "policy/policy.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"

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
        if (strcmp(policy->languages[i], language) == 0)
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
        uint64_t value = limit_get(&asked->values, id);
        uint64_t maximum = limit_get(&policy->maximum, id);
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

/* A string of JSON. Texts of a policy have no control characters but tab and line feed. */
static void write_text(FILE *out, const char *text)
{
    (void) fputc('"', out);
    for (; *text; text++) {
        if (*text == '\t' || *text == '\n')
            (void) fprintf(out, "\\%c", *text == '\t' ? 't' : 'n');
        else {
            if (*text == '"' || *text == '\\')
                (void) fputc('\\', out);
            (void) fputc(*text, out);
        }
    }
    (void) fputc('"', out);
}

static int by_json_name(const void *left, const void *right)
{
    const enum limit_id *a = left, *b = right;
    return strcmp(limit_rows[*a].json_name, limit_rows[*b].json_name);
}

static void write_limits(FILE *out, const struct limits *limits)
{
    enum limit_id sorted[LIMITS];
    for (size_t i = 0; i < LIMITS; i++)
        sorted[i] = (enum limit_id) i;
    qsort(sorted, LIMITS, sizeof *sorted, by_json_name);
    for_each(place, sorted) {
        enum limit_id id = *place;
        const struct limit_row *row = &limit_rows[id];
        uint64_t value = limit_get(limits, id);
        char number[32];
        if (row->unit == UNIT_MILLI)
            limit_print(id, value, number, sizeof number);
        else
            (void) snprintf(number, sizeof number, "%" PRIu64, value);
        (void) fprintf(out, "%c\"%s\":%s", place == sorted ? '{' : ',', row->json_name, number);
    }
    (void) fputc('}', out);
}

/* Nothing, if no file states a bound. */
static void write_sessions(FILE *out, const struct policy_sessions *sessions)
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
    const char *before = ",\"sessions\":{";
    for_each(row, sorted) {
        if (!(sessions->given & (UINT64_C(1) << row->bound)))
            continue;
        (void) fprintf(out, "%s\"%s\":%" PRIu64, before, row->name, sessions->values[row->bound]);
        before = ",";
    }
    if (sessions->given)
        (void) fputc('}', out);
}

static void write_network(FILE *out, const struct policy *policy)
{
    const struct network_policy *route = &policy->route;
    if (policy->network != POLICY_NETWORK_RULES) {
        write_text(out, policy->network == POLICY_NETWORK_LOOPBACK ? "loopback" : "none");
        return;
    }
    (void) fputs("{\"allow\":[", out);
    for (unsigned i = 0; i < route->count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&route->rules[i], text);
        if (i > 0)
            (void) fputc(',', out);
        write_text(out, text);
    }
    (void) fprintf(out, "],\"bytes\":%llu,\"connections\":%u,", (unsigned long long) route->sent,
                   route->connections);
    for (unsigned i = 0; i < route->endpoint_count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_endpoint_write(&route->endpoints[i], text);
        (void) fputs(i > 0 ? "," : "\"endpoints\":[", out);
        write_text(out, text);
    }
    (void) fprintf(out, "%s\"received\":%llu", route->endpoint_count > 0 ? "]," : "",
                   (unsigned long long) route->received);
    for (unsigned i = 0; i < route->set_count; i++) {
        (void) fputs(i == 0 ? ",\"sets\":[" : ",", out);
        write_text(out, route->sets[i]);
    }
    (void) fputs(route->set_count > 0 ? "]}" : "}", out);
}

/* Nothing, if no file has the key. Words of modules have nothing to escape. */
static void write_precheck(FILE *out, const struct precheck *precheck)
{
    if (!precheck->is_on)
        return;
    const char *between = ",\"precheck\":{\"modules\":{";
    for (size_t i = 0; i < precheck->module_count; i++) {
        const struct precheck_module *module = &precheck->modules[i];
        (void) fprintf(out, "%s\"%s\":\"%s\"", between, module->name,
                       check_decision_name((enum check_decision) module->decision));
        between = ",";
    }
    between = precheck->module_count > 0 ? "},\"rules\":{" : ",\"precheck\":{\"rules\":{";
    for_each(row, check_rows) {
        enum check_decision decision = (enum check_decision) precheck->rules[row - check_rows];
        (void) fprintf(out, "%s\"%s\":\"%s\"", between, row->name, check_decision_name(decision));
        between = ",";
    }
    (void) fputs("}}", out);
}

/* Nothing, if nobody is ever asked. */
static void write_approval(FILE *out, const struct policy_approval *approval)
{
    const char *before = "";
    if (approval->when == 0)
        return;
    (void) fprintf(out, "\"approval\":{\"by\":\"%s\",\"expires_ms\":%" PRIu64 ",\"scopes\":[",
                   approval->is_out_of_band ? "out_of_band" : "terminal",
                   approval_expires_ms(approval));
    for (uint32_t bit = REACH_ONCE; bit <= REACH_TIME; bit <<= 1)
        if (approval_scopes(approval) & bit) {
            (void) fprintf(out, "%s\"%s\"", before, approval_scope_name(bit));
            before = ",";
        }
    (void) fputs("],\"when\":[", out);
    before = "";
    for (uint32_t bit = ASKS_ALWAYS; bit <= ASKS_WARNING; bit <<= 1)
        if (approval->when & bit) {
            (void) fprintf(out, "%s\"%s\"", before, approval_asks_name(bit));
            before = ",";
        }
    (void) fputs("]},", out);
}

/* Nothing, if no file has the key. The list is JSON already, its keys sorted. */
static void write_expect(FILE *out, const struct policy_expect *expect)
{
    if (!expect->text[0] && expect->on_fault == ON_FAULT_UNSAID)
        return;
    (void) fprintf(out, ",\"expect\":{\"all\":%s,\"on_fault\":\"%s\"}",
                   expect->text[0] ? expect->text : "[]", policy_on_fault_name(expect->on_fault));
}

static void write_policy(FILE *out, const struct policy *policy)
{
    (void) fputc('{', out);
    write_approval(out, &policy->approval);
    (void) fputs("\"description\":", out);
    write_text(out, policy->description);
    (void) fputs(",\"env\":{", out);
    for (size_t i = 0; i < policy->variable_count; i++) {
        if (i > 0)
            (void) fputc(',', out);
        write_text(out, policy->variables[i].name);
        (void) fputc(':', out);
        write_text(out, policy->variables[i].value);
    }
    (void) fputc('}', out);
    write_expect(out, &policy->expect);
    (void) fputs(",\"languages\":[", out);
    for (size_t i = 0; i < policy->language_count; i++) {
        if (i > 0)
            (void) fputc(',', out);
        write_text(out, policy->languages[i]);
    }
    (void) fputs("],\"limits\":", out);
    write_limits(out, &policy->limits);
    (void) fputs(",\"maximum\":", out);
    write_limits(out, &policy->maximum);
    (void) fputs(",\"name\":", out);
    write_text(out, policy->name);
    (void) fputs(",\"network\":", out);
    write_network(out, policy);
    write_precheck(out, &policy->precheck);
    write_sessions(out, &policy->sessions);
    (void) fputs(",\"template\":", out);
    write_text(out, policy->template);
    (void) fputc('}', out);
}

int policy_render(const struct policy *policy, char **ret_text, error *err)
{
    auto_text text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return fail(err, ERR_INTERNAL, "out of memory");
    write_policy(out, policy);
    if (fclose(out) != 0)
        return fail(err, ERR_INTERNAL, "out of memory");
    *ret_text = take_text(&text);
    return 0;
}
