/* output_check.c - see gate.h: what the checker is given, and what is told of its answer
 * (output_check_verdict.c).
 */
#include "engine/review/output_check.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/review/helper_run.h"
#include "engine/run/run.h"
#include "gate_json.h"
#include "gate_main.h"
#include "gate_schema.h"
#include "gate_secrets.h"
#include "gate_types.h"
#include "json/canonical_tree.h"
#include "json/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONTENTS_MOST = 32 * 1024 * 1024, /* of all artifacts, where they are looked into */
    ARTIFACTS_MOST = 1000,
    FIXED_FILES = 5
};

static const char runs_as[] = "python";

/* --- before the run -----------------------------------------------------------------------------
 */

static const struct policy *policy_of_gate(void)
{
    static struct policy policy;
    if (policy.name[0])
        return &policy;
    aside_policy_init(&policy, "gate");
    policy.limits.memory = UINT64_C(768) << 20;
    policy.limits.disk = UINT64_C(160) << 20;
    policy.limits.inodes = UINT64_C(2) * ARTIFACTS_MOST;
    policy.limits.processes = 8;
    policy.maximum = policy.limits;
    (void) snprintf(policy.languages[policy.language_count++], POLICY_LANGUAGE_SIZE, "%s", runs_as);
    return &policy;
}

/* The template of the run itself, or, where that has no Python, the first that has. */
static int find_place(const struct run *run, struct run_spec *place, error *err)
{
    const struct templates *templates = run->runs->templates;
    *place = (struct run_spec){ .policy = policy_of_gate(),
                                .template_index = run->spec.template_index,
                                .template = run->spec.template };
    if (template_language(place->template, runs_as))
        return 0;
    for (size_t i = 0; i < templates->count; i++)
        if (template_language(&templates->list[i], runs_as)) {
            place->template_index = (uint32_t) i;
            place->template = &templates->list[i];
            return 0;
        }
    return fail(err, ERR_UNAVAILABLE,
                "no template here has Python, which compares outputs with what is expected; build "
                "one: glovebox template build minimal");
}

/* All of it holds: a request can add to what its policy expects, and take nothing away. */
static int add_expectations(struct gate *gate, const struct policy_expect *policy,
                            const struct run_request *request, error *err)
{
    gate->expects = policy ? json_tokener_parse(policy->text) : json_object_new_array();
    if (!gate->expects ||
        (request->expect &&
         json_object_array_add(gate->expects, json_object_get(request->expect)) < 0))
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    gate->needs = request->expect_needs;
    gate->needs.contents |= policy && policy->needs.contents;
    return 0;
}

static int hash_expectations(struct gate *gate, error *err)
{
    auto_bytes canonical = { 0 };
    bool is_one = json_object_array_length(gate->expects) == 1;
    canonical_write(is_one ? json_object_array_get_idx(gate->expects, 0) : gate->expects,
                    &canonical);
    if (canonical.failed)
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    fact_hash(canonical.data, canonical.size, gate->sha256);
    return 0;
}

/* What could not be looked at would be a way around it. */
static int check_kind(const struct run *run, const struct run_request *request, error *err)
{
    const struct policy *policy = run->spec.policy;
    if (policy->expect.needs.result && !run->cell && !request->is_cell)
        return fail(err, ERR_BAD_REQUEST,
                    "policy '%s' expects a value (expect.result), and only a cell has one; send "
                    "\"mode\": \"cell\" or choose another policy",
                    policy->name);
    return run->cell ? gate_allows_session(policy, err) : 0;
}

bool gate_is_wanted(const struct policy *policy, const struct run_request *request)
{
    return request->expect || (policy->expect.text[0] && !request->check_only);
}

int gate_prepare(struct run *run, const struct run_request *request, error *err)
{
    const struct policy_expect *said = &run->spec.policy->expect;
    const struct policy_expect *policy = said->text[0] ? said : NULL;
    if (!gate_is_wanted(run->spec.policy, request))
        return 0;
    if (policy && check_kind(run, request, err) < 0)
        return -1;
    struct gate *gate = run->gate = calloc(1, sizeof *gate);
    if (!gate || !(gate->place = calloc(1, sizeof *gate->place)))
        return fail(err, ERR_SYSTEM, "no memory for an expectation");
    gate->withholds = said->on_fault == ON_FAULT_WITHHOLD;
    /* No owner of an account has such a name: what a daemon has left held is nobody's. */
    (void) snprintf(gate->owner, sizeof gate->owner, "h%.15s", run->id + strlen("run_"));
    if (add_expectations(gate, policy, request, err) < 0 || hash_expectations(gate, err) < 0)
        return -1;
    return find_place(run, gate->place, err);
}

