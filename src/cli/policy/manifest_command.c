/* manifest_command.c - `glovebox manifest`: prints the schema of the tool (policy/tool_schema.h).
 */
#include "cli/commands.h"
#include "cli/common/policy_choice.h"

#include "cli/options.h"
#include "policy/tool_schema.h"

#include <stdio.h>

struct manifest_arguments {
    const char *policy, *format;
};

#define FIELD(name) offsetof(struct manifest_arguments, name)

static const struct option_row rows[] = {
    { "format", 'f', "FORMAT", VALUES_FORMAT, "openai, anthropic, mcp or openapi", store_text,
      FIELD(format) },
    { "policy", 'p', "NAME", VALUES_POLICY, "whose constraints; default: as run", store_text,
      FIELD(policy) },
};

const struct option_table manifest_option_table = {
    .verb = "manifest",
    .examples = "  glovebox manifest --format openai --policy data   tools of a chat completion\n"
                "  glovebox manifest --format anthropic              tools of a message\n"
                "  glovebox manifest --format mcp                    what tools/list answers\n"
                "  glovebox manifest --format openapi                a document of one request\n",
    .usage = "--format FORMAT [OPTIONS]",
    .more = "Arguments that the schema accepts are the body of POST /v1/runs; add \"policy\" to\n"
            "them.\n",
    OPTION_ROWS(rows),
};

int command_manifest(int argc, char **argv)
{
    static struct policy policy;
    struct manifest_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_bytes text = { 0 };
    int outcome = options_read_all(&manifest_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (!arguments.format)
        return complain("say for whom: --format openai, anthropic, mcp or openapi");
    if (policy_choose(arguments.policy, NULL, &policy, NULL, &err) < 0)
        return complain_of_policy(&err, NULL);
    if (tool_schema_write(&policy, arguments.format, &text, &err) < 0)
        return complain("--%s", err.text);
    (void) fputs(bytes_text(&text), stdout);
    return 0;
}
