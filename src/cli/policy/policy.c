/* policy.c - `glovebox policy`: shows and compares policies, and checks policy files. */
#include "policy/policy.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "cli/options.h"
#include "cli/policy/policy_verbs.h"
#include "policy/network_set.h"
#include "policy/search_path.h"
#include "supervisor/install_paths.h"
#include "supervisor/package_mirrors.h"
#include "supervisor/path_access.h"
#include "json/writer.h"

#include <json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The command line. */
struct request {
    bool json;
    int count;
    char **words; /* names or files */
};

typedef int answer(const struct request *request);

static answer show, validate, list, sets;

static const struct verb {
    const char *name;
    answer *answer;
    int min, max; /* number of words */
    const char *usage;
} verbs[] = {
    { "show", show, 1, 1, "glovebox policy show data" },
    { "validate", validate, 1, 1 << 20, "glovebox policy validate mine.yaml" },
    { "list", list, 0, 0, "glovebox policy list" },
    { "sets", sets, 0, 1, "glovebox policy sets" },
};

static const struct option_row rows[] = {
    { "json", 0, NULL, VALUES_NONE, "the same for programs", store_switch,
      offsetof(struct request, json) },
};

const struct option_table policy_option_table = {
    .verb = "policy",
    .examples =
        "  glovebox policy list                   name the policies\n"
        "  glovebox policy show data              what policy data grants, and where it ends\n"
        "  glovebox policy validate mine.yaml     check files, with line and column\n"
        "  glovebox policy sets                   named sets, and what each of them allows\n"
        "  glovebox policy explain --policy data  which line of which file says what\n"
        "  glovebox policy explain --policy data --code file.py\n"
        "                                         and what would happen to this code\n"
        "  glovebox policy test cases.yaml        whether it decides as expected\n",
    .usage = "list|show|validate|sets|explain|test [OPTIONS] [NAME|FILE]",
    .more = "Policies are files NAME.yaml; the first that is found counts: in\n"
            "GLOVEBOX_POLICIES if it is set, else in /etc/glovebox/policies and among those\n"
            "that came with glovebox; at last in the folder policies of the state.\n",
    OPTION_ROWS(rows),
};

static int print_json_policy(const struct policy *policy, error *err)
{
    auto_text text = NULL;
    if (policy_render(policy, &text, err) < 0)
        return -1;
    auto_bytes out = json_begin('{');
    json_string_field(&out, "digest", policy->digest);
    json_string_field(&out, "extends", policy->extends[0] ? policy->extends : NULL);
    json_raw(&out, text + 1, strlen(text + 1)); /* `text` without its opening bracket */
    (void) fputs(bytes_text(&out), stdout);
    return 0;
}

static int show(const struct request *request)
{
    error err;
    auto_text path = NULL;
    static struct policy policy; /* too large for a stack */
    if (path_of_policies(&path, &err) < 0 ||
        policy_load(path, request->words[0], &policy, &err) < 0)
        return complain_of_policy(&err, NULL);
    if (!request->json)
        policy_print(&policy);
    else if (print_json_policy(&policy, &err) < 0)
        return complain_of(&err);
    else
        (void) putchar('\n');
    return 0;
}

/* Reads a policy file. Policies in its folder come before installed ones, as they will where the
 * file is to be installed. */
static int read_beside(const char *file, const char *path, struct policy *ret_policy, error *err)
{
    auto_text search = NULL;
    const char *slash = strrchr(file, '/');
    int length = slash ? (int) (slash - file) + 1 : 2;
    if (format_text(&search, err, "%.*s:%s", length, slash ? file : "./", path) < 0)
        return -1;
    return policy_read(file, search, ret_policy, err);
}

/* Reads a file as the daemon would, or an installed policy by name. */
static int read_as_daemon(const char *word, const char *path, struct policy *ret_policy, error *err)
{
    const char *slash = strrchr(word, '/');
    const char *ending = strrchr(word, '.');
    if (!slash && !ending && access(word, F_OK) < 0)
        return policy_load(path, word, ret_policy, err);
    const char *base = slash ? slash + 1 : word;
    size_t length = ending && ending > base ? (size_t) (ending - base) : 0;
    if (access(word, F_OK) == 0 && (length == 0 || strcmp(ending, ".yaml") != 0))
        return fail(err, ERR_BAD_REQUEST,
                    "%s: the daemon reads files that end in .yaml, and no other; call it NAME.yaml",
                    word);
    if (read_beside(word, path, ret_policy, err) < 0)
        return -1;
    if (strlen(ret_policy->name) != length || strncmp(ret_policy->name, base, length) != 0)
        return fail(err, ERR_BAD_REQUEST,
                    "%s: name '%s' is not that of the file, and the daemon refuses it; write "
                    "name: %.*s",
                    word, ret_policy->name, (int) length, base);
    return 0;
}

static void print_json_verdict(const char *file, const struct policy *policy, const error *err)
{
    auto_bytes out = json_begin('{');
    json_string_field(&out, "file", file);
    json_flag_field(&out, "valid", policy);
    json_string_field(&out, policy ? "name" : "message", policy ? policy->name : err->text);
    if (policy)
        json_string_field(&out, "digest", policy->digest);
    json_close(&out, '}');
    (void) fputs(bytes_text(&out), stdout);
}

