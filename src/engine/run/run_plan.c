/* run_plan.c - turns a request into a plan: policy, template, language, limits, argument lists. */
#include "engine/run/run_plan.h"

#include "base/text.h"
#include "engine/run/import_scan.h"
#include "engine/run/run_environment.h"
#include "engine/schedule/accounts.h"

#include <stdio.h>
#include <string.h>

static const char default_language[] = "python";

/* The arguments of a START. Only the first `own`, which are the template's, may contain
 * "{file}". */
struct words {
    const struct environment *environment;
    uint32_t flags;
    size_t own, count;
    const char *list[AGENT_ARGUMENTS_MAX];
};

static int add_words(struct words *words, const char *const *more, size_t count, error *err)
{
    if (count > AGENT_ARGUMENTS_MAX - words->count)
        return fail(err, ERR_TOO_LARGE, "the program has more than %d arguments",
                    AGENT_ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++)
        words->list[words->count++] = more[i];
    return 0;
}

/* Adds a text and its NUL; "{file}" becomes the absolute path of the code. */
static void add_string(struct bytes *payload, const char *text, const struct run_spec *plan)
{
    static const char file[] = "{file}";
    const char *found = plan && plan->code_path ? strstr(text, file) : NULL;
    if (found) {
        bytes_add(payload, text, (size_t) (found - text));
        bytes_add_text(payload, plan->code_is_system ? "/" : "/workspace/");
        bytes_add_text(payload, plan->code_path);
        text = found + sizeof file - 1;
    }
    bytes_add(payload, text, strlen(text) + 1);
}

static int check_payload(const struct bytes *payload, error *err)
{
    if (payload->failed)
        return fail(err, ERR_SYSTEM, "no memory for an argument list");
    if (payload->size > AGENT_PAYLOAD_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "arguments and environment have %zu bytes, %d are allowed; use files or stdin",
                    payload->size, AGENT_PAYLOAD_MAX);
    return 0;
}

/* Writes the payload of a START. */
static int write_start(const struct run_spec *plan, const struct words *words,
                       struct bytes *payload, error *err)
{
    const struct environment *environment = words->environment;
    struct agent_start start = {
        .flags = words->flags,
        .arguments = (uint16_t) words->count,
        .variables = (uint16_t) environment->count,
    };
    bytes_add(payload, &start, sizeof start);
    add_string(payload, "/workspace", NULL);
    for (size_t i = 0; i < words->count; i++)
        add_string(payload, words->list[i], i < words->own ? plan : NULL);
    environment_write(environment, payload);
    return check_payload(payload, err);
}

static int write_command(struct run_spec *plan, const struct run_request *request, uint32_t flags,
                         const struct environment *environment, error *err)
{
    struct words words = { .environment = environment, .flags = flags };
    if (add_words(&words, request->command, request->command_count, err) < 0)
        return -1;
    return write_start(plan, &words, &plan->program, err);
}

static int write_code(struct run_spec *plan, const struct run_request *request, uint32_t flags,
                      const struct environment *environment, error *err)
{
    const struct language *language = plan->language;
    struct words words = { .environment = environment, .own = language->compile_count };
    if (language->compile_count > 0) {
        if (add_words(&words, language->compile, language->compile_count, err) < 0 ||
            write_start(plan, &words, &plan->compile, err) < 0)
            return -1;
        words.count = 0;
    }
    words.flags = flags;
    words.own = language->command_count;
    if (add_words(&words, language->command, language->command_count, err) < 0 ||
        add_words(&words, request->arguments, request->argument_count, err) < 0)
        return -1;
    return write_start(plan, &words, &plan->program, err);
}

/* Stdin of a forked interpreter: as much as its pipe takes at once. */
enum { STDIN_MAX_FORKED = 60000 };

/* Chooses a zygote for the code, or none. */
static int choose_set(struct run_spec *plan, const struct run_request *request, error *err)
{
    bool is_python = strcmp(plan->language->name, "python") == 0;
    plan->set = -1;
    if (is_python && !request->is_cold && request->stdin_content.size <= STDIN_MAX_FORKED)
        plan->set = imports_choose(plan->template, request->code.text, request->code.text_size);
    if (request->is_cell && !is_python)
        return fail(err, ERR_BAD_REQUEST, "mode 'cell' is for python; use mode 'script' for %.40s",
                    plan->language->name);
    if (request->is_cell && plan->set < 0)
        return fail(
            err, ERR_BAD_REQUEST,
            "mode 'cell' needs a warm interpreter: a daemon (glovebox serve), a template with "
            "zygotes, not 'cold', and at most %d bytes of stdin",
            STDIN_MAX_FORKED);
    return 0;
}

