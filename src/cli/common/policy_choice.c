/* policy_choice.c - see policy_choice.h. */
#include "cli/common/policy_choice.h"

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/common/config.h"
#include "policy/policy.h"
#include "supervisor/install_paths.h"
#include "supervisor/launch.h"

#include <stdlib.h>

static int load(const char *name, const char *state, struct policy *ret_policy,
                struct policy_origins *ret_origins, error *err)
{
    auto_text path = NULL;
    return path_of_policies_of(state, &path, err) < 0
               ? -1
               : policy_load_origins(path, name, ret_policy, ret_origins, err);
}

static bool can_use(const void *state, const char *name)
{
    static struct policy policy;
    error unused;
    return load(name, state, &policy, NULL, &unused) == 0 &&
           launch_has_template(state, policy.template);
}

const char *policy_by_default(const char *state)
{
    static struct settings settings;
    const struct config_flags flags = { 0 };
    error unused; /* glovebox serve and glovebox config report errors in settings */
    const char *setting = config_read(&flags, &settings, &unused) == 0
                              ? settings.list[SETTING_default_policy].text
                              : NULL;
    return default_policy_name(setting, can_use, state);
}

int policy_choose(const char *name, const char *state, struct policy *ret_policy,
                  struct policy_origins *ret_origins, error *err)
{
    return load(name ? name : policy_by_default(state), state, ret_policy, ret_origins, err);
}

const char *policy_template(const char *name, const char *state)
{
    static struct policy policy;
    error unused; /* the daemon reports errors in the policy */
    return policy_choose(name, state, &policy, NULL, &unused) == 0 ? policy.template : NULL;
}

void tell_unused_policies(const glb_client *client)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
    const char *chosen = getenv("GLOVEBOX_POLICIES");
    if (client && !client->private && chosen && *chosen)
        (void) complain("GLOVEBOX_POLICIES is not used: policies are those of the daemon at %s; "
                        "--private uses yours",
                        client->socket);
}
