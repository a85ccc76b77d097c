/* policy_explain.c - `glovebox policy explain`: what a policy grants, what would become of code
 * under it, and which line of which file says each. */
#include "cli/policy/policy_verbs.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/config.h"
#include "cli/common/inputs.h"
#include "cli/common/precheck_request.h"
#include "policy/policy_origins.h"
#include "supervisor/install_paths.h"

#include <stdio.h>
#include <string.h>

struct explain_arguments {
    const char *policy, *code, *language, *state;
    bool json;
};

#define FIELD(name) offsetof(struct explain_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "policy",   'p', "NAME",     VALUES_POLICY,   "which policy; default: as run",        store_text,   FIELD(policy) },
    { "code",     'c', "FILE",     VALUES_FILE,     "what would become of this code; - for stdin", store_text, FIELD(code) },
    { "language", 'l', "LANGUAGE", VALUES_LANGUAGE, "of the code; default: by name or first line, else python", store_text, FIELD(language) },
    { "json",     0,   NULL,       VALUES_NONE,     "the same for programs",                 store_switch, FIELD(json) },
    { "state",    0,   "FOLDER",   VALUES_FOLDER,   "where templates are kept",              store_text,   FIELD(state) },
};
/* clang-format on */

const struct option_table *policy_explain_option_table(void)
{
    static const struct option_table table = {
        .verb = "policy explain",
        .examples =
            "  glovebox policy explain --policy data                 what it grants, and why\n"
            "  glovebox policy explain --policy data --code file.py  and what becomes of this "
            "code\n",
        .usage = "[OPTIONS]",
        .more =
            "Nothing of the code runs. Exit status 126: it would be denied, or a person asked.\n"
            "What is found in code is a lint; the sandbox is the boundary.\n",
        .rows = rows,
        .count = COUNT_OF(rows),
    };
    return &table;
}

struct explanation {
    struct policy policy;
    struct policy_origins origins;
    json_object *grants; /* rows, for --json */
    json_object *code;
};

/* "careful.yaml:4", or that it is so by itself. */
static void write_place(const struct explanation *explanation, struct policy_origin origin,
                        char *text, size_t size)
{
    if (origin.line == 0)
        (void) snprintf(text, size, "by itself");
    else
        (void) snprintf(text, size, "%s:%d", explanation->origins.files[origin.file], origin.line);
}

static void add_text(json_object *object, const char *name, const char *text)
{
    (void) json_object_object_add(object, name, text ? json_object_new_string(text) : NULL);
}

static void add_place(const struct explanation *explanation, json_object *object,
                      struct policy_origin origin)
{
    add_text(object, "file", origin.line > 0 ? explanation->origins.files[origin.file] : NULL);
    (void) json_object_object_add(object, "file_line",
                                  origin.line > 0 ? json_object_new_int(origin.line) : NULL);
}

/* One thing that the policy says. */
static void grant(struct explanation *explanation, const char *key, const char *value,
                  struct policy_origin origin)
{
    char place[POLICY_LABEL_SIZE + 16];
    if (explanation->grants) {
        json_object *row = json_object_new_object();
        add_text(row, "key", key);
        add_text(row, "value", value);
        add_place(explanation, row, origin);
        (void) json_object_array_add(explanation->grants, row);
        return;
    }
    write_place(explanation, origin, place, sizeof place);
    (void) printf("  %-24s %-28s %s\n", key, value, place);
}

static void grant_limits(struct explanation *explanation)
{
    const struct policy *policy = &explanation->policy;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t values[] = { limit_get(&policy->limits, id), limit_get(&policy->maximum, id) };
        char texts[2][32];
        char key[48];
        for (int i = 0; i < 2; i++)
            if (limit_may_be_off(id) && values[i] == 0)
                (void) snprintf(texts[i], sizeof texts[i], "not limited");
            else
                limit_print(id, values[i], texts[i], sizeof texts[i]);
        (void) snprintf(key, sizeof key, "limits.%s", row->name);
        grant(explanation, key, texts[0], explanation->origins.limits[id]);
        if (!(policy->stated & (UINT64_C(1) << id)) || values[0] == values[1])
            continue;
        (void) snprintf(key, sizeof key, "maximum.%s", row->name);
        grant(explanation, key, texts[1], explanation->origins.maximum[id]);
    }
}

static void grant_network(struct explanation *explanation)
{
    const struct policy *policy = &explanation->policy;
    struct policy_origin origin = explanation->origins.keys[POLICY_KEY_NETWORK];
    if (policy->network != POLICY_NETWORK_RULES) {
        grant(explanation, "network",
              policy->network == POLICY_NETWORK_LOOPBACK ? "loopback" : "none", origin);
        return;
    }
    for (unsigned i = 0; i < policy->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&policy->route.rules[i], text);
        grant(explanation, "network.allow", text, origin);
    }
}