/* --- what the checker is given ------------------------------------------------------------------
 */

struct gate_files {
    struct request_file list[FIXED_FILES + ARTIFACTS_MOST];
    size_t count;
    struct bytes expected, output[2];
    char (*names)[32];
    char *contents; /* of the artifacts, one after the other */
    gate_told *told;
};

static void files_free(struct gate_files *files)
{
    if (!files)
        return;
    bytes_done(&files->expected);
    bytes_done(&files->output[0]);
    bytes_done(&files->output[1]);
    free(files->names);
    free(files->contents);
    free(files);
}

static void add_file(struct gate_files *files, const char *name, const char *data, size_t size)
{
    struct request_file *file = &files->list[files->count++];
    *file = (struct request_file){ .path = name, .has_content = true, .read_only = true };
    content_from_text(&file->content, size > 0 ? data : "", size);
}

static void add_output(const struct run *run, struct gate_files *files, unsigned index,
                       const char *name)
{
    char marker[OUTPUT_MARKER_MOST];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(&run->harvest.output[index], name, marker, parts);
    for (unsigned i = 0; i < OUTPUT_PARTS; i++)
        if (i != 1) /* the marker is our word, not the program's */
            bytes_add(&files->output[index], parts[i].data, parts[i].size);
    add_file(files, name, files->output[index].data, files->output[index].size);
}

