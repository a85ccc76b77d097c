/* policy_test.c - valid and invalid policy files, and what a policy grants. GLOVEBOX_FIXTURES names
 * tests/fixtures, GLOVEBOX_POLICIES the installed policies. */
#include "policy/policy.h"
#include "policy/policy_origins.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static char fixtures[256]; /* the directory of policy fixtures */

static void find_fixtures(void)
{
    const char *root = getenv("GLOVEBOX_FIXTURES"); /* NOLINT(concurrency-mt-unsafe): one thread */
    require(root, "GLOVEBOX_FIXTURES is not set");
    (void) snprintf(fixtures, sizeof fixtures, "%s/policies", root);
}

TEST(a_policy_is_merged_over_what_it_extends)
{
    find_fixtures();
    static struct policy base, child;
    error err = { 0 };
    require(policy_load(fixtures, "base-ok", &base, &err) == 0, "%s", err.text);
    require(policy_load(fixtures, "child-ok", &child, &err) == 0, "%s", err.text);

    expect(strcmp(base.name, "base-ok") == 0 && !base.extends[0], "names of the base");
    expect(base.limits.wall == 10000 && base.maximum.wall == 60000, "wall of the base");
    expect(base.limits.cpus == 500 && base.maximum.cpus == 2000, "cpus of the base");
    expect(base.limits.disk == 128 * MiB && base.maximum.disk == 128 * MiB,
           "what is not said stands at its default, and the maximum with it");
    expect(base.language_count == 2 && base.variable_count == 2, "lists of the base");

    expect(strcmp(child.name, "child-ok") == 0 && strcmp(child.extends, "base-ok") == 0, "names");
    expect(base.description[0] && !child.description[0], "of other languages it is not true");
    expect(strcmp(child.template, "python") == 0, "the template is inherited");
    expect(child.limits.wall == 60000 && child.maximum.wall == 60000, "wall");
    expect(child.limits.memory == 256 * MiB && child.maximum.memory == 512 * MiB, "memory");
    expect(child.limits.processes == 128 && child.maximum.processes == 128,
           "no maximum was stated, so the child is free");
    expect(policy_allows_language(&child, "python") && !policy_allows_language(&child, "bash"),
           "languages replace those that are inherited");
    expect(child.variable_count == 2 && strcmp(child.variables[0].name, "GREETING") == 0 &&
               strcmp(child.variables[0].value, "good day") == 0 &&
               strcmp(child.variables[1].value, "C.UTF-8") == 0,
           "variables are merged and sorted");
    expect(strcmp(base.digest, child.digest) != 0 && strlen(child.digest) == 71, "'%s'",
           child.digest);
}

TEST(approvals_go_no_further_than_what_is_extended)
{
    find_fixtures();
    static struct policy base, child;
    error err = { 0 };
    require(policy_load(fixtures, "asks-first", &base, &err) == 0, "%s", err.text);
    require(policy_load(fixtures, "asks-wider", &child, &err) == 0, "%s", err.text);
    expect(child.approval.when == (base.approval.when | ASKS_NETWORK), "triggers add up");
    expect(approval_scopes(&child.approval) == REACH_ONCE, "scopes are cut with the usual ones");
    expect(approval_expires_ms(&child.approval) == approval_expires_ms(&base.approval),
           "the usual time is no longer for who extends it");
    expect(child.approval.is_out_of_band, "another's decision");
}