/* Writes the payload of an EXECUTE, with the code if it fits and is not a file of the workspace. */
static int write_execute(struct run_spec *plan, const struct run_request *request,
                         const struct environment *environment, error *err)
{
    struct bytes *payload = &plan->execute;
    if (request->argument_count >= AGENT_ARGUMENTS_MAX)
        return fail(err, ERR_TOO_LARGE, "the program has more than %d arguments",
                    AGENT_ARGUMENTS_MAX - 1);
    struct agent_execute execute = {
        .mode = request->is_cell ? AGENT_MODE_CELL : AGENT_MODE_SCRIPT,
        .flags = request->is_cell ? AGENT_EXECUTE_LAST : 0,
        .arguments = (uint16_t) (request->argument_count + 1),
        .variables = (uint16_t) environment->count,
    };
    auto_bytes path = { 0 };
    bytes_print(&path, "%s%s", plan->code_is_system ? "/" : "/workspace/", plan->code_path);
    bytes_add(payload, &execute, sizeof execute);
    add_string(payload, "/workspace", NULL);
    add_string(payload, request->is_cell && !request->filename ? "" : bytes_text(&path), NULL);
    add_string(payload, bytes_text(&path), NULL);
    for (size_t i = 0; i < request->argument_count; i++)
        add_string(payload, request->arguments[i], NULL);
    environment_write(environment, payload);
    if (path.failed || check_payload(payload, err) < 0)
        return path.failed ? fail(err, ERR_SYSTEM, "no memory for an argument list") : -1;
    plan->code_is_in_frame = plan->code_is_system && !request->code.is_base64 &&
                             request->code.size <= AGENT_PAYLOAD_MAX - payload->size;
    if (plan->code_is_in_frame) {
        execute.code_size = (uint32_t) request->code.size;
        execute.flags |= AGENT_EXECUTE_WRITE;
        memcpy(payload->data, &execute, sizeof execute);
        bytes_add(payload, request->code.text, request->code.text_size);
    }
    return payload->failed ? fail(err, ERR_SYSTEM, "no memory for the code") : 0;
}

static int name_code(struct run_spec *plan, const struct run_request *request, error *err)
{
    plan->code_path = request->filename;
    if (request->filename)
        return 0;
    plan->code_is_system = true;
    bytes_print(&plan->code_path_text, "run/%s", plan->language->file);
    plan->code_path = bytes_text(&plan->code_path_text);
    return plan->code_path_text.failed ? fail(err, ERR_SYSTEM, "no memory for a path") : 0;
}

static int find_template(struct run_spec *plan, const struct run_request *request,
                         const struct templates *templates, error *err)
{
    const char *name = request->template ? request->template : plan->policy->template;
    int index = templates_find(templates, name);
    if (index < 0 && request->template)
        return fail(
            err, ERR_NOT_FOUND,
            "no template is named '%.60s' here; glovebox template list shows those that are "
            "built and those that can be",
            name);
    if (index < 0)
        return fail(
            err, ERR_UNAVAILABLE,
            "policy %.40s needs template %.40s, which is not built; build it with: glovebox "
            "template build %.40s, or name another policy",
            plan->policy->name, name, name);
    plan->template = template_use(templates->list[index]);
    return 0;
}

int run_plan_language(const struct run_spec *plan, const char *name,
                      const struct language **ret_language, error *err)
{
    const struct policy *policy = plan->policy;
    const struct language *language = template_language(plan->template, name);
    if (!language) {
        char names[128] = "";
        for (size_t i = 0; i < plan->template->language_count; i++)
            if (!text_list(names, sizeof names, plan->template->languages[i].name))
                break;
        return fail(err, ERR_NOT_FOUND, "template %s has no language '%.40s'; it has: %s",
                    plan->template->name, name, names);
    }
    if (!policy_allows_language(policy, name))
        return fail(err, ERR_POLICY,
                    "policy %.40s does not allow language '%.40s', only %.40s%s; ask for another "
                    "policy, or add it to 'languages:' of %.40s.yaml",
                    policy->name, name, policy->languages[0],
                    policy->language_count > 1 ? " and others" : "", policy->name);
    *ret_language = language;
    return 0;
}

