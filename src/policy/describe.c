/* describe.c - see describe.h. */
#include "policy/describe.h"

#include "base/table.h"

#include <string.h>

enum { PACKAGES_MAX = 120 };

/* The Debian package whose version is that of the language. */
static const char *const language_packages[][2] = {
    { "python", "python3" }, { "node", "nodejs" }, { "r", "r-base-core" },
    { "c", "gcc" },          { "cpp", "g++" },     { "perl", "perl" },
};

static void write_languages(const struct policy *policy, struct json_object *manifest,
                            struct bytes *out)
{
    bytes_add_text(out, "Languages:");
    for (size_t i = 0; i < policy->language_count; i++)
        bytes_print(out, "%s %s", i > 0 ? "," : "", policy->languages[i]);
    const char *before = ".\nVersions:";
    struct json_object *packages = json_object_object_get(manifest, "packages");
    for (size_t i = 0; packages && i < json_object_array_length(packages); i++) {
        struct json_object *package = json_object_array_get_idx(packages, i);
        const char *name = json_object_get_string(json_object_object_get(package, "name"));
        const char *version = json_object_get_string(json_object_object_get(package, "version"));
        for_each(row, language_packages) {
            if (!name || !version || strcmp((*row)[1], name) != 0 ||
                !policy_allows_language(policy, (*row)[0]))
                continue;
            const char *from = strchr(version, ':') ? strchr(version, ':') + 1 : version;
            bytes_print(out, "%s %s %.*s", before, (*row)[0], (int) strspn(from, "0123456789."),
                        from);
            before = ",";
        }
    }
    bytes_add_text(out, ".\n");
}

/* The Python packages, by the names that are mostly those for `import`. */
static void write_packages(struct json_object *manifest, bool has_network, struct bytes *out)
{
    struct json_object *text = NULL, *packages = NULL;
    if (json_object_object_get_ex(manifest, "description", &text))
        bytes_print(out, "Installed: %s\n", json_object_get_string(text));
    if (!json_object_object_get_ex(manifest, "python", &packages) ||
        json_object_array_length(packages) == 0)
        return;
    size_t count = json_object_array_length(packages);
    bytes_add_text(out, "Python packages:");
    for (size_t i = 0; i < count && i < PACKAGES_MAX; i++) {
        struct json_object *package = json_object_array_get_idx(packages, i);
        const char *name = json_object_get_string(json_object_object_get(package, "name"));
        const char *number = json_object_get_string(json_object_object_get(package, "version"));
        bool is_known = number && strcmp(number, "0.0.0") != 0;
        bytes_print(out, "%s %s%s%s", i > 0 ? "," : "", name, is_known ? " " : "",
                    is_known ? number : "");
    }
    bytes_print(out, "%s%s\n", count > PACKAGES_MAX ? " and more." : ".",
                has_network ? "" : " Nothing else can be installed.");
}

static void write_network(const struct policy *policy, struct bytes *out)
{
    static const char *const words[] = {
        [POLICY_NETWORK_UNSAID] = "Network: none. Do not try to download anything.",
        [POLICY_NETWORK_NONE] = "Network: none. Do not try to download anything.",
        [POLICY_NETWORK_LOOPBACK] = "Network: only the sandbox's own 127.0.0.1. Nothing leads out.",
        [POLICY_NETWORK_RULES] = "Network: only these destinations; all others are refused:",
    };
    bytes_print(out, "%s\n", words[policy->network]);
    for (unsigned i = 0; policy->network == POLICY_NETWORK_RULES && i < policy->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&policy->route.rules[i], text);
        bytes_print(out, "- %s\n", text);
    }
    for (unsigned i = 0;
         policy->network == POLICY_NETWORK_RULES && i < policy->route.endpoint_count; i++)
        bytes_print(out, "- http://%s" ENDPOINT_SUFFIX "/ leads to the service '%s'%s\n",
                    policy->route.endpoints[i].name, policy->route.endpoints[i].name,
                    policy->route.endpoints[i].header_count > 0
                        ? "; its credentials are added outside of the sandbox"
                        : "");
}

static void write_files(const struct policy *policy, struct bytes *out)
{
    char bytes[32];
    limit_print(LIMIT_artifacts, policy->limits.artifacts, bytes, sizeof bytes);
    bytes_print(
        out,
        "Files: your code starts in /workspace, where the files that you were given lie. What "
        "it writes there\ncomes back to the user, at most %llu files and %s. /tmp is there "
        "too and is lost. Everything else is\nread-only. Each run starts fresh: nothing of "
        "an earlier run is left, except in a session.\n",
        (unsigned long long) policy->limits.artifact_files, bytes);
}