TEST(expectations_add_up)
{
    static const char of_base[] =
        "{\"secrets\":\"forbid\",\"stdout\":{\"max_bytes\":4096,\"schema\":{\"properties\":{\"n\":{"
        "\"enum\":[1,2.5,-3e2,\"1\",true,null]}},\"type\":\"object\"}}}";
    find_fixtures();
    static struct policy base, more, same;
    static struct policy_origins origins;
    auto_text text = NULL;
    error err = { 0 };
    char whole[400];
    require(policy_load(fixtures, "expects-ok", &base, &err) == 0, "%s", err.text);
    require(policy_load(fixtures, "expects-more", &more, &err) == 0, "%s", err.text);
    require(policy_load_origins(fixtures, "expects-nothing-new", &same, &origins, &err) == 0, "%s",
            err.text);
    (void) snprintf(whole, sizeof whole, "[%s]", of_base);
    expect(strcmp(base.expect.text, whole) == 0, "%s", base.expect.text);
    expect(base.expect.needs.contents && !base.expect.needs.artifacts && !base.expect.needs.result,
           "needs of the base");
    (void) snprintf(
        whole, sizeof whole,
        "[%s,{\"artifacts\":[{\"name\":\"plot.png\",\"required\":false,\"type\":\"image/"
        "png\"}]}]",
        of_base);
    expect(strcmp(more.expect.text, whole) == 0, "%s", more.expect.text);
    expect(more.expect.on_fault == ON_FAULT_WITHHOLD && more.expect.needs.artifacts,
           "what is extended goes on");
    expect(strcmp(same.expect.text, whole) == 0 && same.expect.on_fault == ON_FAULT_WITHHOLD,
           "also through one that says nothing");
    expect(origins.expects[0].line == 4 && strstr(origins.files[origins.expects[0].file], "-ok."),
           "the line of the first");
    expect(origins.expects[1].line == 3 && strstr(origins.files[origins.expects[1].file], "-more."),
           "the line of the second");
    expect(origins.on_fault.line == 5, "the line of on_fault is %d", origins.on_fault.line);
    require(policy_render(&base, &text, &err) == 0, "%s", err.text);
    expect(strstr(text, "},\"expect\":{\"all\":[{") && strstr(text, "\"on_fault\":\"withhold\"},"),
           "%s", text);
}

/* NULL: valid */
static void expect_read(const char *name, const char *place_and_cause)
{
    char file[400];
    (void) snprintf(file, sizeof file, "%s/%s.yaml", fixtures, name);
    static struct policy policy;
    error err = { 0 };
    int result = policy_read(file, fixtures, &policy, &err);
    expect((result == 0) == !place_and_cause, "%s gave %d: %s", name, result, err.text);
    if (place_and_cause)
        expect(strstr(err.text, place_and_cause) && err.code == ERR_BAD_REQUEST,
               "%s is refused with '%s'", name, err.text);
}

TEST(a_wrong_policy_is_refused_with_its_place)
{
    find_fixtures();
    static const struct {
        const char *file;
        const char *place_and_cause;
    } facts[] = {
        /* clang-format off */
        { "widens_network",      ":3:19: methods and paths cannot be seen inside TLS; " },
        { "widens_maximum",      ":3:19: maximum.memory 2 GiB is above the maximum 1 GiB of policy base-ok; " },
        { "widens_limit",        ":3:16: limits.wall 61 s is above the maximum 1 min of policy base-ok; " },
        { "widens_to_unlimited", ":3:16: limits.cpus 0 is above the maximum 2 of policy base-ok; " },
        { "maximum_below_limit", ":3:17: maximum.wall 5 s is below limits.wall 10 s; " },
        { "circle-a",            "circle-b.yaml:2:10: a circle of policies" },
        { "extends_itself",      ":2:10: " },
        { "extends_nothing",     ":2:10: there is no policy 'does-not-exist'; " },
        { "extends_outside",     ":2:10: '../../../etc/passwd' is no name; " },
        { "unknown_key",         ":4:1: unknown key 'netwrok'; keys are name, extends, description, template, languages, limits, maximum, network, sessions, precheck, approval, expect, env" },
        { "unknown_limit",       ":5:3: no limit is named 'memroy'; limits are wall, cpu, cpus, " },
        { "wrong_type",          ":2:11: a list or a mapping where a text belongs; " },
        { "languages_as_text",   ":3:12: languages is a list; " },
        { "duplicate_key",       ":5:1: 'limits' is there twice; " },
        { "duplicate_limit",     ":4:20: 'wall' is there twice; " },
        { "bad_value",           ":5:11: limit memory cannot be '512XB'; write bytes, " },
        { "negative_value",      ":4:16: limit wall cannot be '-1'; " },
        { "out_of_bounds",       ":4:21: limit processes cannot be 0; ask for 1 to 32768" },
        { "laxer_precheck",      ":4:11: precheck.subprocess is 'warn', and the policy that this one extends says 'deny'; " },
        { "laxer_modules",       ":4:11: precheck.modules.os.path is 'allow', and the policy that this one extends says 'deny'; " },
        { "asks_for_precheck",   NULL },
        { "steers_the_loader",   ":4:7: variable LD_PRELOAD steers the loader; " },
        { "aliases",             ":2:11: an anchor" },
        { "no_template",         ":1:7: the policy has no template; " },
        { "no_languages",        ":1:7: the policy has no languages; " },
        { "no_name",             ":1:1: the policy has no name; " },
        { "key_without_value",   ":2:" },
        { "deep-1",              ":2:10: more than 8 policies extend one another; " },
        { "asks_for_approval",   NULL },
        { "base-ok",             NULL },
        { "child-ok",            NULL },
        { "deep-2",              NULL },
        /* clang-format on */
    };
    for_each(fact, facts)
        expect_read(fact->file, fact->place_and_cause);
}

