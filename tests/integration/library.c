/* library.c - a program of somebody else's that uses libglovebox.so: what its header promises. */
#include <glovebox.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(fact)                                                                      \
    do {                                                                                  \
        if (!(fact)) {                                                                    \
            printf("line %d: %s does not hold: %s\n", __LINE__, #fact, glb_error_text()); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

struct seen {
    char out[64];
    int events;
    glb_client *cancel;
};

static int32_t on_output(void *context, int32_t stream, const void *data, size_t length)
{
    struct seen *seen = context;
    if (stream == GLB_STDOUT)
        strncat(seen->out, data, length);
    if (seen->cancel)
        glb_cancel(seen->cancel); /* once: a second wish means not to wait for the end */
    seen->cancel = NULL;
    return 0;
}

static int32_t on_event(void *context, const char *name, const char *json)
{
    struct seen *seen = context;
    seen->events += strcmp(name, "started") == 0 && json[0] == '{';
    return 0;
}

static void run_code(glb_client *client)
{
    struct seen seen = { 0 };
    const char *arguments[] = { "one", NULL };
    const char *environment[] = { "NAME=value", NULL };
    glb_limit limits[] = { { "wall", 5000 }, { "cpus", 500 } };
    glb_file files[] = { { .path = "in/data", .content = "bytes", .length = 5, .read_only = 1 } };
    glb_run_options options = {
        .code = "import sys, os\nprint(sys.argv[1], os.environ['NAME'], open('in/data').read(), "
                "input())\n"
                "open('made', 'w').write('artifact')",
        .arguments = arguments,
        .environment = environment,
        .limits = limits,
        .limit_count = 2,
        .files = files,
        .file_count = 1,
        .file_size = sizeof *files,
        .policy = "minimal",
        .input = "typed\n",
        .input_length = 6,
        .on_output = on_output,
        .on_event = on_event,
        .context = &seen,
    };
    glb_outcome *outcome = NULL;
    EXPECT(glb_run(client, &options, sizeof options, &outcome) == GLB_OK);
    EXPECT(glb_outcome_status(outcome) == GLB_STATUS_OK && glb_outcome_exit_code(outcome) == 0);
    EXPECT(strcmp(seen.out, "one value bytes typed\n") == 0 && seen.events == 1);
    const char *text = NULL;
    size_t length = 0;
    EXPECT(glb_outcome_output(outcome, GLB_STDOUT, &text, &length) == GLB_OK);
    EXPECT(length == strlen(seen.out) && strcmp(text, seen.out) == 0);

    glb_artifact artifact;
    EXPECT(glb_outcome_artifact(outcome, 0, &artifact, sizeof artifact) == GLB_OK);
    EXPECT(strcmp(artifact.path, "made") == 0 && artifact.bytes == 8);
    EXPECT(glb_outcome_artifact(outcome, 1, &artifact, sizeof artifact) == GLB_E_NOT_FOUND);
    FILE *file = tmpfile();
    char content[16] = "";
    EXPECT(file && glb_artifact_write(client, outcome, 0, fileno(file)) == GLB_OK);
    rewind(file);
    EXPECT(fread(content, 1, sizeof content - 1, file) == 8 && strcmp(content, "artifact") == 0);
    fclose(file);
    EXPECT(strstr(glb_outcome_json(outcome), "\"status\":\"ok\""));
    glb_outcome_free(outcome);
}

static void run_into_a_limit(glb_client *client)
{
    glb_limit limits[] = { { "wall", 300 } };
    glb_run_options options = {
        .code = "while True: pass", .policy = "minimal", .limits = limits, .limit_count = 1
    };
    glb_outcome *outcome = NULL;
    glb_limit_reached limit;
    EXPECT(glb_run(client, &options, sizeof options, &outcome) == GLB_OK);
    EXPECT(glb_outcome_status(outcome) == GLB_STATUS_LIMIT &&
           glb_outcome_exit_status(outcome) == 124);
    EXPECT(glb_outcome_limit(outcome, &limit, sizeof limit) == GLB_OK);
    EXPECT(strcmp(limit.name, "wall") == 0);
    EXPECT(limit.granted == 300);
    EXPECT(limit.used >= 300);
    glb_outcome_free(outcome);
}

static void cancel_a_run(glb_client *client)
{
    struct seen seen = { .cancel = client };
    glb_run_options options = { .code = "print('up', flush=True)\nwhile True: pass",
                                .policy = "minimal",
                                .on_output = on_output,
                                .context = &seen };
    glb_outcome *outcome = NULL;
    EXPECT(glb_run(client, &options, sizeof options, &outcome) == GLB_OK);
    EXPECT(glb_outcome_status(outcome) == GLB_STATUS_CANCELLED);
    glb_outcome_free(outcome);
}

static void be_refused(glb_client *client)
{
    glb_outcome *outcome = NULL;
    glb_run_options none = { 0 };
    EXPECT(glb_run(client, &none, sizeof none, &outcome) == GLB_E_BAD_REQUEST);
    glb_run_options nobody = { .code = "1", .policy = "nobody" };
    EXPECT(glb_run(client, &nobody, sizeof nobody, &outcome) == GLB_E_NOT_FOUND);
    EXPECT(strstr(glb_error_text(), "nobody") && strchr(glb_error_text(), ';'));
    glb_limit limits[] = { { "wal", 1 } };
    glb_run_options slip = { .code = "1", .limits = limits, .limit_count = 1 };
    EXPECT(glb_run(client, &slip, sizeof slip, &outcome) == GLB_E_LIMIT);
}

/* A caller that was built against a later header: what it leaves zero is fine, what it sets is not.
 */
static void be_of_a_later_version(glb_client *client)
{
    struct {
        glb_run_options known;
        long later;
    } options = { .known = { .code = "print(1)", .policy = "minimal" } };
    glb_outcome *outcome = NULL;
    EXPECT(glb_run(client, &options.known, sizeof options, &outcome) == GLB_OK);
    glb_outcome_free(outcome);
    options.later = 1;
    EXPECT(glb_run(client, &options.known, sizeof options, &outcome) == GLB_E_BAD_REQUEST);
    /* And one that was built against an earlier, shorter one. */
    EXPECT(glb_run(client, &options.known, offsetof(glb_run_options, limits), &outcome) == GLB_OK);
    glb_outcome_free(outcome);
}

/* The text behind "id":" of an answer. */
static void read_id(const char *json, char id[64])
{
    const char *at = strstr(json, "\"id\":\"");
    EXPECT(at && sscanf(at + 6, "%63[a-z0-9_]", id) == 1);
}

static void branch_a_session(glb_client *client)
{
    char parent[64], branch[64];
    char *json = NULL;
    const char *metadata[] = { "try=1", NULL };
    struct {
        glb_branch_options known;
        long later;
    } overrides = { .known = { .metadata = metadata, .idle_ms = 50000, .lifetime_ms = 100000 } };
    glb_session_options options = { .policy = "minimal" };
    EXPECT(glb_session_new(client, &options, sizeof options, &json) == GLB_OK);
    read_id(json, parent);
    glb_text_free(json);
    glb_cell_options cell = { .code = "x = 42" };
    glb_outcome *outcome = NULL;
    EXPECT(glb_session_run(client, parent, &cell, sizeof cell, &outcome) == GLB_OK);
    EXPECT(glb_outcome_status(outcome) == GLB_STATUS_OK);
    glb_outcome_free(outcome);
    EXPECT(glb_session_branch_with(client, parent, &overrides.known, sizeof overrides, &json) ==
           GLB_OK);
    EXPECT(strstr(json, "\"metadata\":{\"try\":\"1\"}") && strstr(json, "\"idle_seconds\":50.000"));
    EXPECT(strstr(json, parent));
    read_id(json, branch);
    glb_text_free(json);
    EXPECT(glb_session_touch(client, branch, &json) == GLB_OK && strstr(json, branch));
    glb_text_free(json);
    cell.code = "print(x)";
    EXPECT(glb_session_run(client, branch, &cell, sizeof cell, &outcome) == GLB_OK);
    const char *text = NULL;
    size_t length = 0;
    EXPECT(glb_outcome_output(outcome, GLB_STDOUT, &text, &length) == GLB_OK);
    EXPECT(strcmp(text, "42\n") == 0);
    glb_outcome_free(outcome);
    EXPECT(glb_session_kill(client, branch, NULL) == GLB_OK);
    overrides.later = 1;
    EXPECT(glb_session_branch_with(client, parent, &overrides.known, sizeof overrides, &json) ==
           GLB_E_BAD_REQUEST);
    overrides.known.checkpoint = "none";
    EXPECT(glb_session_branch_with(client, parent, &overrides.known, sizeof overrides.known,
                                   &json) == GLB_E_NOT_FOUND);
    EXPECT(glb_session_branch_with(client, parent, NULL, 0, &json) == GLB_OK);
    read_id(json, branch);
    glb_text_free(json);
    EXPECT(glb_session_kill(client, branch, NULL) == GLB_OK);
    EXPECT(glb_session_kill(client, parent, NULL) == GLB_OK);
    EXPECT(glb_session_touch(client, parent, NULL) == GLB_E_CONFLICT);
}

int main(int argc, char **argv)
{
    glb_client *client = NULL;
    glb_connect_options options = { .how = GLB_CONNECT_PRIVATE,
                                    .state = argc > 1 ? argv[1] : NULL };
    EXPECT(glb_version()[0] != '\0');
    EXPECT(glb_connect(&options, sizeof options, &client) == GLB_OK);
    run_code(client);
    run_into_a_limit(client);
    be_refused(client);
    be_of_a_later_version(client);
    cancel_a_run(client);
    glb_close(client);
    glb_connect_options served = { .how = GLB_CONNECT_SOCKET, .socket = argc > 2 ? argv[2] : NULL };
    EXPECT(glb_connect(&served, sizeof served, &client) == GLB_OK);
    branch_a_session(client);
    glb_close(client);
    glb_close(NULL);
    glb_connect_options nowhere = { .how = GLB_CONNECT_SOCKET, .socket = "/nonexistent/socket" };
    EXPECT(glb_connect(&nowhere, sizeof nowhere, &client) == GLB_E_UNAVAILABLE);
    puts("all that the header promises holds");
    return 0;
}
