/* precheck.c - `glovebox check`: checks code without running it; prints findings and the decision.
 */
#include "cli/commands.h"
#include "cli/common/policy_choice.h"

#include "cli/common/inputs.h"
#include "cli/common/precheck_request.h"
#include "cli/options.h"
#include "policy/precheck.h"
#include "supervisor/install_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_arguments {
    const char *code, *language, *policy, *daemon, *state;
    bool json, private;
};

#define FIELD(name) offsetof(struct check_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "code",     'c', "CODE",     VALUES_NONE,     "look at this text",                               store_text,   FIELD(code) },
    { "language", 'l', "LANGUAGE", VALUES_LANGUAGE, "of the code; default: by name or first line, else python", store_text, FIELD(language) },
    { "policy",   'p', "NAME",     VALUES_POLICY,   "whose rules decide; default: as run",            store_text,   FIELD(policy) },
    { "json",     0,   NULL,       VALUES_NONE,     "print what was found as JSON",                    store_switch, FIELD(json) },
    { "daemon",   0,   "SOCKET",   VALUES_FILE,     "use the daemon at this socket",                   store_text,   FIELD(daemon) },
    { "private",  0,   NULL,       VALUES_NONE,     "use no running daemon, start one for this call",  store_switch, FIELD(private) },
    { "state",    0,   "FOLDER",   VALUES_FOLDER,   "where templates are kept",                        store_text,   FIELD(state) },
};

const struct option_table check_option_table = {
    .verb = "check",
    .examples = "  glovebox check script.py              what is found, and what happens to it\n"
                "  glovebox check --policy data -        code from stdin\n"
                "  glovebox check -c 'import ctypes'     a line of code\n",
    .usage = "[OPTIONS] FILE|-\n       glovebox check [OPTIONS] -c CODE",
    .more = "Nothing of the code runs. Exit status 0: it may run, warnings included; 126: the\n"
            "policy denies it or wants a person asked; 125: there was no look.\n"
            "It is a lint of what code says openly: the sandbox is the boundary, not this.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

static void print_finding(const char *name, const struct look_finding *finding)
{
    enum check_rule rule = check_rule_find(finding->rule);
    const char *text = rule < CHECK_RULES ? check_rows[rule].text : finding->rule;
    char place[24] = "";
    if (finding->line > 0)
        (void) snprintf(place, sizeof place, ":%d", finding->line);
    (void) printf("%s%s: %s: %s%s%s [%s]\n", name, place, finding->decision, text,
                  finding->subject[0] ? ": " : "", finding->subject, finding->rule);
}

/* Prints findings in the format of compilers, so that editors can jump to the line. */
static void print_result(const char *name, json_object *result, const char *policy)
{
    struct look_finding finding;
    const char *failure = look_failure(result);
    const char *decision = look_decision(result);
    for (size_t i = 0; look_finding_at(result, i, &finding); i++)
        print_finding(name, &finding);
    if (failure)
        (void) printf("%s: deny: %s [checker]\n", name, failure);
    (void) printf("%s: policy %s: %s\n", name, policy, decision);
}

static int read_words(const struct check_arguments *arguments, const struct words *words,
                      struct code_input *ret_code, error *err)
{
    const char *path = words->next < words->count ? words->words[words->next] : NULL;
    if (!arguments->code == !path || words->next + 1 < words->count)
        return fail(err, ERR_BAD_REQUEST, "give one file, - for stdin, or -c CODE");
    if (path)
        return read_code(path, arguments->language, ret_code, err);
    size_t size = strlen(arguments->code);
    const char *language =
        arguments->language ? arguments->language : language_of_file("code", arguments->code, size);
    *ret_code = (struct code_input){ .name = "code", .language = language, .size = size };
    return format_text(&ret_code->text, err, "%s", arguments->code);
}

static int connect_daemon(const struct check_arguments *arguments, const char *policy,
                          glb_client **ret_client)
{
    glb_connect_options options = {
        .socket = arguments->daemon,
        .state = arguments->state,
        .how = arguments->private  ? GLB_CONNECT_PRIVATE
               : arguments->daemon ? GLB_CONNECT_SOCKET
                                   : GLB_CONNECT_ANY,
        .template_name = policy_template(policy, arguments->state),
    };
    return glb_connect(&options, sizeof options, ret_client) == GLB_OK
               ? 0
               : complain("%s", glb_error_text());
}

/* Returns the exit status. */
static int check(const struct check_arguments *arguments, const struct code_input *code)
{
    error err = { 0 };
    glb_client *client = NULL;
    auto_json result = NULL;
    json_object *checks = NULL;
    const char *policy =
        arguments->policy ? arguments->policy : policy_by_default(arguments->state);
    struct look look = { code->text, code->size, code->language, policy };
    int status = connect_daemon(arguments, policy, &client);
    if (status != 0)
        return status;
    if (!client->private)
        look.policy = arguments->policy; /* NULL: the daemon's default */
    tell_unused_policies(client);
    int looked = look_at_code(client, &look, &result, &err);
    glb_close(client);
    if (looked < 0)
        return complain_of(&err);
    if (arguments->json && json_object_object_get_ex(result, "checks", &checks))
        (void) puts(json_object_to_json_string_ext(checks, JSON_C_TO_STRING_PLAIN |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        print_result(code->name, result, policy);
    return check_decision_find(look_decision(result)) >= CHECK_ASK ? EXIT_DENIED : 0;
}

int command_check(int argc, char **argv)
{
    struct check_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    struct code_input code = { 0 };
    error err = { 0 };
    int outcome = options_read(&check_option_table, &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0 || read_words(&arguments, &words, &code, &err) < 0)
        return complain_of(&err);
    int status = check(&arguments, &code);
    free(code.text);
    return status;
}