static void write_limits(const struct policy *policy, struct bytes *out)
{
    bytes_add_text(out, "Limits of a run:\n");
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t value = limit_get(&policy->limits, id), max = limit_get(&policy->maximum, id);
        char texts[2][32];
        if (limit_may_be_off(id) && value == 0)
            continue;
        limit_print(id, value, texts[0], sizeof texts[0]);
        limit_print(id, max, texts[1], sizeof texts[1]);
        bytes_print(out, "- %s: %s (%s)", row->name, texts[0], row->text);
        if (max != value)
            bytes_print(out,
                        limit_may_be_off(id) && max == 0 ? "; more may be asked for"
                                                         : "; up to %s may be asked for",
                        texts[1]);
        bytes_add_text(out, "\n");
    }
}

/* Writes the rules and modules of one decision in one line. */
static void write_decision(const struct precheck *precheck, enum check_decision decision,
                           const char *head, struct bytes *out)
{
    const char *between = "";
    for (unsigned rule = 0; rule < CHECK_RULES; rule++) {
        if (precheck->rules[rule] != decision || (rule == CHECK_module && !precheck->module_count))
            continue;
        bytes_print(out, "%s%s", between[0] ? between : head,
                    rule == CHECK_module ? "imports a module that is not listed here"
                                         : check_rows[rule].text);
        between = "; ";
    }
    bool has_modules = false;
    for (size_t i = 0; i < precheck->module_count; i++) {
        if (precheck->modules[i].decision != decision)
            continue;
        if (!has_modules)
            bytes_print(out, "%simports", between[0] ? between : head);
        bytes_print(out, "%s %s", has_modules ? "," : "", precheck->modules[i].name);
        between = "; ";
        has_modules = true;
    }
    if (between[0])
        bytes_add_text(out, ".\n");
}

static void write_checks(const struct precheck *precheck, struct bytes *out)
{
    if (!precheck->is_on)
        return;
    bytes_add_text(out, "Your code is looked at before it runs.\n");
    write_decision(precheck, CHECK_DENY, "- It is refused if it: ", out);
    write_decision(precheck, CHECK_ASK, "- A person is asked first if it: ", out);
    write_decision(precheck, CHECK_WARN, "- It is noted if it: ", out);
    if (precheck->module_count > 0)
        write_decision(precheck, CHECK_ALLOW, "- It is fine if it: ", out);
}

static bool asks_in_checks(const struct precheck *precheck)
{
    bool asks = false;
    for (unsigned rule = 0; rule < CHECK_RULES; rule++)
        asks = asks || precheck->rules[rule] == CHECK_ASK;
    for (size_t i = 0; i < precheck->module_count; i++)
        asks = asks || precheck->modules[i].decision == CHECK_ASK;
    return precheck->is_on && asks;
}

/* Writes when a person is asked, and what to do meanwhile. */
static void write_approval(const struct policy *policy, struct bytes *out)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } cases[] = { { ASKS_ALWAYS, "always" },
                  { ASKS_NETWORK, "if the network can be reached" },
                  { ASKS_OVER_LIMITS, "if more than the limits above is asked for" },
                  { ASKS_WARNING, "if the look at your code notes something" } };
    uint32_t when = policy->approval.when;
    const char *between = " ";
    if (when == 0 && !asks_in_checks(&policy->precheck))
        return;
    bytes_add_text(out, "A person is asked before your code runs:");
    for_each(one, cases) {
        if (!(when & one->bit))
            continue;
        bytes_print(out, "%s%s", between, one->text);
        between = ", ";
    }
    if (asks_in_checks(&policy->precheck))
        bytes_print(out, "%sif it does what is said above", between);
    bytes_print(
        out,
        ".\nIf the answer says pending_approval, nothing has run yet: tell the user. Within "
        "%llu min it is decided or\nrefused; once it is approved, send the very same request "
        "again. Any change to it is asked about anew.\n",
        (unsigned long long) (approval_expires_ms(&policy->approval) / 60000));
}

static void write_expect(const struct policy_expect *expect, struct bytes *out)
{
    if (!expect->text[0])
        return;
    bytes_print(out, "What you leave is compared with this, and all of it has to be so: %s\n",
                expect->text);
    if (expect->on_fault == ON_FAULT_WITHHOLD)
        bytes_add_text(
            out,
            "Output, values and files of a run that is not so are withheld: you get none of them, "
            "and are not told what\nis wrong. The answer comes when the time of the run is over: "
            "ask for no more than it needs (limits.wall_ms).\n");
}

void policy_describe(const struct policy *policy, struct json_object *manifest, struct bytes *out)
{
    bytes_print(out, "You can run code in a sandbox (glovebox, policy %s).\n", policy->name);
    write_languages(policy, manifest, out);
    write_packages(manifest, policy->network == POLICY_NETWORK_RULES, out);
    write_files(policy, out);
    write_network(policy, out);
    write_limits(policy, out);
    write_checks(&policy->precheck, out);
    write_approval(policy, out);
    write_expect(&policy->expect, out);
    bytes_add_text(
        out, "If a run does not end well, its result names the cause (fault), which limit "
             "ended it with\nnumbers (limit), and what was tried and refused, with what to do "
             "instead (denials). Do that; do not\ntry the same again. There are no credentials, "
             "and no files of the user's machine except those given.\n");
}
