/* run.c - `glovebox run` and `glovebox exec`: reads the command line, connects, runs the code,
 * prints its output and saves its files. */
#include "cli/commands.h"
#include "cli/common/policy_choice.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "cli/common/approval_wait.h"
#include "cli/common/limit_message.h"
#include "cli/common/output_check_report.h"
#include "cli/options.h"
#include "cli/run/artifacts.h"
#include "cli/run/hints.h"
#include "cli/run/run_arguments.h"
#include "cli/tty/output_filter.h"
#include "model/errors.h"
#include "supervisor/install_paths.h"
#include "json/quote.h"

#include <glovebox.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of one call of `glovebox run`. */
struct call {
    struct run_arguments arguments;
    int out;
    glb_client *client;
    glb_outcome *outcome;
    struct terminal terminals[2];
    struct hints hints;
    bool has_expired; /* no decision was made in time */
};

static glb_client *signal_target;
static volatile sig_atomic_t signal_number;

static void cancel_on_signal(int number)
{
    signal_number = number;
    if (signal_target)
        glb_cancel(signal_target);
}

static void watch_signals(glb_client *client)
{
    struct sigaction action = { .sa_handler = cancel_on_signal };
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    signal_target = client;
    for (size_t index = 0; index < 3; index++) {
        struct sigaction before;
        (void) sigaction(numbers[index], NULL, &before);
        if (before.sa_handler != SIG_IGN) /* ignored: nohup, or a background job */
            (void) sigaction(numbers[index], &action, NULL);
    }
    (void) signal(SIGPIPE, SIG_IGN); /* a closed stdout ends the run, not us */
}

/* ---- the places of policies ---- */

static bool has_daemon(const struct call *call)
{
    return call->client && !call->client->private;
}

/* Says where the policies are from: a daemon read them in its environment, a private one in
 * ours. */
static char *whose_policies(const struct call *call)
{
    auto_text places = NULL;
    char *text = NULL;
    error unused;
    if (has_daemon(call))
        (void) format_text(&text, &unused,
                           "; these are the policies of the daemon at %s, --private uses yours",
                           call->client->socket);
    else if (path_of_policies_told(call->arguments.state, &places, &unused) == 0)
        (void) format_text(&text, &unused, "; looked in %s", places);
    return text;
}

/* ---- failures, on stderr and as JSON ---- */

static int refuse(const struct call *call, const error *err)
{
    if (err->code == GLB_E_CANCELLED || signal_number != 0) {
        (void) complain("cancelled");
        return signal_number != 0 ? 128 + signal_number : EXIT_CANCELLED;
    }
    const struct error_row *row = error_row_of(err->code);
    if (call->arguments.json) {
        auto_bytes json = { 0 };
        json_text_quote(&json, err->text, strlen(err->text), JSON_DELETE_ESCAPED);
        (void) printf("{\"error\":{\"code\":\"%s\",\"message\":%s,\"fault\":\"%s\"}}\n",
                      row->json_code, json.failed ? "\"\"" : bytes_text(&json),
                      error_fault(err->code));
        (void) fflush(stdout);
    }
    bool is_of_policies = err->code == ERR_NOT_FOUND && strncmp(err->text, "no policy ", 10) == 0;
    auto_text whose = is_of_policies ? whose_policies(call) : NULL;
    (void) complain("%s%s", err->text, whose ? whose : "");
    return row->exit_status;
}

static int refuse_call(const struct call *call, int32_t code)
{
    error err = { 0 };
    (void) fail(&err, (enum error_code) code, "%s", glb_error_text());
    return refuse(call, &err);
}

/* ---- the run ---- */

static int32_t show_output(void *context, int32_t stream, const void *data, size_t length)
{
    struct call *call = context;
    struct terminal *terminal = &call->terminals[stream == GLB_STDERR];
    terminal_write(terminal, data, length);
    if (stream == GLB_STDERR)
        hints_hear(&call->hints, data, length);
    return terminal->failed != 0;
}

static const char *default_policy(const struct call *call)
{
    const struct run_arguments *arguments = &call->arguments;
    return arguments->policy ? arguments->policy : policy_by_default(arguments->state);
}

static int32_t connect_daemon(struct call *call)
{
    const struct run_arguments *arguments = &call->arguments;
    glb_connect_options options = {
        .socket = arguments->daemon,
        .state = arguments->state,
        .how = arguments->private  ? GLB_CONNECT_PRIVATE
               : arguments->daemon ? GLB_CONNECT_SOCKET
                                   : GLB_CONNECT_ANY,
        .template_name = arguments->template_name
                             ? arguments->template_name
                             : policy_template(arguments->policy, arguments->state),
        .log_fd = arguments->verbose ? STDERR_FILENO : 0,
    };
    return glb_connect(&options, sizeof options, &call->client);
}

