/* prompt_command.c - `glovebox prompt`: describes the sandbox to a model (policy/describe.h). */
#include "cli/commands.h"
#include "cli/common/policy_choice.h"

#include "cli/common/template_manifest.h"
#include "cli/options.h"
#include "policy/describe.h"

#include <stdio.h>

struct prompt_arguments {
    const char *policy, *state;
};

#define FIELD(name) offsetof(struct prompt_arguments, name)

static const struct option_row rows[] = {
    { "policy", 'p', "NAME", VALUES_POLICY, "which policy; default: as run", store_text,
      FIELD(policy) },
    { "state", 0, "FOLDER", VALUES_FOLDER, "where templates are kept", store_text, FIELD(state) },
};

const struct option_table prompt_option_table = {
    .verb = "prompt",
    .examples = "  glovebox prompt --policy data         text for the model that writes the code\n",
    .usage = "[OPTIONS]",
    .more = "It is made from the policy and the template, so it says what really holds.\n",
    OPTION_ROWS(rows),
};

int command_prompt(int argc, char **argv)
{
    static struct policy policy;
    struct prompt_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_bytes text = { 0 };
    auto_json manifest = NULL;
    int outcome = options_read_all(&prompt_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (policy_choose(arguments.policy, arguments.state, &policy, NULL, &err) < 0)
        return complain_of_policy(&err, arguments.state);
    if (read_template_manifest(arguments.state, policy.template, &manifest, &err) < 0)
        return complain_of(&err);
    policy_describe(&policy, manifest, &text);
    (void) fputs(bytes_text(&text), stdout);
    return 0;
}
