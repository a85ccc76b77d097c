/* output_check_report.c - see gate.h. */
#include "cli/common/output_check_report.h"

#include "cli/commands.h"
#include "cli/daemon_request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

void output_check_tell(const glb_outcome *outcome, bool is_verbose)
{
    const char *json = glb_outcome_json(outcome);
    if (!json || !strstr(json, "\"gate\":{")) /* in a text its quotes would be escaped */
        return;
    auto_json result = json_tokener_parse(json);
    json_object *output_check = json_member(result, "gate");
    json_object *findings = json_member(output_check, "findings");
    const char *verdict = answer_text(output_check, "verdict");
    int32_t status = glb_outcome_status(outcome);
    bool has_run = status != GLB_STATUS_DENIED && status != GLB_STATUS_PENDING_APPROVAL;
    char more[64] = "";
    const char *withheld = answer_text(output_check, "withheld");
    if (withheld[0]) {
        (void) complain("%s", withheld);
    } else if (strcmp(verdict, "failed") == 0 && findings) {
        size_t count = json_object_array_length(findings) +
                       (size_t) json_object_get_int64(json_member(output_check, "unlisted"));
        if (count > 1)
            (void) snprintf(more, sizeof more, " (and %zu more; --json lists them)", count - 1);
        (void) complain("the output is not what was expected: %s%s",
                        answer_text(json_object_array_get_idx(findings, 0), "message"), more);
    } else if (strcmp(verdict, "error") == 0 && has_run) {
        (void) complain("whether the output is what was expected could not be found out: %s",
                        answer_text(output_check, "failure"));
    } else if (is_verbose && output_check) {
        (void) complain("the output is what was expected");
    }
}
