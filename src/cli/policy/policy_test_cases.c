/* policy_test_cases.c - `glovebox policy test`: checks code and limits against a policy, and
 * compares the decisions with the expected ones, so that the effect of a change is known before
 * users see it. */
#include "cli/policy/policy_verbs.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/inputs.h"
#include "cli/common/precheck_request.h"
#include "policy/policy.h"
#include "policy/yaml.h"
#include "supervisor/install_paths.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_UNEXPECTED = 1 };

struct test_arguments {
    const char *policy, *state;
    bool json;
};

#define FIELD(name) offsetof(struct test_arguments, name)

static const struct option_row rows[] = {
    { "policy", 'p', "NAME", VALUES_POLICY, "which policy; default: the one that the file names",
      store_text, FIELD(policy) },
    { "state", 0, "FOLDER", VALUES_FOLDER, "where templates are kept", store_text, FIELD(state) },
    { "json", 0, NULL, VALUES_NONE, "the same for programs", store_switch, FIELD(json) },
};

const struct option_table policy_test_option_table = {
    .verb = "policy test",
    .examples = "  glovebox policy test cases.yaml                  every case of a file\n"
                "  glovebox policy test --policy mine cases.yaml    by another policy\n",
    .usage = "[OPTIONS] FILE",
    .more = "A file of cases:\n\n"
            "  policy: careful\n"
            "  cases:\n"
            "    - {name: no shells, code: \"import os; os.system('id')\", expect: deny}\n"
            "    - {name: a chart, file: chart.py, expect: allow}\n"
            "    - {name: no hours, limits: {wall: 2h}, expect: deny}\n\n"
            "A case has code or file, language, limits, and what is expected: allow, warn, ask or "
            "deny.\nExit status 0: all are as expected; 1: some are not.\n",
    OPTION_ROWS(rows),
};

struct case_row {
    const char *name, *code, *file, *language;
    size_t code_size;
    const struct yaml_node *limits;
    enum check_decision expected;
    bool has_expected;
    int line;
};

struct suite {
    const char *path; /* path of the file of cases */
    struct yaml yaml;
    struct policy policy;
    glb_client *client; /* NULL until a case has code */
    const char *state;
    unsigned count, wrong;
    json_object *told; /* with --json: the result of each case */
};

static int read_case_key(const struct suite *suite, const struct yaml_node *key,
                         const struct yaml_node *value, struct case_row *row, error *err)
{
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "name", &row->name },
                  { "code", &row->code },
                  { "file", &row->file },
                  { "language", &row->language } };
    if (key->kind == YAML_TEXT && strcmp(key->text, "limits") == 0) {
        row->limits = value;
        return value->kind == YAML_MAPPING
                   ? 0
                   : yaml_fail(&suite->yaml, value, err, "limits is a mapping; write {wall: 2h}");
    }
    if (value->kind != YAML_TEXT || value->empty)
        return yaml_fail(&suite->yaml, value, err, "a text belongs here; write one");
    if (strcmp(key->text, "expect") == 0) {
        row->has_expected = true;
        row->expected = check_decision_find(value->text);
        return row->expected < CHECK_DECISIONS
                   ? 0
                   : yaml_fail(&suite->yaml, value, err, "expect is allow, warn, ask or deny");
    }
    for_each(text, texts)
        if (strcmp(text->name, key->text) == 0) {
            *text->text = value->text;
            row->code_size = text->text == &row->code ? value->length : row->code_size;
            return 0;
        }
    return yaml_fail(&suite->yaml, key, err,
                     "a case has name, code, file, language, limits, expect");
}

static int read_case(const struct suite *suite, const struct yaml_node *node, struct case_row *row,
                     error *err)
{
    *row = (struct case_row){ .line = node->line };
    if (node->kind != YAML_MAPPING)
        return yaml_fail(&suite->yaml, node, err,
                         "a case is a mapping; write {code: …, expect: …}");
    for (const struct yaml_node *key = yaml_first(&suite->yaml, node), *value; key;
         key = yaml_next(&suite->yaml, value)) {
        value = yaml_next(&suite->yaml, key);
        if (key->kind != YAML_TEXT || read_case_key(suite, key, value, row, err) < 0)
            return -1;
    }
    if (!row->has_expected)
        return yaml_fail(&suite->yaml, node, err, "the case has no 'expect'; write one");
    if (row->code && row->file)
        return yaml_fail(&suite->yaml, node, err, "give code or file, not both");
    return 0;
}