static void grant_precheck(struct explanation *explanation)
{
    const struct policy_origins *origins = &explanation->origins;
    const struct precheck *precheck = &explanation->policy.precheck;
    char key[96];
    if (!precheck->is_on) {
        grant(explanation, "precheck", "none: code is not looked at", (struct policy_origin){ 0 });
        return;
    }
    for (unsigned rule = 0; rule < CHECK_RULES; rule++) {
        (void) snprintf(key, sizeof key, "precheck.%s",
                        rule == CHECK_module ? "modules.others" : check_rows[rule].name);
        grant(explanation, key, check_decision_name((enum check_decision) precheck->rules[rule]),
              origins->rules[rule]);
    }
    for (size_t i = 0; i < precheck->module_count; i++) {
        (void) snprintf(key, sizeof key, "precheck.modules %s", precheck->modules[i].name);
        grant(explanation, key,
              check_decision_name((enum check_decision) precheck->modules[i].decision),
              origins->modules[i]);
    }
}

static void grant_approval(struct explanation *explanation)
{
    const struct policy_approval *approval = &explanation->policy.approval;
    const struct policy_origin *origins = explanation->origins.approval;
    char text[64];
    if (approval->when == 0) {
        grant(explanation, "approval", "none", (struct policy_origin){ 0 });
        return;
    }
    for (unsigned bit = 0; bit < APPROVAL_BY; bit++)
        if (approval->when & (1U << bit))
            grant(explanation, "approval.when", approval_asks_name(1U << bit),
                  origins[APPROVAL_WHEN + bit]);
    grant(explanation, "approval.by", approval->is_out_of_band ? "out_of_band" : "terminal",
          origins[APPROVAL_BY]);
    approval_print_scopes(approval_scopes(approval), text, sizeof text);
    grant(explanation, "approval.scopes", text, origins[APPROVAL_SCOPES]);
    limit_print(LIMIT_wall, approval_expires_ms(approval), text, sizeof text);
    grant(explanation, "approval.expires", text, origins[APPROVAL_EXPIRES]);
}

/* Each key of each expectation, as JSON, with the line of its file. */
static void grant_expect(struct explanation *explanation)
{
    const struct policy_expect *expect = &explanation->policy.expect;
    const struct policy_origins *origins = &explanation->origins;
    json_object *list = expect->text[0] ? json_tokener_parse(expect->text) : NULL;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object_object_foreach(json_object_array_get_idx(list, i), name, value)
        {
            char key[48];
            (void) snprintf(key, sizeof key, "expect.%.32s", name);
            grant(explanation, key,
                  json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                            JSON_C_TO_STRING_NOSLASHESCAPE),
                  origins->expects[i]);
        }
    }
    if (!list)
        grant(explanation, "expect", "nothing, in addition to what a request does",
              (struct policy_origin){ 0 });
    if (list || expect->on_fault != ON_FAULT_UNSAID)
        grant(explanation, "expect.on_fault", policy_on_fault_name(expect->on_fault),
              origins->on_fault);
    (void) json_object_put(list);
}

static void list_languages(const struct policy *policy, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < policy->language_count && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                  policy->languages[i]);
}

static void explain_grants(struct explanation *explanation)
{
    const struct policy *policy = &explanation->policy;
    const struct policy_origin *keys = explanation->origins.keys;
    char languages[POLICY_LANGUAGES_MAX * POLICY_LANGUAGE_SIZE];
    list_languages(policy, languages, sizeof languages);
    grant(explanation, "template", policy->template, keys[POLICY_KEY_TEMPLATE]);
    grant(explanation, "languages", languages, keys[POLICY_KEY_LANGUAGES]);
    grant_network(explanation);
    grant_limits(explanation);
    grant_precheck(explanation);
    grant_approval(explanation);
    grant_expect(explanation);
}

/* Which line decides about a finding: of the list that names the module, of the rule, or of
 * modules.others. */
static struct policy_origin origin_of(const struct explanation *explanation,
                                      const struct look_finding *finding)
{
    const struct precheck *precheck = &explanation->policy.precheck;
    const struct policy_origins *origins = &explanation->origins;
    enum check_rule rule = check_rule_find(finding->rule);
    enum check_decision decision = check_decision_find(finding->decision);
    const struct precheck_module *listed = precheck_module(precheck, finding->subject);
    if (listed && listed->decision == decision)
        return origins->modules[listed - precheck->modules];
    if (rule < CHECK_RULES && precheck->rules[rule] == decision)
        return origins->rules[rule];
    return origins->rules[CHECK_module];
}

static void explain_finding(struct explanation *explanation, const char *name,
                            const struct look_finding *finding)
{
    enum check_rule rule = check_rule_find(finding->rule);
    struct policy_origin origin = origin_of(explanation, finding);
    const char *words = rule < CHECK_RULES ? check_rows[rule].text : finding->rule;
    char place[POLICY_LABEL_SIZE + 16];
    if (explanation->code) {
        json_object *row = json_object_new_object();
        (void) json_object_object_add(row, "line", json_object_new_int(finding->line));
        add_text(row, "rule", finding->rule);
        add_text(row, "decision", finding->decision);
        add_text(row, "subject", finding->subject);
        add_place(explanation, row, origin);
        (void) json_object_array_add(explanation->code, row);
        return;
    }
    write_place(explanation, origin, place, sizeof place);
    (void) printf("  %-5s %s:%d: %s%s%s\n        %s\n", finding->decision, name, finding->line,
                  words, finding->subject[0] ? ": " : "", finding->subject,
                  origin.line > 0 ? place : "no file says more: it is the rule's own decision");
}

