/* result_document_test.c - the names of the result contract. Doors, SDKs and receipts use them:
 * changing a name breaks clients. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/run.h"

#include <stdlib.h>
#include <string.h>

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static void list_names(struct json_object *value, const char *prefix, struct bytes *out)
{
    if (json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0) {
        char path[256];
        (void) snprintf(path, sizeof path, "%s[]", prefix);
        list_names(json_object_array_get_idx(value, 0), path, out);
    }
    if (!json_object_is_type(value, json_type_object))
        return;
    json_object_object_foreach(value, name, field)
    {
        char path[256];
        (void) snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name);
        bytes_print(out, "%s\n", path);
        list_names(field, path, out);
    }
}

/* A run in which all features are used. */
static void fill(struct run *run, struct policy *policy, struct template *template)
{
    *run = (struct run){ .id = "run_0", .kind = &run_kind_oneshot, .state = RUN_DONE };
    (void) snprintf(policy->name, sizeof policy->name, "data");
    limits_init(&policy->maximum);
    template->name = "python";
    template->digest = "sha256:0";
    run->plan.policy = policy;
    run->plan.template = template;
    limits_init(&run->plan.limits);
    collector_init(&run->collector, &run->plan.limits, policy->name, NULL);
    run->has_harvest = true;
    output_add(&run->collector.output[0], "printed\xff\n", 9);
    denials_add(&run->collector.denials, DENIAL_NO_NETWORK, "socket(AF_INET, SOCK_STREAM)",
                "no network", 2);
    run->collector.artifacts = calloc(1, sizeof *run->collector.artifacts);
    require(run->collector.artifacts, "memory");
    run->collector.artifacts[0] =
        (struct artifact){ .path = strdup("plot.png"), .size = 5, .mime = "image/png" };
    run->collector.artifact_count = run->collector.kept = 1;
    evidence_init(&run->evidence);
    run->evidence.exited = true;
    run->evidence.exit_code = -1;
    run->evidence.signal = 9;
    run->evidence.stopped_for = LIMIT_wall;
    run->evidence.hits[LIMIT_wall] = 1;
    run->verdict = outcome_judge(&run->evidence);
    run->walls = 1;
    run->degraded = 2;
    (void) fail(&run->fault, ERR_SYSTEM, "a cause");
}

static const char names[] =
    "id\nstatus\nfault\nexit_code\nsignal\n"
    "limit\nlimit.name\nlimit.granted\nlimit.unit\nlimit.used\nlimit.message\n"
    "limit_hits\nlimit_hits[].name\nlimit_hits[].count\n"
    "stdout\nstderr\n"
    "truncated\ntruncated.stdout_total_bytes\ntruncated.stderr_total_bytes\ntruncated.full_output\n"
    "text\n"
    "results\n"
    "error\nerror.name\nerror.value\nerror.traceback\nerror.frames\n"
    "artifacts\nartifacts[].path\nartifacts[].bytes\nartifacts[].sha256\nartifacts[]."
    "mime\nartifacts[].url\n"
    "denials\ndenials[].layer\ndenials[].target\ndenials[].count\ndenials[].message\n"
    "network\n"
    "checks\n"
    "gate\n"
    "usage\nusage.wall_ms\nusage.cpu_ms\nusage.memory_peak_bytes\nusage.disk_peak_bytes\n"
    "usage.processes_peak\nusage.queued_ms\nusage.start\n"
    "limits\nlimits.wall_ms\nlimits.cpu_ms\nlimits.cpus\nlimits.memory_bytes\nlimits.processes\n"
    "limits.disk_bytes\nlimits.inodes\nlimits.disk_read_rate_bytes\nlimits.disk_write_rate_bytes\n"
    "limits.open_files\nlimits.output_bytes\nlimits.artifacts_bytes\nlimits.artifact_files\n"
    "policy\npolicy.name\npolicy.digest\n"
    "template\ntemplate.name\ntemplate.digest\n"
    "isolation\nisolation.tier\nisolation.walls\nisolation.degraded\n"
    "approval\nreceipt\n";

TEST(every_field_has_its_name_and_place)
{
    static struct run run;
    static struct policy policy;
    static struct template template;
    fill(&run, &policy, &template);
    auto_bytes json = { 0 };
    result_write(&run, &json);
    struct json_object *value = json_tokener_parse(bytes_text(&json));
    require(value, "not JSON: %s", bytes_text(&json));
    auto_bytes found = { 0 };
    list_names(value, "", &found);
    expect(strcmp(bytes_text(&found), names) == 0, "the names are now:\n%s", bytes_text(&found));
    expect(strstr(bytes_text(&json), "printed\xef\xbf\xbd\\n"),
           "bytes that are no text become U+FFFD");
    (void) json_object_put(value);
    collector_done(&run.collector);
}