TEST(a_wrong_expectation_is_refused_with_its_place)
{
    find_fixtures();
    static const struct {
        const char *file;
        const char *place_and_cause;
    } facts[] = {
        /* clang-format off */
        { "expects_less",        ":3:9: expect.on_fault is 'tell', and the policy that this one extends says 'withhold'; " },
        { "expects_unknown",     ":12:19: expect.stdout.schema/properties/b/fromat: " },
        { "expects_path",        ":7:16: expect.artifacts[1].pattern must be a path beneath /workspace, " },
        { "expects_key",         ":5:12: 'expect.on_falt' is unknown; " },
        { "expects_word",        ":4:37: on_fault is tell or withhold; " },
        { "expects_twice",       ":6:3: 'stdout' is there twice; " },
        { "expects_nothing",     ":4:9: expect is a mapping; write {" },
        { "expects_text",        ":4:30: expect.stdout.max_bytes must be a number of bytes" },
        { "expects_large",       ": expect has " },
        /* clang-format on */
    };
    for_each(fact, facts)
        expect_read(fact->file, fact->place_and_cause);
}

TEST(a_name_finds_one_file_and_no_other)
{
    find_fixtures();
    static struct policy policy;
    static const struct {
        const char *name;
        int code;
    } facts[] = {
        { "base-ok", ERR_NONE },
        { "none-such", ERR_NOT_FOUND },
        { "../policies/base-ok", ERR_BAD_REQUEST },
        { "/etc/passwd", ERR_BAD_REQUEST },
        { "", ERR_BAD_REQUEST },
        { ".", ERR_BAD_REQUEST },
        { "base-ok.yaml", ERR_BAD_REQUEST },
        { "Base-ok", ERR_BAD_REQUEST },
        { "base-ok\n", ERR_BAD_REQUEST },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ERR_BAD_REQUEST },
        { "other-name", ERR_BAD_REQUEST }, /* the file has another name in it */
    };
    for_each(fact, facts) {
        error err = { 0 };
        (void) policy_load(fixtures, fact->name, &policy, &err);
        expect(err.code == fact->code, "'%s' gave %d: %s", fact->name, err.code, err.text);
    }
    error err = { 0 };
    expect(policy_load("", "base-ok", &policy, &err) < 0 && err.code == ERR_NOT_FOUND, "no path");
    expect(policy_load(":/nowhere::", "base-ok", &policy, &err) < 0, "an empty path");
    char path[600];
    (void) snprintf(path, sizeof path, "/nowhere:%s:/dev/null", fixtures);
    expect(policy_load(path, "base-ok", &policy, &err) == 0, "a search path: %s", err.text);
    expect(policy_read("/dev/zero", "", &policy, &err) < 0 && err.code == ERR_BAD_REQUEST,
           "a device is no policy");
    expect(policy_read(fixtures, "", &policy, &err) < 0, "a directory is no policy");
    expect(policy_read("/nowhere/x.yaml", "", &policy, &err) < 0 && err.code == ERR_SYSTEM,
           "a file that is not there");
}