struct outcome {
    enum check_decision decision;
    char why[sizeof(((error *) NULL)->text)];
};

static int decide_limits(const struct suite *suite, const struct case_row *row,
                         struct outcome *outcome, error *err)
{
    struct limits_asked asked = { 0 };
    struct limits granted;
    error refused;
    if (!row->limits)
        return 0;
    for (const struct yaml_node *key = yaml_first(&suite->yaml, row->limits), *value; key;
         key = yaml_next(&suite->yaml, value)) {
        value = yaml_next(&suite->yaml, key);
        enum limit_id id = key->kind == YAML_TEXT ? limit_find(key->text) : LIMITS;
        uint64_t amount;
        if (id == LIMITS || value->kind != YAML_TEXT)
            return yaml_fail(&suite->yaml, key, err, "no limit; write wall: 2h");
        if (limit_parse(id, value->text, &amount, err) < 0 ||
            limits_ask(&asked, id, amount, err) < 0)
            return yaml_under(&suite->yaml, value, err);
    }
    if (policy_narrow(&suite->policy, &asked, &granted, &refused) < 0) {
        outcome->decision = CHECK_DENY;
        (void) snprintf(outcome->why, sizeof outcome->why, "%s", refused.text);
    }
    return 0;
}

/* Writes the first reason for the decision. */
static void say_why(json_object *result, char *why, size_t size)
{
    struct look_finding finding;
    const char *failure = look_failure(result);
    if (failure)
        (void) snprintf(why, size, "%s", failure);
    for (size_t i = 0; look_finding_at(result, i, &finding); i++)
        if (strcmp(finding.decision, look_decision(result)) == 0) {
            (void) snprintf(why, size, "line %d, %s: %s", finding.line, finding.rule,
                            finding.subject);
            return;
        }
}

/* Paths of code files begin at the folder of the file of cases. */
static int read_case_code(const struct suite *suite, const struct case_row *row, char **ret_code,
                          size_t *ret_size, error *err)
{
    auto_text path = NULL;
    const char *slash = strrchr(suite->path, '/');
    int length = slash && row->file[0] != '/' ? (int) (slash - suite->path) + 1 : 0;
    if (format_text(&path, err, "%.*s%s", length, suite->path, row->file) < 0)
        return -1;
    return read_input_file(path, ret_code, ret_size, err);
}

static int decide_code(struct suite *suite, const struct case_row *row, struct outcome *outcome,
                       error *err)
{
    auto_text own = NULL;
    struct look look = { .code = row->code,
                         .code_size = row->code_size,
                         .policy = suite->policy.name,
                         .language = row->language };
    auto_json result = NULL;
    if (row->file) {
        if (read_case_code(suite, row, &own, &look.code_size, err) < 0)
            return -1;
        look.code = own;
        if (!look.language)
            look.language = language_of_file(row->file, own, look.code_size);
    }
    if (!look.code)
        return 0;
    if (!policy_allows_language(&suite->policy, look.language ? look.language : "python")) {
        outcome->decision = CHECK_DENY;
        (void) snprintf(outcome->why, sizeof outcome->why,
                        "the policy does not allow this language");
        return 0;
    }
    if (!suite->policy.precheck.is_on)
        return 0;
    if (!suite->client &&
        look_connect_private(suite->state, suite->policy.template, &suite->client, err) < 0)
        return -1;
    if (look_at_code(suite->client, &look, &result, err) < 0)
        return -1;
    enum check_decision found = check_decision_find(look_decision(result));
    if (found > outcome->decision) {
        outcome->decision = found;
        say_why(result, outcome->why, sizeof outcome->why);
    }
    return 0;
}

static void tell(const struct suite *suite, const char *name, const struct case_row *row,
                 const struct outcome *outcome)
{
    bool is_right = outcome->decision == row->expected;
    const char *decision = check_decision_name(outcome->decision), *why = outcome->why;
    const char *expected = check_decision_name(row->expected);
    if (!suite->told) {
        (void) printf("%-5s %s: %s%s%s%s%s%s\n", is_right ? "ok" : "WRONG", name, decision,
                      is_right ? "" : ", expected ", is_right ? "" : expected, *why ? " (" : "",
                      why, *why ? ")" : "");
        return;
    }
    json_object *told = json_object_new_object();
    (void) json_object_object_add(told, "name", json_object_new_string(name));
    (void) json_object_object_add(told, "ok", json_object_new_boolean(is_right));
    (void) json_object_object_add(told, "decision", json_object_new_string(decision));
    (void) json_object_object_add(told, "expected", json_object_new_string(expected));
    (void) json_object_object_add(told, "why", *why ? json_object_new_string(why) : NULL);
    (void) json_object_array_add(suite->told, told);
}