/* The policy file itself is wrong: the message has the lines that repair it. */
static int check_first_language(const struct run_spec *plan, const char *name, error *err)
{
    const struct template *template = plan->template;
    if (template_language(template, name))
        return 0;
    return fail(err, ERR_POLICY,
                "policy %.40s has language '%.40s', which template %.40s has not; write in "
                "%.40s.yaml 'languages: [%.40s]', or 'template:' with one that has it",
                plan->policy->name, name, template->name, plan->policy->name,
                template->language_count > 0 ? template->languages[0].name : "");
}

static int find_language(struct run_spec *plan, const struct run_request *request, error *err)
{
    const struct policy *policy = plan->policy;
    const char *name = request->language;
    if (!name && request->command_count > 0)
        return 0;
    if (!name)
        name = policy_allows_language(policy, default_language) || policy->language_count == 0
                   ? default_language
                   : policy->languages[0];
    if (!request->language && check_first_language(plan, name, err) < 0)
        return -1;
    return run_plan_language(plan, name, &plan->language, err);
}

/* Refuses what cannot fit before anything is built. */
static int check_sizes(const struct run_spec *plan, const struct run_request *request, error *err)
{
    uint64_t bytes = request->code.size + request->stdin_content.size;
    for (size_t i = 0; i < request->file_count; i++)
        bytes += request->files[i].content.size;
    if (bytes > plan->limits.disk)
        return fail(
            err, ERR_TOO_LARGE,
            "code, stdin and files have %llu bytes, limits.disk_bytes is %llu; ask for more",
            (unsigned long long) bytes, (unsigned long long) plan->limits.disk);
    if (request->file_count + 1 > plan->limits.inodes)
        return fail(err, ERR_TOO_LARGE, "%zu files do not fit into limits.inodes of %llu",
                    request->file_count, (unsigned long long) plan->limits.inodes);
    return 0;
}

/* Grants the rest: policy and template are known. */
static int grant_there(struct run_spec *plan, const struct run_request *request, error *err)
{
    if (find_language(plan, request, err) < 0 || check_sizes(plan, request, err) < 0)
        return -1;
    plan->set = -1; /* unless a zygote can run it */
    struct environment environment = { 0 };
    uint32_t flags = AGENT_START_MAIN | (request->has_stdin ? AGENT_START_STDIN_FILE : 0);
    int result = environment_gather(&environment, plan, request, err);
    if (result == 0 && request->command_count > 0)
        result = write_command(plan, request, flags, &environment, err);
    else if (result == 0) {
        result = name_code(plan, request, err);
        if (result == 0)
            result = choose_set(plan, request, err);
        if (result == 0 && plan->set >= 0)
            result = write_execute(plan, request, &environment, err);
        else if (result == 0)
            result = write_code(plan, request, flags, &environment, err);
    }
    if (result < 0)
        run_plan_done(plan);
    return result;
}

/* Suggests a policy whose template has the language: one of the caller's; rather one whose template
 * is built; then the one with the fewest languages. */
static void suggest_policy(const struct run_request *request, const struct policies *policies,
                           const struct templates *templates, error *err)
{
    const struct policy *best = NULL;
    bool is_built = false;
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy *policy = policies_at(policies, i);
        error unused;
        if (!policy || !policy_allows_language(policy, request->language) ||
            (request->account && account_check_policy(request->account, policy->name, &unused) < 0))
            continue;
        int index = templates_find(templates, policy->template);
        bool has_it = index >= 0 && template_language(templates->list[index], request->language);
        bool is_better =
            !best || (has_it == is_built ? policy->language_count < best->language_count : has_it);
        if (!is_better || (index >= 0 && !has_it))
            continue;
        best = policy;
        is_built = has_it;
    }
    size_t used = strlen(err->text);
    if (best)
        (void) snprintf(err->text + used, sizeof err->text - used, "; policy %.40s has it%s%.40s",
                        best->name, is_built ? "" : ", once there is: glovebox template build ",
                        is_built ? "" : best->template);
}

