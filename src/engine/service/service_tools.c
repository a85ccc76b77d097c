/* service_tools.c - see service_tools.h. */
#include "engine/service/service_tools.h"

#include "engine/catalog/policies.h"
#include "engine/catalog/templates.h"
#include "engine/run/run_plan.h"
#include "policy/describe.h"

int service_tool_words(const struct service *service, const struct caller *caller,
                       struct tool_words *words, error *err)
{
    char usual[POLICY_NAME_SIZE];
    const struct policy *policy = NULL;
    run_plan_default_policy(caller->account, service->policies, service->templates, usual);
    if (policies_find(service->policies, words->policy ? words->policy : usual, &policy, err) < 0)
        return -1;
    int template = templates_find(service->templates, policy->template);
    struct json_object *manifest =
        template <0 ? NULL : service->templates->list[template]->manifest;
    words->has_network = policy->network == POLICY_NETWORK_RULES;
    policy_describe(policy, manifest, &words->text);
    return 0;
}

uint64_t service_tool_words_version(const struct service *service)
{
    return service->templates->changes + service->policies->reloads;
}
