/* doctor.c - `glovebox doctor`: tries each wall, and prints for each that fails the cause and the
 * fix. Exit status 0: full strength; 1: something is weaker; 2: no sandbox can be built. */
#include "cli/operate/doctor.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/operate/doctor_report.h"
#include "json/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIAL_SECONDS = 10 };

/* All checks, in the order in which one depends on another. */
/* clang-format off */
static const struct check {
    const char *name;
    const char *text;
    void (*look)(struct finding *);
} checks[] = {
    { "programs",           "the parts of glovebox find each other",          check_programs            },
    { "kernel",             "Linux 5.15 or newer",                            check_kernel              },
    { "privilege",          "root's spawner",                                 check_privilege           },
    { "user_namespaces",    "own user namespace",                             check_user_namespaces     },
    { "id_block",           "own host user id for each sandbox",              check_id_block            },
    { "mount_namespace",    "own root, pivot_root, bounded file systems",     check_mounts              },
    { "pid_namespace",      "own process ids, own /proc",                     check_process_ids         },
    { "network_namespace",  "own network without any interface that is up",   check_network             },
    { "ipc_namespace",      "own System V IPC and message queues",            check_ipc                 },
    { "uts_namespace",      "own host name",                                  check_host_name           },
    { "cgroup_namespace",   "own view of control groups",                     check_group_view          },
    { "seccomp",            "system calls by allow-list",                     check_seccomp             },
    { "seccomp_listener",   "refused system calls are reported",              check_refusals            },
    { "landlock",           "files by allow-list, a second time",             check_landlock            },
    { "cgroup_memory",      "memory limit",                                   check_group_memory        },
    { "cgroup_pids",        "process limit",                                  check_group_pids          },
    { "cgroup_cpu",         "processor share and accounting",                 check_group_cpu           },
    { "cgroup_io",          "disk rate limit",                                check_group_io            },
    { "resource_capability","oom score that sandboxes cannot lower",          check_resource_capability },
    { "core_pattern",       "no host program handles crashes in sandboxes",   check_core_pattern        },
    { "file_systems",       "erofs and overlay for template images",          check_file_systems        },
    { "state",              "a place for templates, with space",              check_state               },
    { "templates",          "at least one template",                          check_templates           },
};
/* clang-format on */

static const char *const health_names[HEALTHS] = { "ok", "degraded", "missing" };

static const char *const verdicts[HEALTHS] = {
    "glovebox works here at full strength.",
    "glovebox works here, weaker than it could be; what is degraded is listed in each result.",
    "glovebox cannot build sandboxes here.",
};

void found_ok(struct finding *finding, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void) vsnprintf(finding->cause, sizeof finding->cause, format, values);
    va_end(values);
    finding->health = HEALTH_OK;
}

void found_weak(struct finding *finding, enum health health, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void) vsnprintf(finding->cause, sizeof finding->cause, format, values);
    va_end(values);
    finding->health = health;
}

void suggest(struct finding *finding, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void) vsnprintf(finding->fix, sizeof finding->fix, format, values);
    va_end(values);
}

static _Noreturn void run_trial(int (*trial)(error *err), int report)
{
    error err = { 0 };
    (void) alarm(TRIAL_SECONDS);
    int result = trial(&err);
    if (result == 0)
        err.code = ERR_NONE;
    _exit(write(report, &err, sizeof err) == (ssize_t) sizeof err ? 0 : 1);
}

int try_in_child(int (*trial)(error *err), error *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    pid_t child = fork();
    if (child == 0) {
        (void) close(report[0]);
        run_trial(trial, report[1]);
    }
    int forked = errno;
    (void) close(report[1]);
    ssize_t got = child < 0 ? -1 : read(report[0], err, sizeof *err);
    (void) close(report[0]);
    if (child < 0) {
        errno = forked;
        return fail_os(err, "start a child");
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (got == (ssize_t) sizeof *err)
        return err->code == ERR_NONE ? 0 : -1;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return fail(err, ERR_TIMEOUT, "no answer in %d s", TRIAL_SECONDS);
    return fail(err, ERR_INTERNAL, "the trial was killed by signal %d",
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void print_json(FILE *out, const struct finding *findings, enum health worst)
{
    auto_bytes json = json_begin('{');
    json_string_field(&json, "health", health_names[worst]);
    json_open_field(&json, "checks", '[');
    for_each(check, checks) {
        const struct finding *finding = &findings[check - checks];
        json_open(&json, '{');
        json_string_field(&json, "name", check->name);
        json_string_field(&json, "health", health_names[finding->health]);
        json_string_field(&json, "text", check->text);
        json_string_field(&json, "cause", finding->cause);
        json_string_field(&json, "fix", finding->fix);
        json_close(&json, '}');
    }
    json_close_all(&json, "]}");
    (void) fprintf(out, "%s\n", bytes_text(&json));
}

/* After installation all walls may stand though no template is built yet. */
static const char *verdict(const struct finding *findings, enum health worst)
{
    size_t missing = 0;
    bool is_template = false;
    for_each(check, checks) {
        if (findings[check - checks].health != HEALTH_MISSING)
            continue;
        missing++;
        is_template = strcmp(check->name, "templates") == 0;
    }
    return missing == 1 && is_template
               ? "glovebox can build sandboxes here; what is missing is a template for them."
               : verdicts[worst];
}

static void print_text(const struct finding *findings, enum health worst)
{
    static const char *const colours[HEALTHS] = { "\033[32m", "\033[33m", "\033[31m" };
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    bool coloured = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    for_each(check, checks) {
        const struct finding *finding = &findings[check - checks];
        (void) printf("%s%-8s%s  %-19s  %s", coloured ? colours[finding->health] : "",
                      health_names[finding->health], coloured ? "\033[0m" : "", check->name,
                      check->text);
        if (finding->health == HEALTH_OK)
            (void) printf(finding->cause[0] ? " (%s)\n" : "%s\n", finding->cause);
        else
            (void) printf("\n%10scause: %s\n%10sfix:   %s\n", "", finding->cause, "", finding->fix);
    }
    (void) printf("\n%s\n", verdict(findings, worst));
}

static void keep_report(const struct finding *findings, enum health worst)
{
    auto_text text = NULL;
    size_t size = 0;
    FILE *report = open_memstream(&text, &size);
    if (!report)
        return;
    print_json(report, findings, worst);
    if (fclose(report) == 0)
        self_test_keep(text, size);
}

int command_doctor(int argc, char **argv)
{
    bool json = false;
    for (int index = 1; index < argc; index++) {
        if (strcmp(argv[index], "--help") == 0 || strcmp(argv[index], "-h") == 0) {
            (void) puts("  glovebox doctor            try each wall, say how to fix what fails\n"
                        "  glovebox doctor --json     the same for programs\n"
                        "\n"
                        "Exit status: 0 full strength, 1 something is weaker, 2 nothing can run.");
            return 0;
        }
        if (strcmp(argv[index], "--json") == 0)
            json = true;
        else
            return complain("doctor takes no argument '%s'; try glovebox doctor", argv[index]);
    }

    struct finding findings[COUNT_OF(checks)] = { 0 };
    enum health worst = HEALTH_OK;
    for_each(check, checks) {
        struct finding *finding = &findings[check - checks];
        check->look(finding);
        if (finding->health > worst)
            worst = finding->health;
    }
    keep_report(findings, worst);
    if (json)
        print_json(stdout, findings, worst);
    else
        print_text(findings, worst);
    return (int) worst;
}
