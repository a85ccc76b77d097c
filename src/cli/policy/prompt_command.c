/* prompt_command.c - `glovebox prompt`: tells a model what it may do here, from the same tables
 * that hold it. */
#include "cli/commands.h"
#include "cli/common/config.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/common/template_manifest.h"
#include "cli/options.h"
#include "policy/policy.h"
#include "supervisor/install_paths.h"

#include <stdio.h>
#include <string.h>

enum { PACKAGES_MAX = 120 };

struct prompt_arguments {
    const char *policy, *state;
};

#define FIELD(name) offsetof(struct prompt_arguments, name)

static const struct option_row rows[] = {
    { "policy", 'p', "NAME", VALUES_POLICY, "which policy; default: as run", store_text,
      FIELD(policy) },
    { "state", 0, "FOLDER", VALUES_FOLDER, "where templates are kept", store_text, FIELD(state) },
};

const struct option_table *prompt_option_table(void)
{
    static const struct option_table table = {
        .verb = "prompt",
        .examples =
            "  glovebox prompt --policy data         text for the model that writes the code\n",
        .usage = "[OPTIONS]",
        .more = "It is made from the policy and the template, so it says what really holds.\n",
        .rows = rows,
        .count = COUNT_OF(rows),
    };
    return &table;
}

static void tell_languages(const struct policy *policy)
{
    (void) fputs("Languages:", stdout);
    for (size_t i = 0; i < policy->language_count; i++)
        (void) printf("%s %s", i > 0 ? "," : "", policy->languages[i]);
    (void) puts(".");
}

/* What of Python is there; distributions are named as `import` mostly knows them. */
static void tell_packages(json_object *manifest, bool has_network)
{
    json_object *text = NULL;
    json_object *packages = NULL;
    if (json_object_object_get_ex(manifest, "description", &text))
        (void) printf("Installed: %s\n", json_object_get_string(text));
    if (!json_object_object_get_ex(manifest, "python", &packages) ||
        json_object_array_length(packages) == 0)
        return;
    size_t count = json_object_array_length(packages);
    (void) fputs("Python packages:", stdout);
    for (size_t i = 0; i < count && i < PACKAGES_MAX; i++) {
        json_object *package = json_object_array_get_idx(packages, i);
        json_object *name = NULL;
        json_object *version = NULL;
        (void) json_object_object_get_ex(package, "name", &name);
        (void) json_object_object_get_ex(package, "version", &version);
        const char *number = json_object_get_string(version);
        bool is_known = number && strcmp(number, "0.0.0") != 0;
        (void) printf("%s %s%s%s", i > 0 ? "," : "", json_object_get_string(name),
                      is_known ? " " : "", is_known ? number : "");
    }
    (void) printf("%s%s\n", count > PACKAGES_MAX ? " and more." : ".",
                  has_network ? "" : " Nothing else can be installed.");
}

static void tell_network(const struct policy *policy)
{
    static const char *const words[] = {
        [POLICY_NETWORK_UNSAID] = "Network: none. Do not try to download anything.",
        [POLICY_NETWORK_NONE] = "Network: none. Do not try to download anything.",
        [POLICY_NETWORK_LOOPBACK] = "Network: only the sandbox's own 127.0.0.1. Nothing leads out.",
        [POLICY_NETWORK_RULES] = "Network: only these destinations; all others are refused:",
    };
    (void) puts(words[policy->network]);
    for (unsigned i = 0; policy->network == POLICY_NETWORK_RULES && i < policy->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&policy->route.rules[i], text);
        (void) printf("- %s\n", text);
    }
}

static void tell_files(const struct policy *policy)
{
    char bytes[32];
    limit_print(LIMIT_artifacts, policy->limits.artifacts, bytes, sizeof bytes);
    (void) printf(
        "Files: your code starts in /workspace, where the files that you were given lie. What "
        "it writes there\ncomes back to the user, at most %llu files and %s. /tmp is there "
        "too and is lost. Everything else is\nread-only. Each run starts fresh: nothing of "
        "an earlier run is left, except in a session.\n",
        (unsigned long long) policy->limits.artifact_files, bytes);
}