TEST(the_first_directory_wins)
{
    char folder[] = "/tmp/policies-XXXXXX";
    require(mkdtemp(folder), "make a folder");
    char first[64], second[64], file[96];
    (void) snprintf(first, sizeof first, "%s/a", folder);
    (void) snprintf(second, sizeof second, "%s/b", folder);
    require(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0, "make folders");
    static const struct {
        const char *folder, *name, *description;
    } files[] = { { "a", "one", "first" }, { "b", "one", "second" }, { "b", "two", "second" } };
    for_each(row, files) {
        (void) snprintf(file, sizeof file, "%s/%s/%s.yaml", folder, row->folder, row->name);
        FILE *out = fopen(file, "we");
        require(out, "write %s", file);
        (void) fprintf(out, "name: %s\ndescription: %s\ntemplate: t\nlanguages: [python]\n",
                       row->name, row->description);
        (void) fclose(out);
    }
    (void) snprintf(file, sizeof file, "%s/Not_A_Name.yaml", first);
    FILE *other = fopen(file, "we");
    require(other, "write %s", file);
    (void) fclose(other);

    char path[200];
    (void) snprintf(path, sizeof path, "%s:/nowhere:%s", first, second);
    static struct policy policy;
    error err = { 0 };
    expect(policy_load(path, "one", &policy, &err) == 0 && strcmp(policy.description, "first") == 0,
           "'%s' %s", policy.description, err.text);
    expect(policy_load(path, "two", &policy, &err) == 0, "%s", err.text);

    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    size_t count = 0;
    expect(policy_list(path, names, &count, &err) == 0 && count == 2, "%zu are listed: %s", count,
           err.text);
    expect(strcmp(names[0], "one") == 0 && strcmp(names[1], "two") == 0, "sorted, each once");
    expect(policy_list("/nowhere", names, &count, &err) == 0 && count == 0, "nothing there");

    (void) unlink(file);
    for_each(row, files) {
        (void) snprintf(file, sizeof file, "%s/%s/%s.yaml", folder, row->folder, row->name);
        (void) unlink(file);
    }
    (void) rmdir(first);
    (void) rmdir(second);
    (void) rmdir(folder);
}

TEST(a_request_may_narrow_or_ask_up_to_the_maximum)
{
    find_fixtures();
    static struct policy policy;
    error err = { 0 };
    require(policy_load(fixtures, "base-ok", &policy, &err) == 0, "%s", err.text);
    static const struct {
        enum limit_id id;
        uint64_t asked;
        int result;
        const char *text;
    } facts[] = {
        { LIMIT_wall, 1, 0, NULL },
        { LIMIT_wall, 60000, 0, NULL },
        { LIMIT_wall, 60001, -1,
          "limit wall: 60001 ms was asked, the maximum of policy base-ok is 1 min; ask for less or "
          "choose a wider policy" },
        { LIMIT_memory, GiB, 0, NULL },
        { LIMIT_memory, GiB + 1, -1, "limit memory: 1073741825 bytes was asked" },
        { LIMIT_disk, 128 * MiB, 0, NULL },
        { LIMIT_disk, 129 * MiB, -1, "limit disk: 129 MiB was asked" }, /* no maximum */
        { LIMIT_cpus, 2000, 0, NULL },
        { LIMIT_cpus, 0, -1, "limit cpus: no limit was asked" },
        { LIMIT_disk_read_rate, MiB, 0, NULL }, /* it had no limit, and may have one */
        { LIMIT_disk_read_rate, 0, 0, NULL },
        { LIMIT_output, 0, 0, NULL },
    };
    for_each(fact, facts) {
        struct limits_asked asked = { 0 };
        struct limits granted = { 0 };
        require(limits_ask(&asked, fact->id, fact->asked, &err) == 0, "%s", err.text);
        int result = policy_narrow(&policy, &asked, &granted, &err);
        expect(result == fact->result, "%s %" PRIu64 " gave %d", limit_rows[fact->id].name,
               fact->asked, result);
        if (result == 0)
            expect(limit_get(&granted, fact->id) == fact->asked, "what is granted");
        else
            expect(err.code == ERR_LIMIT && fact->text && strstr(err.text, fact->text), "'%s'",
                   err.text);
    }
    struct limits_asked nothing = { 0 };
    struct limits granted = { 0 };
    expect(policy_narrow(&policy, &nothing, &granted, &err) == 0 &&
               memcmp(&granted, &policy.limits, sizeof granted) == 0,
           "a request without limits gets the policy's");
    expect(limits_ask(&nothing, LIMIT_processes, 0, &err) < 0 && nothing.given == 0,
           "a wish out of bounds is not noted");
    struct limits_asked forged = { .given = UINT64_C(1) << LIMIT_processes };
    expect(policy_narrow(&policy, &forged, &granted, &err) < 0, "bounds are checked again");
}