static int run_case(struct suite *suite, const struct case_row *row, error *err)
{
    struct outcome outcome = { .decision = CHECK_ALLOW };
    char name[120];
    if (row->name)
        (void) snprintf(name, sizeof name, "%.100s", row->name);
    else
        (void) snprintf(name, sizeof name, "the case in line %d", row->line);
    if (decide_limits(suite, row, &outcome, err) < 0 || decide_code(suite, row, &outcome, err) < 0)
        return under(err, "%s", name);
    suite->count++;
    suite->wrong += outcome.decision != row->expected;
    tell(suite, name, row, &outcome);
    return 0;
}

/* Gives the node `cases`, and the name of the policy if the file has one. */
static int read_head(const struct suite *suite, const char **policy,
                     const struct yaml_node **ret_cases, error *err)
{
    const struct yaml_node *root = &suite->yaml.nodes[0];
    *ret_cases = NULL;
    if (root->kind != YAML_MAPPING)
        return yaml_fail(&suite->yaml, root, err, "no mapping; begin with a line 'policy: NAME'");
    for (const struct yaml_node *key = yaml_first(&suite->yaml, root), *value; key;
         key = yaml_next(&suite->yaml, value)) {
        value = yaml_next(&suite->yaml, key);
        bool is_word = key->kind == YAML_TEXT;
        if (is_word && strcmp(key->text, "policy") == 0 && value->kind == YAML_TEXT)
            *policy = *policy ? *policy : value->text;
        else if (is_word && strcmp(key->text, "cases") == 0 && value->kind == YAML_SEQUENCE)
            *ret_cases = value;
        else
            return yaml_fail(&suite->yaml, key, err,
                             "a file of cases has policy: NAME and cases: [...]");
    }
    return *ret_cases && yaml_first(&suite->yaml, *ret_cases) && *policy
               ? 0
               : yaml_fail(&suite->yaml, root, err, "write policy: NAME and cases: [{...}]");
}

static int run_cases(struct suite *suite, const char *policy, error *err)
{
    auto_text path = NULL;
    const struct yaml_node *cases;
    struct case_row row;
    if (read_head(suite, &policy, &cases, err) < 0 || path_of_policies(&path, err) < 0 ||
        policy_load(path, policy, &suite->policy, err) < 0)
        return -1;
    for (const struct yaml_node *node = yaml_first(&suite->yaml, cases); node;
         node = yaml_next(&suite->yaml, node))
        if (read_case(suite, node, &row, err) < 0 || run_case(suite, &row, err) < 0)
            return -1;
    if (suite->told)
        (void) puts(json_object_to_json_string_ext(
            suite->told, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        (void) printf("policy %s: %u of %u cases as expected\n", suite->policy.name,
                      suite->count - suite->wrong, suite->count);
    return 0;
}

int policy_test(int argc, char **argv)
{
    static struct suite suite;
    struct test_arguments arguments = { 0 };
    struct words words = { argc, argv, 1, &suite.path, 1 };
    error err = { 0 };
    auto_text text = NULL;
    size_t size = 0;
    int outcome = options_read_all(&policy_test_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (!suite.path)
        return complain("policy test takes one file of cases; see glovebox policy test --help");
    suite.state = arguments.state;
    suite.told = arguments.json ? json_object_new_array() : NULL;
    if (read_input_file(suite.path, &text, &size, &err) < 0 ||
        yaml_init(&suite.yaml, suite.path, text, size, &err) < 0)
        return complain_of(&err);
    outcome = run_cases(&suite, arguments.policy, &err);
    yaml_done(&suite.yaml);
    glb_close(suite.client);
    (void) json_object_put(suite.told);
    if (outcome < 0) /* do not add the places of policies to this message */
        return suite.policy.name[0] ? complain_of(&err) : complain_of_policy(&err, NULL);
    return suite.wrong > 0 ? EXIT_UNEXPECTED : 0;
}
