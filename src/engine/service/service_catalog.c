/* service_catalog.c - see service_catalog.h. */
#include "engine/service/service_catalog.h"

#include "base/cleanup.h"
#include "engine/run/run_plan.h"

#include <stdlib.h>

_Static_assert((int) CATALOG_NAME_SIZE == (int) POLICY_NAME_SIZE &&
                   (int) CATALOG_LANGUAGES_MAX == (int) TEMPLATE_LANGUAGES_MAX,
               "as policy.h and templates.h have it");

void service_default_policy(const struct service *service, const struct caller *caller,
                            char ret_name[CATALOG_NAME_SIZE])
{
    run_plan_default_policy(caller->account, service->policies, service->templates, ret_name);
}

void service_each_policy(const struct service *service,
                         void (*each)(void *context, const struct policy_entry *entry),
                         void *context)
{
    for (size_t i = 0; i < service->policies->count; i++) {
        const struct policy *policy = policies_at(service->policies, i);
        auto_text json = NULL;
        error err;
        if (!policy || policy_render(policy, &json, &err) < 0)
            continue;
        const struct policy_entry entry = { policy->name, policy->digest, policy->description,
                                            json };
        each(context, &entry);
    }
}

void service_each_template(const struct service *service,
                           void (*each)(void *context, const struct template_entry *entry),
                           void *context)
{
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++) {
        const struct template *template = service->templates->list[i];
        if (!template_is_served(template))
            continue;
        struct template_entry entry = { template->name, template->digest, template->description,
                                        .language_count = template->language_count };
        for (size_t k = 0; k < template->language_count; k++)
            entry.languages[k] = template->languages[k].name;
        each(context, &entry);
    }
}