static int validate(const struct request *request)
{
    error err;
    auto_text path = NULL;
    if (path_of_policies(&path, &err) < 0)
        return complain_of(&err);
    int status = 0;
    for (int i = 0; i < request->count; i++) {
        const char *file = request->words[i];
        static struct policy policy; /* too large for a stack */
        bool valid = read_as_daemon(file, path, &policy, &err) == 0;
        if (valid && access(file, F_OK) == 0 && daemon_cannot_read(file))
            (void) complain("gloveboxd, another user, cannot read '%s': chmod o+r", file);
        if (request->json) {
            (void) putchar(i == 0 ? '[' : ',');
            print_json_verdict(file, valid ? &policy : NULL, &err);
        } else if (valid) {
            (void) printf("%s is valid: policy %s, %s\n", file, policy.name, policy.digest);
            policy_print_endpoints(&policy);
        } else
            (void) complain_of(&err);
        if (!valid)
            status = EXIT_OWN_FAILURE;
    }
    if (request->json)
        (void) puts("]");
    return status;
}

static int list(const struct request *request)
{
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    error err;
    auto_text path = NULL;
    size_t count = 0;
    if (path_of_policies(&path, &err) < 0 || policy_list(path, names, &count, &err) < 0)
        return complain_of(&err);
    int status = 0;
    const char *between = "[";
    for (size_t i = 0; i < count; i++) {
        static struct policy policy; /* too large for a stack */
        /* An invalid file is reported; the others are listed. */
        if (policy_load(path, names[i], &policy, &err) < 0) {
            status = complain_of(&err);
            continue;
        }
        if (!request->json) {
            if (policy.description[0] || !policy.extends[0])
                (void) printf("%-16s %s\n", policy.name, policy.description);
            else
                (void) printf("%-16s (no description; extends %s)\n", policy.name, policy.extends);
            continue;
        }
        (void) fputs(between, stdout);
        between = ",";
        if (print_json_policy(&policy, &err) < 0)
            return complain_of(&err);
    }
    if (request->json)
        (void) puts(*between == '[' ? "[]" : "]");
    auto_text places = NULL;
    if ((status != 0 || count == 0) && path_of_policies_told(NULL, &places, &err) == 0)
        (void) complain("%s; looked in %s",
                        count ? "what is wrong is not listed" : "no policy is there", places);
    return status;
}

static json_object *json_of_set(const struct network_set *set)
{
    json_object *object = json_object_new_object();
    json_object *rules = json_object_new_array();
    json_object *variables = json_object_new_object();
    for (unsigned i = 0; i < set->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&set->route.rules[i], text);
        (void) json_object_array_add(rules, json_object_new_string(text));
    }
    for (size_t i = 0; i < set->variable_count; i++)
        member_set_text(variables, set->variables[i].name, set->variables[i].value);
    (void) json_object_object_add(object, "name", json_object_new_string(set->name));
    (void) json_object_object_add(object, "description", json_object_new_string(set->description));
    (void) json_object_object_add(object, "allow", rules);
    (void) json_object_object_add(object, "env", variables);
    return object;
}

static void print_set(const struct network_set *set)
{
    (void) printf("%-16s %s\n", set->name, set->description);
    for (unsigned i = 0; i < set->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&set->route.rules[i], text);
        (void) printf("  allow          %s\n", text);
    }
    for (size_t i = 0; i < set->variable_count; i++)
        (void) printf("  env            %s=%s\n", set->variables[i].name, set->variables[i].value);
}

/* Gives the folders `sets` of a search path. */
static int path_of_sets(const char *path, char **ret_path, error *err)
{
    char folder[PATH_MAX];
    auto_text all = NULL;
    for (const char *rest = search_path_next(path, folder); rest;
         rest = search_path_next(rest, folder)) {
        auto_text before = all;
        all = NULL;
        if (format_text(&all, err, "%s%s%s/sets", before ? before : "", before ? ":" : "", folder) <
            0)
            return -1;
    }
    *ret_path = take_text(&all);
    return 0;
}

/* Reads the settings of this host's package managers again, as glovebox serve does when it
 * starts. */
static int sets(const struct request *request)
{
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    static struct network_set set;
    error err;
    auto_text path = NULL;
    auto_text folders = NULL;
    size_t count = 0;
    if (host_sets_write(NULL, &err) < 0)
        (void) complain_of(&err); /* the sets of the last start remain */
    if (path_of_policies(&path, &err) < 0 || path_of_sets(path, &folders, &err) < 0 ||
        policy_list(folders, names, &count, &err) < 0)
        return complain_of(&err);
    int status = 0;
    bool is_found = request->count == 0;
    auto_json list = json_object_new_array();
    for (size_t i = 0; i < count; i++) {
        if (request->count > 0 && strcmp(names[i], request->words[0]) != 0)
            continue;
        is_found = true;
        if (network_set_load(path, names[i], &set, &err) < 0)
            status = complain_of(&err);
        else if (request->json)
            (void) json_object_array_add(list, json_of_set(&set));
        else
            print_set(&set);
    }
    if (request->json && is_found)
        print_json_line(list);
    return is_found ? status
                    : complain("there is no set '%s'; see glovebox policy sets", request->words[0]);
}

static const struct verb *find_verb(const char *name)
{
    for_each(verb, verbs)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

int command_policy(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "explain") == 0)
        return policy_explain(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "test") == 0)
        return policy_test(argc - 1, argv + 1);
    struct request request = { .words = argv };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    for (;;) { /* moves words to the front of argv, reads options */
        int outcome = options_read(&policy_option_table, &request, &words, &err);
        if (outcome != OPTIONS_TAKEN)
            return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
        if (words.next == argc)
            break;
        request.words[request.count++] = argv[words.next++];
    }
    const char *word = request.count > 0 ? *request.words++ : NULL;
    const struct verb *verb = word ? find_verb(verb_meant("policy", word)) : NULL;
    if (!verb)
        return complain_of_verb("policy", word);
    request.count--;
    if (request.count < verb->min || request.count > verb->max)
        return complain("%s takes %s; try %s", verb->name,
                        verb->max == 0   ? "no name"
                        : verb->max == 1 ? "one name"
                                         : "files",
                        verb->usage);
    return verb->answer(&request);
}