/* Its top-level names, a line each. */
static void list_fields(const char *json, struct bytes *out)
{
    struct json_object *value = json_tokener_parse(json);
    require(value, "not JSON: %s", json);
    json_object_object_foreach(value, name, field)
    {
        (void) field;
        bytes_print(out, "%s\n", name);
    }
    (void) json_object_put(value);
}

TEST(a_lost_run_has_the_same_fields)
{
    static struct run run;
    static struct policy policy;
    static struct template template;
    fill(&run, &policy, &template);
    auto_bytes whole = { 0 }, lost = { 0 }, fields = { 0 }, lost_fields = { 0 };
    result_write(&run, &whole);
    result_write_lost(&(struct lost_result){ .id = "run_1",
                                             .receipt = "rcpt_1",
                                             .policy = { "data", "sha256:1" },
                                             .template = { "python", "sha256:2" } },
                      &lost);
    list_fields(bytes_text(&whole), &fields);
    list_fields(bytes_text(&lost), &lost_fields);
    expect(strcmp(bytes_text(&fields), bytes_text(&lost_fields)) == 0, "%s", bytes_text(&lost));
    struct json_object *value = json_tokener_parse(bytes_text(&lost));
    static const char *const stated[][2] = {
        { "id", "\"run_1\"" },
        { "status", "\"lost\"" },
        { "receipt", "\"rcpt_1\"" },
        { "template", "{\"name\":\"python\",\"digest\":\"sha256:2\"}" },
    };
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
        const char *text = json_object_to_json_string_ext(
            json_object_object_get(value, stated[i][0]), JSON_C_TO_STRING_PLAIN);
        expect(strcmp(text, stated[i][1]) == 0, "%s is %s", stated[i][0], text);
    }
    (void) json_object_put(value);
    collector_done(&run.collector);
}

TEST(a_limit_says_what_to_ask_for)
{
    static struct run run;
    static struct policy policy;
    static struct template template;
    fill(&run, &policy, &template);
    run.plan.limits.wall = 5000;
    policy.maximum.wall = 60000;
    auto_bytes json = { 0 };
    result_write(&run, &json);
    expect(strstr(bytes_text(&json),
                  "\"execution exceeded the 5 s wall-clock limit; output so far and files in "
                  "/workspace are "
                  "kept; ask for limits.wall_ms up to 60000 or a wider policy\""),
           "%s", bytes_text(&json));
    bytes_done(&json);
    json = (struct bytes){ 0 };
    run.counters.cpu_us = 40000;
    run.started_us = 1;
    run.ended_us = 5000001;
    result_write(&run, &json);
    expect(strstr(bytes_text(&json), "it used 40 ms of processor time; "), "%s", bytes_text(&json));
    collector_done(&run.collector);
}

/* A run that needs an approval has no answer but `lost` if its receipt cannot be written. */
TEST(an_error_is_named_by_what_ended_the_run)
{
    static const struct {
        bool pending, denied, lost;
        const char *name;
    } facts[] = {
        { false, false, false, "GloveboxError" }, { true, false, false, "ApprovalNeeded" },
        { false, true, false, "Denied" },         { false, false, true, "GloveboxError" },
        { true, false, true, "GloveboxError" },   { false, true, true, "GloveboxError" }
    };
    static struct run run;
    static struct policy policy;
    static struct template template;
    for_each(fact, facts) {
        auto_bytes json = { 0 }, name = { 0 };
        fill(&run, &policy, &template);
        run.evidence.pending = fact->pending;
        run.evidence.denied = fact->denied;
        run.evidence.lost = fact->lost;
        result_write(&run, &json);
        bytes_print(&name, "\"error\":{\"name\":\"%s\"", fact->name);
        expect(strstr(bytes_text(&json), bytes_text(&name)), "%s: %s", fact->name,
               bytes_text(&json));
        collector_done(&run.collector);
    }
}

TESTS(CASE(every_field_has_its_name_and_place), CASE(a_lost_run_has_the_same_fields),
      CASE(a_limit_says_what_to_ask_for), CASE(an_error_is_named_by_what_ended_the_run))