static int32_t run_call(struct call *call)
{
    struct run_arguments *arguments = &call->arguments;
    glb_run_options options = run_arguments_options(arguments);
    options.policy = has_daemon(call) ? arguments->policy : default_policy(call);
    options.on_output = arguments->json ? NULL : show_output;
    options.context = call;
    if (arguments->verbose)
        (void) complain("policy %s%s, %s%s", options.policy ? options.policy : "by default",
                        options.policy && !arguments->policy ? " (default)" : "",
                        has_daemon(call) ? "as the daemon has it at " : "of this call",
                        has_daemon(call) ? call->client->socket : "");
    terminal_init(&call->terminals[0], STDOUT_FILENO);
    terminal_init(&call->terminals[1], STDERR_FILENO);
    int32_t code = glb_run(call->client, &options, sizeof options, &call->outcome);
    terminal_done(&call->terminals[0]);
    terminal_done(&call->terminals[1]);
    return code;
}

/* Runs the call again after a decision. */
static int32_t run_again(void *context)
{
    struct call *call = context;
    glb_outcome_free(call->outcome);
    call->outcome = NULL;
    return run_call(call);
}

/* Waits for a decision. Returns true to go on with call->outcome, false to end with *ret_status. */
static bool wait_until_decided(struct call *call, int *ret_status)
{
    error err = { 0 };
    const struct held held = { call->client, &call->outcome, call->arguments.json, run_again,
                               call };
    int result = decision_await(&held, &err);
    call->has_expired = result == DECISION_EXPIRED;
    bool is_given_up = err.code == (int32_t) GLB_E_CANCELLED && call->outcome;
    if (result < 0 && is_given_up) {
        decision_tell_given_up(call->outcome, "call");
        *ret_status = signal_number != 0 ? 128 + signal_number : EXIT_CANCELLED;
    } else if (result < 0) {
        *ret_status = refuse(call, &err);
    }
    return result >= 0;
}

/* ---- after the run ---- */

/* Prints a line for a limit or a loss of output, and a line for denied operations. */
static void tell_what_happened(const glb_outcome *outcome)
{
    glb_program_error lost;
    glb_limit_reached limit;
    glb_limit_hit hit;
    glb_denial denial;
    char option[32];
    int32_t status = glb_outcome_status(outcome);
    bool is_told = decision_tell(outcome);
    if (!is_told && status == GLB_STATUS_LOST)
        (void) complain("the sandbox was lost: %s; run it again",
                        glb_outcome_error(outcome, &lost, sizeof lost) == GLB_OK
                            ? lost.value
                            : "gloveboxd does not say why");
    else if (!is_told && glb_outcome_limit(outcome, &limit, sizeof limit) == GLB_OK)
        limit_message_print(&limit, "--", "");
    else if (!is_told && glb_outcome_limit_hit(outcome, 0, &hit, sizeof hit) == GLB_OK)
        (void) complain("limit %s was reached %" PRIu64
                        " time%s; raise it with --%s, or in the policy",
                        hit.name, hit.count, hit.count == 1 ? "" : "s",
                        limit_option(hit.name, option, sizeof option));
    size_t denials = 0;
    while (glb_outcome_denial(outcome, denials, &denial, sizeof denial) == GLB_OK)
        denials++;
    if (denials == 0)
        return;
    (void) glb_outcome_denial(outcome, 0, &denial, sizeof denial);
    char more[64] = "";
    if (denials > 1)
        (void) snprintf(more, sizeof more, " (and %zu more; --json lists them)", denials - 1);
    (void) complain("refused: %s %s: %s%s", denial.layer, denial.target, denial.message, more);
}

static bool is_degraded(const glb_outcome *outcome, const char *wall)
{
    const char *missing = NULL;
    for (size_t index = 0; glb_outcome_degraded(outcome, index, &missing) == GLB_OK; index++)
        if (strcmp(missing, wall) == 0)
            return true;
    return false;
}

static bool was_asked(const struct call *call, const char *limit)
{
    for (size_t index = 0; index < call->arguments.limit_count; index++)
        if (strcmp(call->arguments.limits[index].name, limit) == 0)
            return true;
    return false;
}

/* Is it the first time that this user is told? A file in the state folder records it; if it cannot
 * be made, the answer is always yes. */
static bool is_first_time(void)
{
    static const char name[] = "limits-are-watched";
    auto_text state = NULL;
    error err;
    if (path_of_own_state(&state, &err) < 0 || make_folder(state, 0755, &err) < 0)
        return true;
    auto_fd folder = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file >= 0 || errno != EEXIST;
}

/* Memory and processes are limited without control groups too, less exactly: src/init/usage.c. */
static void tell_what_is_watched(const struct call *call)
{
    if (!is_degraded(call->outcome, "cgroup_memory") && !is_degraded(call->outcome, "cgroup_pids"))
        return;
    if (was_asked(call, "memory") || was_asked(call, "processes") || is_first_time())
        (void) complain(
            "no control group counts memory and processes here: glovebox-init looks every "
            "20 ms and ends what is over the limit, which it may exceed for a moment; for "
            "limits that the kernel holds: systemd-run --user --scope -p Delegate=yes "
            "glovebox ..., or run as root");
}