static int look(const struct explain_arguments *arguments, const struct policy *policy,
                json_object **ret_result, error *err)
{
    auto_text code = NULL;
    size_t size = 0;
    glb_client *client = NULL;
    bool is_stdin = strcmp(arguments->code, "-") == 0;
    if ((is_stdin ? read_to_end(0, "stdin", &code, &size, err)
                  : read_input_file(arguments->code, &code, &size, err)) < 0)
        return -1;
    const char *language = arguments->language
                               ? arguments->language
                               : language_of_file(is_stdin ? "" : arguments->code, code, size);
    struct look look = {
        .code = code, .code_size = size, .policy = policy->name, .language = language
    };
    if (look_connect_private(arguments->state, policy->template, &client, err) < 0)
        return -1;
    int result = look_at_code(client, &look, ret_result, err);
    glb_close(client);
    return result;
}

/* Gives the exit status. */
static int explain_code(struct explanation *explanation, const struct explain_arguments *arguments,
                        error *err)
{
    const char *name = strcmp(arguments->code, "-") == 0 ? "code" : arguments->code;
    const char *verdict;
    json_object *result = NULL;
    struct look_finding finding;
    if (look(arguments, &explanation->policy, &result, err) < 0)
        return complain_of(err);
    verdict = look_decision(result);
    for (size_t i = 0; look_finding_at(result, i, &finding); i++)
        if (explanation->policy.precheck.is_on)
            explain_finding(explanation, name, &finding);
    enum check_decision decision = explanation->policy.precheck.is_on
                                       ? check_decision_find(verdict)
                                       : CHECK_ALLOW; /* it only says what is usual */
    if (!explanation->code && look_failure(result))
        (void) printf("  deny  %s\n", look_failure(result));
    if (!explanation->code)
        (void) printf("  verdict: %s%s\n", check_decision_name(decision),
                      decision == CHECK_WARN  ? ", it runs"
                      : decision == CHECK_ASK ? ", a person is asked first"
                                              : "");
    (void) json_object_put(result);
    return decision >= CHECK_ASK ? EXIT_DENIED : 0;
}

static void print_head(const struct explanation *explanation)
{
    const struct policy *policy = &explanation->policy;
    (void) printf("policy %s%s%s\n", policy->name, policy->description[0] ? ": " : "",
                  policy->description);
    for (size_t i = 0; i < explanation->origins.file_count; i++)
        (void) printf("  %s %s\n", i == 0 ? "read from" : "extending",
                      explanation->origins.files[i]);
    (void) putchar('\n');
}

static void print_json(const struct explanation *explanation, const char *verdict)
{
    json_object *root = json_object_new_object();
    json_object *files = json_object_new_array();
    add_text(root, "policy", explanation->policy.name);
    for (size_t i = 0; i < explanation->origins.file_count; i++)
        (void) json_object_array_add(files, json_object_new_string(explanation->origins.files[i]));
    (void) json_object_object_add(root, "files", files);
    (void) json_object_object_add(root, "grants", json_object_get(explanation->grants));
    (void) json_object_object_add(root, "findings", json_object_get(explanation->code));
    add_text(root, "verdict", verdict);
    (void) puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
    (void) json_object_put(root);
}

int policy_explain(int argc, char **argv)
{
    static struct explanation explanation;
    struct explain_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_text path = NULL;
    int outcome = options_read(policy_explain_option_table(), &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0)
        return complain_of(&err);
    if (words.next < words.count)
        return complain("policy explain takes no '%s'; see glovebox policy explain --help",
                        argv[words.next]);
    if (path_of_policies(&path, &err) < 0 ||
        policy_load_origins(
            path, arguments.policy ? arguments.policy : config_default_policy(arguments.state),
            &explanation.policy, &explanation.origins, &err) < 0)
        return complain_of_policy(&err, NULL);
    if (arguments.json) {
        explanation.grants = json_object_new_array();
        explanation.code = json_object_new_array();
    } else {
        print_head(&explanation);
    }
    if (!arguments.code || arguments.json)
        explain_grants(&explanation);
    int status = arguments.code ? explain_code(&explanation, &arguments, &err) : 0;
    if (arguments.json && (status == 0 || status == EXIT_DENIED))
        print_json(&explanation, !arguments.code         ? NULL
                                 : status == EXIT_DENIED ? "denied"
                                                         : "allowed");
    (void) json_object_put(explanation.grants);
    (void) json_object_put(explanation.code);
    return status;
}
