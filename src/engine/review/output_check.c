/* output_check.c - see output_check.h: the inputs of the checker, and the report of its answer
 * (output_check_verdict.c). */
#include "engine/review/output_check_files.h"

#include "engine/audit/audit_log.h"
#include "engine/run/run.h"
#include "output_check_json.h"
#include "output_check_main.h"
#include "output_check_schema.h"
#include "output_check_secrets.h"
#include "output_check_types.h"
#include "policy/policy_permits.h"
#include "json/canonical_tree.h"
#include "json/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char runs_as[] = "python";

/* --- before the run --------------------------------------------------------------------------- */

static const struct policy *policy_of_gate(void)
{
    static struct policy policy;
    if (policy.name[0])
        return &policy;
    helper_run_policy_init(&policy, "gate");
    policy.limits.memory = UINT64_C(768) << 20;
    policy.limits.disk = UINT64_C(160) << 20;
    policy.limits.inodes = UINT64_C(2) * ARTIFACTS_MAX;
    policy.limits.processes = 8;
    policy.maximum = policy.limits;
    (void) snprintf(policy.languages[policy.language_count++], POLICY_LANGUAGE_SIZE, "%s", runs_as);
    return &policy;
}

/* The template of the run itself or, if that has no Python, the first one that has. */
static int find_place(const struct run *run, struct run_spec *place, error *err)
{
    const struct templates *templates = run->runs->templates;
    *place = (struct run_spec){ .policy = policy_of_gate(), .template = run->plan.template };
    if (template_language(place->template, runs_as))
        return 0;
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        if (template_is_served(templates->list[i]) &&
            template_language(templates->list[i], runs_as)) {
            place->template = templates->list[i];
            return 0;
        }
    return fail(err, ERR_UNAVAILABLE,
                "no template here has Python, which compares outputs with what is expected; build "
                "one: glovebox template build minimal");
}

/* All expectations hold: a request can only add to what its policy expects. */
static int add_expectations(struct output_check *output_check, const struct policy_expect *policy,
                            const struct run_request *request, error *err)
{
    output_check->expects = policy ? json_tokener_parse(policy->text) : json_object_new_array();
    if (!output_check->expects ||
        (request->expect &&
         json_object_array_add(output_check->expects, json_object_get(request->expect)) < 0))
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    output_check->needs = request->expect_needs;
    output_check->needs.contents |= policy && policy->needs.contents;
    return 0;
}

static int hash_expectations(struct output_check *output_check, error *err)
{
    auto_bytes canonical = { 0 };
    bool is_one = json_object_array_length(output_check->expects) == 1;
    canonical_write(is_one ? json_object_array_get_idx(output_check->expects, 0)
                           : output_check->expects,
                    &canonical);
    if (canonical.failed)
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    fact_hash(canonical.data, canonical.size, output_check->sha256);
    return 0;
}

/* An output that cannot be checked would be a way around the policy. */
static int check_kind(const struct run *run, const struct run_request *request, error *err)
{
    const struct policy *policy = run->plan.policy;
    if (policy->expect.needs.result && !run->kind->is_cell && !request->is_cell)
        return fail(err, ERR_BAD_REQUEST,
                    "policy '%s' expects a value (expect.result), and only a cell has one; send "
                    "\"mode\": \"cell\" or choose another policy",
                    policy->name);
    return run->kind->is_cell ? policy_permits_session(policy, err) : 0;
}

int output_check_prepare(struct run *run, const struct run_request *request, error *err)
{
    const struct policy_expect *said = &run->plan.policy->expect;
    const struct policy_expect *policy = said->text[0] ? said : NULL;
    if (!output_check_is_wanted(run->plan.policy, request))
        return 0;
    if (policy && check_kind(run, request, err) < 0)
        return -1;
    struct output_check *output_check = run->output_check = calloc(1, sizeof *output_check);
    if (!output_check || !(output_check->place = calloc(1, sizeof *output_check->place)))
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    output_check->withholds = said->on_fault == ON_FAULT_WITHHOLD;
    /* No account has such an owner name: blobs that a dead daemon held belong to no caller. */
    (void) snprintf(output_check->owner, sizeof output_check->owner, "h%.15s",
                    run->id + strlen("run_"));
    if (add_expectations(output_check, policy, request, err) < 0 ||
        hash_expectations(output_check, err) < 0)
        return -1;
    return find_place(run, output_check->place, err);
}

/* --- the checker's run ------------------------------------------------------------------------ */

/* The expectation of artifacts at `index`, counted over all expectations; NULL after the last. */
static struct json_object *wish_at(const struct output_check *output_check, uint32_t index)
{
    for (size_t i = 0; i < json_object_array_length(output_check->expects); i++) {
        struct json_object *list = json_object_object_get(
            json_object_array_get_idx(output_check->expects, i), "artifacts");
        size_t count = list ? json_object_array_length(list) : 0;
        if (index < count)
            return json_object_array_get_idx(list, index);
        index -= (uint32_t) count;
    }
    return NULL;
}

static uint32_t count_expected(const struct output_check *output_check)
{
    uint32_t count = 0;
    while (wish_at(output_check, count))
        count++;
    return count;
}

static void finish(struct run *run)
{
    struct output_check *output_check = run->output_check;
    output_check_told *told = output_check->files ? output_check->files->told : NULL;
    output_check_files_free(output_check->files);
    output_check->files = NULL;
    output_check->has_ended = true;
    if (told && !output_check_hold(run, told))
        told(run);
}