static void tell_limits(const struct policy *policy)
{
    (void) puts("Limits of a run:");
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t value = limit_get(&policy->limits, id);
        uint64_t max = limit_get(&policy->maximum, id);
        char texts[2][32];
        if (limit_may_be_off(id) && value == 0)
            continue;
        limit_print(id, value, texts[0], sizeof texts[0]);
        limit_print(id, max, texts[1], sizeof texts[1]);
        (void) printf("- %s: %s (%s)", row->name, texts[0], row->text);
        if (max != value)
            (void) printf(limit_may_be_off(id) && max == 0 ? "; more may be asked for"
                                                           : "; up to %s may be asked for",
                          texts[1]);
        (void) putchar('\n');
    }
}

/* Rules and modules of one decision, in one line. */
static void tell_decision(const struct precheck *precheck, enum check_decision decision,
                          const char *head)
{
    const char *between = "";
    for (unsigned rule = 0; rule < CHECK_RULES; rule++) {
        if (precheck->rules[rule] != decision || (rule == CHECK_module && !precheck->module_count))
            continue;
        (void) printf("%s%s", between[0] ? between : head,
                      rule == CHECK_module ? "imports a module that is not listed here"
                                           : check_rows[rule].text);
        between = "; ";
    }
    bool has_modules = false;
    for (size_t i = 0; i < precheck->module_count; i++) {
        if (precheck->modules[i].decision != decision)
            continue;
        if (!has_modules)
            (void) printf("%simports", between[0] ? between : head);
        (void) printf("%s %s", has_modules ? "," : "", precheck->modules[i].name);
        between = "; ";
        has_modules = true;
    }
    if (between[0])
        (void) puts(".");
}

static void tell_checks(const struct precheck *precheck)
{
    if (!precheck->is_on)
        return;
    (void) puts("Your code is looked at before it runs.");
    tell_decision(precheck, CHECK_DENY, "- It is refused if it: ");
    tell_decision(precheck, CHECK_ASK, "- A person is asked first if it: ");
    tell_decision(precheck, CHECK_WARN, "- It is noted if it: ");
    if (precheck->module_count > 0)
        tell_decision(precheck, CHECK_ALLOW, "- It is fine if it: ");
}

static void tell_expect(const struct policy_expect *expect)
{
    if (!expect->text[0])
        return;
    (void) printf("What you leave is compared with this, and all of it has to be so: %s\n",
                  expect->text);
    if (expect->on_fault == ON_FAULT_WITHHOLD)
        (void) puts(
            "Output, values and files of a run that is not so are withheld: you get none of them, "
            "and are not told what\nis wrong. The answer comes when the time of the run is over: "
            "ask "
            "for no more than it needs (limits.wall_ms).");
}

static void tell(const struct policy *policy, json_object *manifest)
{
    (void) printf("You can run code in a sandbox (glovebox, policy %s).\n", policy->name);
    tell_languages(policy);
    tell_packages(manifest, policy->network == POLICY_NETWORK_RULES);
    tell_files(policy);
    tell_network(policy);
    tell_limits(policy);
    tell_checks(&policy->precheck);
    tell_expect(&policy->expect);
    (void) puts(
        "If a run does not end well, its result says whose doing it was (fault), which limit "
        "ended it with\nnumbers (limit), and what was tried and refused, with what to do "
        "instead (denials). Do that; do not\ntry the same again. There are no credentials, "
        "and no files of the user's machine except those given.");
}

int command_prompt(int argc, char **argv)
{
    static struct policy policy;
    struct prompt_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_text path = NULL;
    json_object *manifest = NULL;
    int outcome = options_read(prompt_option_table(), &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0)
        return complain_of(&err);
    if (words.next < words.count)
        return complain("prompt takes no '%s'; see glovebox prompt --help", argv[words.next]);
    if (path_of_policies(&path, &err) < 0 ||
        policy_load(path,
                    arguments.policy ? arguments.policy : config_default_policy(arguments.state),
                    &policy, &err) < 0 ||
        read_template_manifest(arguments.state, policy.template, &manifest, &err) < 0)
        return complain_of(&err);
    tell(&policy, manifest);
    (void) json_object_put(manifest);
    return 0;
}