static void write_expected(const struct run *run, struct bytes *out)
{
    const struct harvest *harvest = &run->harvest;
    const char *expect = json_object_to_json_string_ext(run->gate->expects, JSON_C_TO_STRING_PLAIN);
    json_open(out, '{');
    json_key(out, "expects");
    json_raw(out, expect ? expect : "", expect ? strlen(expect) : 0);
    json_key(out, "stdout");
    json_open(out, '{');
    json_count_field(out, "bytes", harvest->output[0].total);
    json_flag_field(out, "cut",
                    output_is_truncated(&harvest->output[0]) || harvest->output[0].starved);
    json_close(out, '}');
    json_flag_field(out, "artifacts_cut",
                    harvest->artifacts_cut || harvest->artifact_files_cut || run->files_are_lost);
    json_key(out, "artifacts");
    json_open(out, '[');
    for (size_t i = 0; i < harvest->artifact_count; i++) {
        json_open(out, '{');
        json_string_field(out, "path", harvest->artifacts[i].path);
        json_count_field(out, "bytes", harvest->artifacts[i].size);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_key(out, "skipped"); /* their names are told, too */
    json_open(out, '[');
    for (size_t i = 0; i < harvest->denials.count; i++)
        if (strcmp(harvest->denials.rows[i].layer, "artifact") == 0)
            json_string(out, harvest->denials.rows[i].target);
    json_close(out, ']');
    json_close(out, '}');
}

static int read_blob(const struct run *run, const struct artifact *artifact, char *to, error *err)
{
    struct blob_view view;
    if (blob_open(run->runs->blobs, run->harvest.owner.name, artifact->sha256, &view, err) < 0)
        return -1;
    auto_fd fd = view.fd;
    for (uint64_t at = 0; at < artifact->size;) {
        ssize_t got = pread(fd, to + at, artifact->size - at, (off_t) at);
        if (got <= 0)
            return fail(err, ERR_SYSTEM, "an artifact could not be read again");
        at += (uint64_t) got;
    }
    return 0;
}

static int add_artifacts(const struct run *run, struct gate_files *files, error *err)
{
    const struct harvest *harvest = &run->harvest;
    uint64_t all = 0, at = 0;
    if (harvest->artifact_count > ARTIFACTS_MOST)
        return fail(err, ERR_TOO_LARGE, "there are %zu artifacts, and up to %d are compared",
                    harvest->artifact_count, ARTIFACTS_MOST);
    if (!run->gate->needs.contents)
        return 0;
    for (size_t i = 0; i < harvest->artifact_count; i++)
        all += harvest->artifacts[i].size;
    if (all > CONTENTS_MOST)
        return fail(err, ERR_TOO_LARGE,
                    "the artifacts have %llu bytes, and up to %d are looked into",
                    (unsigned long long) all, CONTENTS_MOST);
    files->names = calloc(harvest->artifact_count + 1, sizeof *files->names);
    files->contents = malloc(all + 1);
    if (!files->names || !files->contents)
        return fail(err, ERR_SYSTEM, "there was no memory");
    for (size_t i = 0; i < harvest->artifact_count; i++) {
        const struct artifact *artifact = &harvest->artifacts[i];
        if (read_blob(run, artifact, files->contents + at, err) < 0)
            return -1;
        (void) snprintf(files->names[i], sizeof files->names[i], "artifact.%zu", i);
        add_file(files, files->names[i], files->contents + at, artifact->size);
        at += artifact->size;
    }
    return 0;
}

static int gather(struct run *run, struct gate_files *files, error *err)
{
    struct bytes *results = &run->harvest.results;
    add_output(run, files, 0, "stdout");
    add_output(run, files, 1, "stderr");
    write_expected(run, &files->expected);
    size_t expected = files->expected.size;
    bytes_add_text(&files->expected, "["); /* the results lie behind it: one allocation */
    bytes_add(&files->expected, results->data, results->size);
    bytes_add_text(&files->expected, "]");
    if (files->expected.failed || files->output[0].failed || files->output[1].failed)
        return fail(err, ERR_SYSTEM, "there was no memory");
    add_file(files, "expected", files->expected.data, expected);
    add_file(files, "results", files->expected.data + expected, files->expected.size - expected);
    add_file(files, "error", run->harvest.failure.data, run->harvest.failure.size);
    return add_artifacts(run, files, err);
}

/* --- the run of it ------------------------------------------------------------------------------
 */

/* What all expectations say of artifacts, counted through; NULL behind the last. */
static struct json_object *wish_at(const struct gate *gate, uint32_t index)
{
    for (size_t i = 0; i < json_object_array_length(gate->expects); i++) {
        struct json_object *list = NULL;
        if (!json_object_object_get_ex(json_object_array_get_idx(gate->expects, i), "artifacts",
                                       &list))
            continue;
        size_t count = json_object_array_length(list);
        if (index < count)
            return json_object_array_get_idx(list, index);
        index -= (uint32_t) count;
    }
    return NULL;
}

static uint32_t count_expected(const struct gate *gate)
{
    uint32_t count = 0;
    while (wish_at(gate, count))
        count++;
    return count;
}

static void finish(struct run *run)
{
    struct gate *gate = run->gate;
    gate_told *told = gate->files ? gate->files->told : NULL;
    files_free(gate->files);
    gate->files = NULL;
    gate->has_ended = true;
    if (told && !gate_hold(run, told))
        told(run);
}

static void on_answer(struct run *run, const struct aside_answer *answer)
{
    struct gate *gate = run->gate;
    const uint32_t counts[2] = { (uint32_t) run->harvest.artifact_count, count_expected(gate) };
    gate->aside = NULL;
    gate->outcome.took_ms = answer->took_ms;
    run->checks_cpu_us += answer->cpu_us;
    if (answer->failure)
        gate_give_up(&gate->outcome, answer->failure);
    else if (!gate_read_answer(answer->text, counts, &gate->outcome))
        gate_give_up(&gate->outcome, "the checker said something else than findings");
    finish(run);
}

bool gate_is_due(const struct run *run)
{
    return run->gate && !run->gate->has_begun && !run->evidence.lost && !run->evidence.cancelled;
}

void gate_begin(struct run *run, gate_told *told)
{
    static const char *const parts[] = { gate_json,    gate_schema, gate_types,
                                         gate_secrets, gate_main,   NULL };
    struct gate *gate = run->gate;
    error err;
    gate->has_begun = true;
    gate->files = calloc(1, sizeof *gate->files);
    if (!gate->files) {
        gate_give_up(&gate->outcome, "there was no memory");
        gate->has_ended = true;
        told(run);
        return;
    }
    gate->files->told = told;
    if (gather(run, gate->files, &err) == 0) {
        const struct aside_order order = { .place = gate->place,
                                           .runs_as = runs_as,
                                           .parts = parts,
                                           .files = gate->files->list,
                                           .file_count = gate->files->count,
                                           .told = on_answer };
        if (aside_begin(run, &order, &gate->aside, &err) == 0)
            return; /* on_answer() goes on */
    }
    gate_give_up(&gate->outcome, err.text);
    finish(run);
}

void gate_close(struct run *run)
{
    struct gate *gate = run->gate;
    if (gate)
        gate_hold_end(gate);
    if (!gate || gate->has_ended)
        return;
    aside_abandon(gate->aside);
    gate->aside = NULL;
    if (gate->files)
        gate->files->told = NULL;
    gate_give_up(&gate->outcome,
                 gate->has_begun ? "the run was cancelled while its output was compared"
                                 : "the run has not come to its end: there is nothing to compare");
    finish(run);
}

void gate_free(struct run *run)
{
    struct gate *gate = run->gate;
    if (!gate)
        return;
    gate_hold_end(gate);
    aside_abandon(gate->aside);
    files_free(gate->files);
    (void) json_object_put(gate->expects);
    free(gate->place);
    free(gate);
    run->gate = NULL;
}

/* --- telling ------------------------------------------------------------------------------------
 */

/* The caller's own words for what is missing, the program's for what is there. */
static const char *path_of(const struct run *run, const struct gate_finding *finding)
{
    struct json_object *wish = NULL, *name = NULL;
    if (finding->place == PLACE_ARTIFACT)
        return finding->index < run->harvest.artifact_count && !gate_holds(run)
                   ? run->harvest.artifacts[finding->index].path
                   : NULL;
    if (finding->place != PLACE_EXPECTED || !(wish = wish_at(run->gate, finding->index)) ||
        (!json_object_object_get_ex(wish, "name", &name) &&
         !json_object_object_get_ex(wish, "pattern", &name)))
        return NULL;
    return json_object_get_string(name);
}

static void write_finding(const struct run *run, const struct gate_finding *finding,
                          struct bytes *out)
{
    const char *path = path_of(run, finding);
    auto_bytes message = { 0 };
    if (path)
        bytes_print(&message, "%s", path);
    else if (finding->place == PLACE_ARTIFACTS)
        bytes_add_text(&message, "the list of artifacts");
    else
        bytes_add_text(&message, gate_place_name(finding->place));
    if (finding->line > 0)
        bytes_print(&message, " line %u", finding->line);
    bytes_print(&message, " %s%s%s", gate_rule_text(finding->rule), finding->detail[0] ? ": " : "",
                finding->detail);
    json_open(out, '{');
    json_string_field(out, "rule", gate_rule_name(finding->rule));
    json_string_field(out, "where", gate_place_name(finding->place));
    json_string_field(out, "path", path);
    json_count_field(out, "line", finding->line);
    json_string_field(out, "detail", finding->detail);
    json_string_field(out, "message", bytes_text(&message));
    json_close(out, '}');
}

void gate_write(const struct run *run, struct bytes *out)
{
    const struct gate *gate = run->gate;
    json_key(out, "gate");
    if (!gate) {
        json_null(out);
        return;
    }
    const struct gate_outcome *outcome = &gate->outcome;
    json_open(out, '{');
    json_string_field(out, "verdict", gate_verdict_name(outcome->verdict));
    json_string_field(out, "expectation", gate->sha256);
    json_key(out, "findings");
    json_open(out, '[');
    for (size_t i = 0; i < outcome->count; i++)
        write_finding(run, &outcome->findings[i], out);
    json_close(out, ']');
    json_count_field(out, "unlisted", outcome->unlisted);
    json_string_field(out, "failure", outcome->failure[0] ? outcome->failure : NULL);
    json_number_field(out, "took_ms", outcome->took_ms);
    char withheld[400];
    gate_print_withheld(run, withheld, sizeof withheld);
    json_string_field(out, "withheld", gate_has_withheld(run) ? withheld : NULL);
    json_close(out, '}');
}