int run_plan_grant(struct run_spec *plan, const struct run_request *request,
                   const struct policies *policies, const struct templates *templates, error *err)
{
    if (run_plan_grant_place(plan, request, policies, templates, err) < 0)
        return -1;
    int result = grant_there(plan, request, err);
    if (result < 0 && request->language && !plan->language)
        suggest_policy(request, policies, templates, err);
    if (result == 0 && plan->set >= 0)
        imports_count(plan->template, plan->policy, request->code.text, request->code.text_size);
    return result;
}

int run_plan_grant_checker(struct run_spec *plan, const struct run_request *request,
                           const struct run_spec *place, error *err)
{
    const struct policy *policy = place->policy;
    *plan = (struct run_spec){ .set = -1,
                               .policy = policy,
                               .limits = policy->limits,
                               .network = policy->network,
                               .route = &policy->route,
                               .template = template_use(place->template) };
    return grant_there(plan, request, err);
}

/* Narrows the network of the policy if the request wants less. */
static int grant_network(struct run_spec *plan, const struct network_wish *wish, error *err)
{
    plan->network = plan->policy->network;
    plan->route = &plan->policy->route;
    if (!wish || !wish->is_given)
        return 0;
    plan->narrowed = calloc(1, sizeof *plan->narrowed);
    if (!plan->narrowed)
        return fail(err, ERR_SYSTEM, "no memory for the rules of a network");
    if (network_narrow(plan->policy, wish, plan->narrowed, err) < 0) {
        run_plan_done(plan);
        return -1;
    }
    if (plan->narrowed->count == 0)
        plan->network = POLICY_NETWORK_NONE;
    plan->route = plan->narrowed;
    return 0;
}

struct catalog {
    const struct policies *policies;
    const struct templates *templates;
};

static bool can_use(const void *context, const char *name)
{
    const struct catalog *catalog = context;
    const struct policy *policy;
    error unused;
    return policies_find(catalog->policies, name, &policy, &unused) == 0 &&
           templates_find(catalog->templates, policy->template) >= 0;
}

void run_plan_default_policy(const struct account *account, const struct policies *policies,
                             const struct templates *templates, char ret_name[POLICY_NAME_SIZE])
{
    const char *allowed = account ? account->key.policies : "";
    const struct catalog catalog = { policies, templates };
    (void) snprintf(ret_name, POLICY_NAME_SIZE, "%s",
                    default_policy_name(policies->usual, can_use, &catalog));
    if (account && !key_allows_policy(&account->key, ret_name))
        (void) snprintf(ret_name, POLICY_NAME_SIZE, "%.*s", (int) strcspn(allowed, ","), allowed);
}

int run_plan_grant_place(struct run_spec *plan, const struct run_request *request,
                         const struct policies *policies, const struct templates *templates,
                         error *err)
{
    *plan = (struct run_spec){ .set = -1 };
    char usual[POLICY_NAME_SIZE] = "";
    if (!request->policy)
        run_plan_default_policy(request->account, policies, templates, usual);
    if (policies_find(policies, request->policy ? request->policy : usual, &plan->policy, err) <
            0 ||
        policy_narrow(plan->policy, &request->limits, &plan->limits, err) < 0 ||
        find_template(plan, request, templates, err) < 0 ||
        grant_network(plan, request->network, err) < 0)
        return -1;
    plan->set = (int) plan->template->set_count - 1; /* the one with most libraries */
    if (!policy_allows_language(plan->policy, default_language))
        plan->set = -1;
    return 0;
}

void run_plan_done(struct run_spec *plan)
{
    bytes_done(&plan->code_path_text);
    bytes_done(&plan->compile);
    bytes_done(&plan->program);
    bytes_done(&plan->execute);
    free(plan->narrowed);
    plan->narrowed = NULL;
}

enum spawn_network run_plan_network(const struct run_spec *plan)
{
    return plan->network <= POLICY_NETWORK_NONE ? SPAWN_NETWORK_NONE : SPAWN_NETWORK_LOOPBACK;
}

struct spawn_route run_plan_route(const struct run_spec *plan)
{
    struct spawn_route route = { .is_open = plan->network == POLICY_NETWORK_RULES };
    if (route.is_open)
        route.port_count = (uint16_t) network_policy_ports(&plan->policy->route, route.ports);
    return route;
}
