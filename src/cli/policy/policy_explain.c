/* policy_explain.c - `glovebox policy explain`: what a policy grants and what would happen to code
 * under it, with the file and line that say so. */
#include "cli/policy/policy_verbs.h"

#include "cli/commands.h"
#include "cli/common/inputs.h"
#include "cli/common/policy_choice.h"
#include "cli/common/precheck_request.h"
#include "policy/explain.h"
#include "json/member.h"

#include <stdio.h>
#include <stdlib.h>

struct explain_arguments {
    const char *policy, *code, *language, *state;
    bool json;
};

#define FIELD(name) offsetof(struct explain_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "policy",   'p', "NAME",     VALUES_POLICY,   "which policy; default: as run",        store_text,   FIELD(policy) },
    { "code",     'c', "FILE",     VALUES_FILE,     "what would happen to this code; - for stdin", store_text, FIELD(code) },
    { "language", 'l', "LANGUAGE", VALUES_LANGUAGE, "of the code; default: by name or first line, else python", store_text, FIELD(language) },
    { "json",     0,   NULL,       VALUES_NONE,     "the same for programs",                 store_switch, FIELD(json) },
    { "state",    0,   "FOLDER",   VALUES_FOLDER,   "where templates are kept",              store_text,   FIELD(state) },
};

const struct option_table policy_explain_option_table = {
    .verb = "policy explain",
    .examples = "  glovebox policy explain --policy data                 what it grants, and why\n"
                "  glovebox policy explain --policy data --code file.py  and what happens to this code\n",
    .usage = "[OPTIONS]",
    .more = "Nothing of the code runs. Exit status 126: it would be denied, or a person asked.\n"
            "What is found in code is a lint; the sandbox is the boundary.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

struct explanation {
    struct policy policy;
    struct policy_origins origins;
    json_object *grants; /* rows for --json */
    json_object *code;
};

static void add_place(const struct explanation *explanation, json_object *object,
                      struct policy_origin origin)
{
    member_set_text(object, "file",
                    origin.line > 0 ? explanation->origins.files[origin.file] : NULL);
    (void) json_object_object_add(object, "file_line",
                                  origin.line > 0 ? json_object_new_int(origin.line) : NULL);
}

static void explain_statement(void *context, const struct policy_statement *statement)
{
    const struct explanation *explanation = context;
    char place[POLICY_ORIGIN_SIZE];
    if (explanation->grants) {
        json_object *row = json_object_new_object();
        member_set_text(row, "key", statement->key);
        member_set_text(row, "value", statement->value);
        add_place(explanation, row, statement->origin);
        (void) json_object_array_add(explanation->grants, row);
        return;
    }
    policy_origin_print(&explanation->origins, statement->origin, place);
    (void) printf("  %-24s %-28s %s\n", statement->key, statement->value, place);
}

static void explain_finding(struct explanation *explanation, const char *name,
                            const struct look_finding *finding)
{
    enum check_rule rule = check_rule_find(finding->rule);
    const struct policy_finding found = { finding->rule, finding->decision, finding->subject };
    struct policy_origin origin =
        policy_origin_of_finding(&explanation->policy, &explanation->origins, &found);
    const char *words = rule < CHECK_RULES ? check_rows[rule].text : finding->rule;
    char place[POLICY_ORIGIN_SIZE];
    if (explanation->code) {
        json_object *row = json_object_new_object();
        (void) json_object_object_add(row, "line", json_object_new_int(finding->line));
        member_set_text(row, "rule", finding->rule);
        member_set_text(row, "decision", finding->decision);
        member_set_text(row, "subject", finding->subject);
        add_place(explanation, row, origin);
        (void) json_object_array_add(explanation->code, row);
        return;
    }
    policy_origin_print(&explanation->origins, origin, place);
    (void) printf("  %-5s %s:%d: %s%s%s\n        %s\n", finding->decision, name, finding->line,
                  words, finding->subject[0] ? ": " : "", finding->subject,
                  origin.line > 0 ? place : "no file says more: it is the rule's own decision");
}

static int look(const struct explain_arguments *arguments, const struct policy *policy,
                const struct code_input *code, json_object **ret_result, error *err)
{
    glb_client *client = NULL;
    const struct look look = { code->text, code->size, code->language, policy->name };
    if (look_connect_private(arguments->state, policy->template, &client, err) < 0)
        return -1;
    int result = look_at_code(client, &look, ret_result, err);
    glb_close(client);
    return result;
}

/* Returns the exit status. */
static int explain_code(struct explanation *explanation, const struct explain_arguments *arguments,
                        error *err)
{
    struct code_input code = { 0 };
    auto_json result = NULL;
    struct look_finding finding;
    int looked = read_code(arguments->code, arguments->language, &code, err);
    if (looked == 0)
        looked = look(arguments, &explanation->policy, &code, &result, err);
    free(code.text);
    if (looked < 0)
        return complain_of(err);
    const char *verdict = look_decision(result);
    for (size_t i = 0; look_finding_at(result, i, &finding); i++)
        if (explanation->policy.precheck.is_on)
            explain_finding(explanation, code.name, &finding);
    enum check_decision decision = explanation->policy.precheck.is_on
                                       ? check_decision_find(verdict)
                                       : CHECK_ALLOW; /* no check: findings are only information */
    if (!explanation->code && look_failure(result))
        (void) printf("  deny  %s\n", look_failure(result));
    if (!explanation->code)
        (void) printf("  verdict: %s%s\n", check_decision_name(decision),
                      decision == CHECK_WARN  ? ", it runs"
                      : decision == CHECK_ASK ? ", a person is asked first"
                                              : "");
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
    auto_json root = json_object_new_object();
    json_object *files = json_object_new_array();
    member_set_text(root, "policy", explanation->policy.name);
    for (size_t i = 0; i < explanation->origins.file_count; i++)
        (void) json_object_array_add(files, json_object_new_string(explanation->origins.files[i]));
    (void) json_object_object_add(root, "files", files);
    (void) json_object_object_add(root, "grants", json_object_get(explanation->grants));
    (void) json_object_object_add(root, "findings", json_object_get(explanation->code));
    member_set_text(root, "verdict", verdict);
    (void) puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
}

int policy_explain(int argc, char **argv)
{
    static struct explanation explanation;
    struct explain_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    int outcome = options_read_all(&policy_explain_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (policy_choose(arguments.policy, arguments.state, &explanation.policy, &explanation.origins,
                      &err) < 0)
        return complain_of_policy(&err, NULL);
    if (arguments.json) {
        explanation.grants = json_object_new_array();
        explanation.code = json_object_new_array();
    } else {
        print_head(&explanation);
    }
    if (!arguments.code || arguments.json)
        policy_each_statement(&explanation.policy, &explanation.origins, explain_statement,
                              &explanation);
    int status = arguments.code ? explain_code(&explanation, &arguments, &err) : 0;
    if (arguments.json && (status == 0 || status == EXIT_DENIED))
        print_json(&explanation, !arguments.code         ? NULL
                                 : status == EXIT_DENIED ? "denied"
                                                         : "allowed");
    (void) json_object_put(explanation.grants);
    (void) json_object_put(explanation.code);
    return status;
}