static void on_answer(struct run *run, const struct helper_run_answer *answer)
{
    struct output_check *output_check = run->output_check;
    const uint32_t counts[2] = { (uint32_t) run->collector.artifact_count,
                                 count_expected(output_check) };
    output_check->helper_run = NULL;
    output_check->outcome.took_ms = answer->took_ms;
    run->checks_cpu_us += answer->cpu_us;
    if (answer->failure)
        output_check_give_up(&output_check->outcome, answer->failure);
    else if (!output_check_read_answer(answer->text, counts, &output_check->outcome))
        output_check_give_up(&output_check->outcome,
                             "the checker printed something other than findings");
    finish(run);
}

void output_check_begin(struct run *run, output_check_told *told)
{
    static const char *const parts[] = { output_check_json,  output_check_schema,
                                         output_check_types, output_check_secrets,
                                         output_check_main,  NULL };
    struct output_check *output_check = run->output_check;
    error err;
    output_check->has_begun = true;
    output_check->files = calloc(1, sizeof *output_check->files);
    if (!output_check->files) {
        output_check_give_up(&output_check->outcome, "memory ran out");
        output_check->has_ended = true;
        told(run);
        return;
    }
    output_check->files->told = told;
    if (output_check_files_gather(run, output_check->files, &err) == 0) {
        const struct helper_run_order order = { .place = output_check->place,
                                                .runs_as = runs_as,
                                                .parts = parts,
                                                .files = output_check->files->list,
                                                .file_count = output_check->files->count,
                                                .told = on_answer };
        if (helper_run_begin(run, &order, &output_check->helper_run, &err) == 0)
            return; /* on_answer() follows */
    }
    output_check_give_up(&output_check->outcome, err.text);
    finish(run);
}

void output_check_close(struct run *run)
{
    struct output_check *output_check = run->output_check;
    if (output_check)
        output_check_hold_end(output_check);
    if (!output_check || output_check->has_ended)
        return;
    helper_run_abandon(output_check->helper_run);
    output_check->helper_run = NULL;
    if (output_check->files)
        output_check->files->told = NULL;
    output_check_give_up(&output_check->outcome,
                         output_check->has_begun
                             ? "the run was cancelled while its output was compared"
                             : "the run did not finish: there is nothing to compare");
    finish(run);
}

void output_check_free(struct run *run)
{
    struct output_check *output_check = run->output_check;
    if (!output_check)
        return;
    output_check_hold_end(output_check);
    helper_run_abandon(output_check->helper_run);
    output_check_files_free(output_check->files);
    (void) json_object_put(output_check->expects);
    free(output_check->place);
    free(output_check);
    run->output_check = NULL;
}

/* --- the report ------------------------------------------------------------------------------- */

/* The path as the caller expects it if it is missing, else the program's. */
static const char *path_of(const struct run *run, const struct output_check_finding *finding)
{
    struct json_object *wish = NULL, *name = NULL;
    if (finding->place == PLACE_ARTIFACT)
        return finding->index < run->collector.artifact_count && !output_check_holds(run)
                   ? run->collector.artifacts[finding->index].path
                   : NULL;
    if (finding->place != PLACE_EXPECTED || !(wish = wish_at(run->output_check, finding->index)) ||
        (!json_object_object_get_ex(wish, "name", &name) &&
         !json_object_object_get_ex(wish, "pattern", &name)))
        return NULL;
    return json_object_get_string(name);
}

static void write_finding(const struct run *run, const struct output_check_finding *finding,
                          struct bytes *out)
{
    const char *path = path_of(run, finding);
    auto_bytes message = { 0 };
    if (path)
        bytes_print(&message, "%s", path);
    else if (finding->place == PLACE_ARTIFACTS)
        bytes_add_text(&message, "the list of artifacts");
    else
        bytes_add_text(&message, output_check_place_name(finding->place));
    if (finding->line > 0)
        bytes_print(&message, " line %u", finding->line);
    bytes_print(&message, " %s%s%s", output_check_rule_text(finding->rule),
                finding->detail[0] ? ": " : "", finding->detail);
    json_open(out, '{');
    json_string_field(out, "rule", output_check_rule_name(finding->rule));
    json_string_field(out, "where", output_check_place_name(finding->place));
    json_string_field(out, "path", path);
    json_count_field(out, "line", finding->line);
    json_string_field(out, "detail", finding->detail);
    json_string_field(out, "message", bytes_text(&message));
    json_close(out, '}');
}

void output_check_write(const struct run *run, struct bytes *out)
{
    const struct output_check *output_check = run->output_check;
    const struct output_check_outcome *outcome = &output_check->outcome;
    json_open(out, '{');
    json_string_field(out, "verdict", output_check_verdict_name(outcome->verdict));
    json_string_field(out, "expectation", output_check->sha256);
    json_open_field(out, "findings", '[');
    for (size_t i = 0; i < outcome->count; i++)
        write_finding(run, &outcome->findings[i], out);
    json_close(out, ']');
    json_count_field(out, "unlisted", outcome->unlisted);
    json_string_field(out, "failure", outcome->failure[0] ? outcome->failure : NULL);
    json_number_field(out, "took_ms", outcome->took_ms);
    char withheld[400];
    output_check_print_withheld(run, withheld, sizeof withheld);
    json_string_field(out, "withheld", output_check_has_withheld(run) ? withheld : NULL);
    json_close(out, '}');
}
