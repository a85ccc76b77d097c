/* status.c - `glovebox status`: whether the service works, how much is used, and what to do if not.
 */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "cli/options.h"
#include "json/member.h"

#include <inttypes.h>
#include <stdio.h>

enum { ANSWER_MS = 5000, EXIT_NOT_READY = 1 };

struct status_arguments {
    const char *daemon;
    bool json;
};

#define FIELD(name) offsetof(struct status_arguments, name)

static const struct option_row rows[] = {
    { "json", 0, NULL, VALUES_NONE, "print the daemon's answer: GET /v1/status", store_switch,
      FIELD(json) },
    { "daemon", 0, "SOCKET|HOST:PORT", VALUES_FILE,
      "the daemon's socket or port; default: where it is looked for", store_text, FIELD(daemon) },
};

const struct option_table status_option_table = {
    .verb = "status",
    .examples = "  glovebox status                       is it ready, and how far is it used?\n"
                "  glovebox status >/dev/null && deploy   for scripts\n",
    .usage = "[OPTIONS]",
    .more = "Ends with 0 if a run begins now, 1 if it does not, with the cause on stderr, and\n"
            "125 if no daemon answers. glovebox top watches it; glovebox doctor tries each\n"
            "wall.\n",
    OPTION_ROWS(rows),
};

static void print(json_object *answer, bool is_ready)
{
    (void) printf("glovebox %s is %s\n", answer_text(answer, "version"),
                  is_ready ? "ready" : "not ready");
    (void) printf("  slots     %" PRId64 " of %" PRId64 " in use, %" PRId64 " parked\n",
                  member_number(answer, "in_use"), member_number(answer, "slots"),
                  member_number(answer, "parked"));
    (void) printf("  runs      %" PRId64 " under way, %" PRId64 " of %" PRId64 " wait\n",
                  member_number(answer, "active"), member_number(answer, "queued"),
                  member_number(answer, "queue"));
    (void) printf("  sessions  %" PRId64 "\n", member_number(answer, "sessions"));
    json_object *warnings = json_member(answer, "warnings");
    size_t warning_count = warnings ? json_object_array_length(warnings) : 0;
    for (size_t i = 0; i < warning_count; i++)
        (void) printf("  warning   %s\n",
                      json_object_get_string(json_object_array_get_idx(warnings, i)));
}

int command_status(int argc, char **argv)
{
    struct status_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_text text = NULL;
    auto_json answer = NULL;
    int outcome = options_read_all(&status_option_table, &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    const struct question question = { .place = arguments.daemon,
                                       .path = "/v1/status",
                                       .accept = "application/json",
                                       .max_ms = ANSWER_MS };
    if (outcome < 0 || ask_value(&question, &text, &answer, &err) < 0)
        return complain_of(&err);
    bool is_ready = json_object_get_boolean(json_member(answer, "ready"));
    if (arguments.json)
        (void) fputs(text, stdout);
    else
        print(answer, is_ready);
    if (!is_ready)
        (void) complain("%s", answer_text(answer, "cause"));
    return is_ready ? 0 : EXIT_NOT_READY;
}