TEST(the_digest_names_what_is_in_force)
{
    static const char text[] =
        "name: a\ntemplate: t\nlanguages: [python]\ndescription: 'x \"y\" \\'\n"
        "env: {A: \"1\\t2\", B: ''}\nlimits: {cpus: 1.5}\n";
    static const char same[] =
        "# other words\nlanguages:\n  - python\nenv: {B: '', A: \"1\\t2\"}\n"
        "limits: {cpus: 1.500}\ntemplate: t\ndescription: x \"y\" \\\nname: a\n";
    static struct policy one, two;
    error err = { 0 };
    struct policy_source source = { text, strlen(text), "a.yaml", "" };
    require(policy_parse(&source, &one, &err) == 0, "%s", err.text);
    source = (struct policy_source){ same, strlen(same), "b.yaml", "" };
    require(policy_parse(&source, &two, &err) == 0, "%s", err.text);
    expect(strcmp(one.digest, two.digest) == 0, "how it is written does not matter");

    auto_text json = NULL;
    require(policy_render(&one, &json, &err) == 0, "%s", err.text);
    static const char limits[] =
        "{\"artifact_files\":256,\"artifacts_bytes\":67108864,\"cpu_ms\":10000,\"cpus\":1.5,"
        "\"disk_bytes\":134217728,\"disk_read_rate_bytes\":0,\"disk_write_rate_bytes\":0,"
        "\"inodes\":16384,\"memory_bytes\":268435456,\"open_files\":1024,\"output_bytes\":1048576,"
        "\"processes\":64,\"wall_ms\":10000}";
    char wanted[1200];
    (void) snprintf(wanted, sizeof wanted,
                    "{\"description\":\"x \\\"y\\\" \\\\\",\"env\":{\"A\":\"1\\t2\",\"B\":\"\"},"
                    "\"languages\":[\"python\"],\"limits\":%s,\"maximum\":%s,\"name\":\"a\","
                    "\"network\":\"none\",\"template\":\"t\"}",
                    limits, limits);
    expect(strcmp(json, wanted) == 0, "'%s'", json);
    two.limits.wall++;
    auto_text other = NULL;
    require(policy_render(&two, &other, &err) == 0, "%s", err.text);
    expect(strcmp(json, other) != 0, "a changed limit is seen");
}

TEST(what_is_installed_is_right)
{
    const char *path = getenv("GLOVEBOX_POLICIES"); /* NOLINT(concurrency-mt-unsafe): one thread */
    require(path, "GLOVEBOX_POLICIES is not set");
    static const struct {
        const char *name, *template;
        uint64_t wall, memory, max_wall, max_memory;
    } facts[] = {
        { "minimal", "minimal", 10000, 256 * MiB, 10000, 256 * MiB },
        { "data", "python", 30000, 512 * MiB, 600000, 4 * GiB },
        { "extended", "python", 300000, 2 * GiB, 3600000, 16 * GiB },
        { "server", "python", 30000, 512 * MiB, 600000, 4 * GiB },
    };
    for_each(fact, facts) {
        static struct policy policy;
        error err = { 0 };
        int result = policy_load(path, fact->name, &policy, &err);
        expect(result == 0, "%s: %s", fact->name, err.text);
        if (result < 0)
            continue;
        expect(strcmp(policy.template, fact->template) == 0, "template of %s", fact->name);
        expect(policy.limits.wall == fact->wall && policy.maximum.wall == fact->max_wall &&
                   policy.limits.memory == fact->memory &&
                   policy.maximum.memory == fact->max_memory,
               "limits of %s", fact->name);
        expect(policy_allows_language(&policy, "python") && policy_allows_language(&policy, "bash"),
               "languages of %s", fact->name);
        for (enum limit_id id = 0; id < LIMITS; id++)
            expect(
                !limit_exceeds(id, limit_get(&policy.limits, id), limit_get(&policy.maximum, id)),
                "limit %d of %s is above its maximum", (int) id, fact->name);
    }
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    size_t count = 0;
    error err = { 0 };
    expect(policy_list(path, names, &count, &err) == 0 && count == 8, "%zu are installed", count);
}

TESTS(CASE(a_policy_is_merged_over_what_it_extends),
      CASE(approvals_go_no_further_than_what_is_extended), CASE(expectations_add_up),
      CASE(a_wrong_policy_is_refused_with_its_place),
      CASE(a_wrong_expectation_is_refused_with_its_place), CASE(a_name_finds_one_file_and_no_other),
      CASE(the_first_directory_wins), CASE(a_request_may_narrow_or_ask_up_to_the_maximum),
      CASE(the_digest_names_what_is_in_force), CASE(what_is_installed_is_right))