/* Always says when a limit that was asked for could not be enforced. */
static void tell_what_was_not_held(const struct call *call)
{
    static const struct {
        const char *limit, *wall;
    } rows[] = {
        { "cpus", "cgroup_cpu" },
        { "disk_read_rate", "cgroup_io" },
        { "disk_write_rate", "cgroup_io" },
    };
    tell_what_is_watched(call);
    for_each(row, rows)
        if (was_asked(call, row->limit) && is_degraded(call->outcome, row->wall))
            (void) complain("limit %s is not enforced here (%s is missing); run as root, or see "
                            "glovebox doctor",
                            row->limit, row->wall);
    const char *missing = NULL;
    if (call->arguments.verbose)
        for (size_t index = 0; glb_outcome_degraded(call->outcome, index, &missing) == GLB_OK;
             index++)
            (void) complain("wall %s is missing here; see glovebox doctor", missing);
}

static int save_artifacts(const struct call *call)
{
    const struct run_arguments *arguments = &call->arguments;
    error err = { 0 };
    size_t written = 0;
    if (!arguments->out)
        return 0;
    struct out out = { call->out, call->client, call->outcome };
    int result = out_write(&out, &written, &err);
    if (arguments->verbose)
        (void) complain("%zu files written to %s", written, arguments->out);
    if (result < 0)
        (void) complain("%s", err.text);
    return result;
}

static int save_receipt(const struct call *call)
{
    const char *path = call->arguments.receipt;
    if (!path)
        return 0;
    auto_fd file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
    if (file < 0) {
        (void) complain("cannot write the receipt to '%s': %s", path, strerrordesc_np(errno));
        return -1;
    }
    if (glb_receipt_write(call->client, call->outcome, file) == GLB_OK)
        return 0;
    (void) complain("the receipt was not written: %s", glb_error_text());
    return -1;
}

static int finish(const struct call *call)
{
    const char *json = glb_outcome_json(call->outcome);
    if (call->arguments.json && (puts(json) == EOF || fflush(stdout) == EOF))
        return complain("cannot write the result to stdout: %s", strerrordesc_np(errno));
    int saved = save_artifacts(call);
    if (save_receipt(call) < 0)
        saved = -1;
    int status = glb_outcome_exit_status(call->outcome);
    bool is_cancelled = glb_outcome_status(call->outcome) == GLB_STATUS_CANCELLED;
    for (size_t index = 0; index < 2; index++) {
        int failed = call->terminals[index].failed;
        if (failed == EPIPE)
            return 128 + SIGPIPE; /* as if the program itself had got it: run | head */
        if (failed != 0)
            return complain("cannot write the program's output: %s; what is missing is lost",
                            strerrordesc_np(failed));
    }
    if (is_cancelled && signal_number != 0) {
        (void) complain("cancelled");
        return 128 + signal_number;
    }
    tell_what_was_not_held(call);
    if (call->has_expired)
        (void) complain(
            "the approval was not decided in time, and is denied; run it again to ask again");
    else
        tell_what_happened(call->outcome);
    hints_tell(&call->hints, &call->arguments, call->outcome);
    if (call->outcome)
        output_check_tell(call->outcome, call->arguments.verbose);
    return saved < 0 && status == 0 ? EXIT_OWN_FAILURE : status;
}

static int run_or_exec(struct call *call, int argc, char **argv, bool is_exec)
{
    error err = { 0 };
    int64_t start = now_us();
    int outcome = run_arguments_read(&call->arguments, is_exec, argc, argv, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0 || (call->arguments.out && out_open(call->arguments.out, &call->out, &err) < 0))
        return refuse(call, &err);
    int32_t code = connect_daemon(call);
    if (code != GLB_OK)
        return refuse_call(call, code);
    watch_signals(call->client);
    tell_unused_policies(call->client);
    code = run_call(call);
    int status = 0;
    if (code != GLB_OK)
        status = refuse_call(call, code);
    else if (call->arguments.no_wait || wait_until_decided(call, &status))
        status = finish(call);
    if (call->arguments.verbose)
        (void) complain("%" PRId64 " ms in all", (now_us() - start) / 1000);
    return status;
}

static int command(int argc, char **argv, bool is_exec)
{
    struct call *call = calloc(1, sizeof *call); /* the file table makes it large */
    if (!call)
        return complain("out of memory");
    call->out = -1;
    int status = run_or_exec(call, argc, argv, is_exec);
    glb_outcome_free(call->outcome);
    signal_target = NULL;
    glb_close(call->client);
    run_arguments_done(&call->arguments);
    close_fd(&call->out);
    free(call);
    return status;
}

int command_run(int argc, char **argv)
{
    return command(argc, argv, false);
}

int command_exec(int argc, char **argv)
{
    return command(argc, argv, true);
}
