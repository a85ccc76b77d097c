/* net_view.c - prints rules and connections, one a line. Names from sandboxes are filtered for the
 * terminal. */
#include "cli/operate/net.h"

#include "base/timestamp.h"
#include "json/member.h"

#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "cli/tty/output_filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AMOUNT_SIZE = 24, LINE_SIZE = 2048 };

static const char *or_dash(const char *text)
{
    return text && *text ? text : "-";
}

/* "1.5 MiB". */
static void write_amount(int64_t bytes, char text[AMOUNT_SIZE])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double amount = (double) bytes;
    unsigned unit = 0;
    for (; amount >= 1024 && unit < 4; unit++)
        amount /= 1024;
    (void) snprintf(text, AMOUNT_SIZE, "%.*f %s", unit == 0 ? 0 : 1, amount, units[unit]);
}

static const char *time_of_day(const char *moment)
{
    const char *day = strchr(moment, 'T');
    return day ? day + 1 : moment;
}

static void put_line(const char *line)
{
    static struct terminal terminal;
    static bool is_open;
    if (!is_open)
        terminal_init(&terminal, STDOUT_FILENO);
    is_open = true;
    char shown[4 * LINE_SIZE];
    size_t used = line_add_harmless(shown, 0, sizeof shown - 1, line);
    shown[used++] = '\n';
    (void) fflush(stdout);
    terminal_write(&terminal, shown, used);
}

struct tally {
    size_t rules, unused;
};

static bool has_unused(json_object *rules)
{
    for (size_t i = 0; rules && i < json_object_array_length(rules); i++)
        if (answer_text(json_object_array_get_idx(rules, i), "last_used_at")[0] == '\0')
            return true;
    return false;
}

static void print_rule(json_object *rule, bool only_unused, struct tally *tally)
{
    char sent[AMOUNT_SIZE];
    char received[AMOUNT_SIZE];
    const char *last_used = answer_text(rule, "last_used_at");
    const char *set = answer_text(rule, "set");
    tally->rules++;
    tally->unused += !*last_used;
    if (only_unused && *last_used)
        return;
    write_amount(member_number(rule, "sent"), sent);
    write_amount(member_number(rule, "received"), received);
    (void) printf("%11" PRId64 " %8" PRId64 " %10s %10s  %-24s  %s%s%s%s\n",
                  member_number(rule, "connections"), member_number(rule, "refused"), sent,
                  received, *last_used ? last_used : "never", answer_text(rule, "rule"),
                  set && *set ? " (set " : "", set && *set ? set : "", set && *set ? ")" : "");
}

void net_print_rules(json_object *answer, bool only_unused)
{
    json_object *policies = json_member(answer, "policies");
    size_t count = policies ? json_object_array_length(policies) : 0;
    struct tally tally = { 0 };
    for (size_t i = 0; i < count; i++) {
        json_object *policy = json_object_array_get_idx(policies, i);
        json_object *rules = json_member(policy, "rules");
        int64_t refused = member_number(policy, "refused");
        if (only_unused && !has_unused(rules)) {
            tally.rules += rules ? json_object_array_length(rules) : 0;
            continue;
        }
        (void) printf("policy %s: %" PRId64 " %s refused, since no rule allows %s\n",
                      answer_text(policy, "name"), refused,
                      refused == 1 ? "connection was" : "connections were",
                      refused == 1 ? "it" : "them");
        (void) printf("%11s %8s %10s %10s  %-24s  %s\n", "CONNECTIONS", "REFUSED", "SENT",
                      "RECEIVED", "LAST USED", "RULE");
        for (size_t k = 0; rules && k < json_object_array_length(rules); k++)
            print_rule(json_object_array_get_idx(rules, k), only_unused, &tally);
        (void) putchar('\n');
    }
    if (count == 0)
        (void) puts("no policy of this daemon lets anything out");
    else
        (void) printf(
            "%zu of %zu rules were not used since %s%s\n", tally.unused, tally.rules,
            answer_text(answer, "started_at"),
            tally.unused > 0 ? "; a rule that is not used is better removed from its policy" : "");
}

/* "GET api.example.org:80/repos/x". */
static void write_place(json_object *event, char *text, size_t size)
{
    const char *method = answer_text(event, "method");
    const char *path = answer_text(event, "path");
    if (method && strcmp(method, "CONNECT") == 0)
        path = NULL; /* a tunnel has no path */
    (void) snprintf(text, size, "%s%s%s:%" PRId64 "%s", method ? method : "",
                    method && *method ? " " : "", or_dash(answer_text(event, "host")),
                    member_number(event, "port"), path ? path : "");
}

static void write_end(json_object *event, char *text, size_t size)
{
    char sent[AMOUNT_SIZE];
    char received[AMOUNT_SIZE];
    char status[16] = "";
    const char *reason = answer_text(event, "reason");
    write_amount(member_number(event, "sent"), sent);
    write_amount(member_number(event, "received"), received);
    if (member_number(event, "status") > 0)
        (void) snprintf(status, sizeof status, "%" PRId64 ", ", member_number(event, "status"));
    (void) snprintf(text, size, "%s%s up, %s down, %" PRId64 " ms%s%s", status, sent, received,
                    member_number(event, "took_ms"), reason && *reason ? ": " : "",
                    reason && *reason ? reason : "");
}

void net_print_event(json_object *event)
{
    char line[LINE_SIZE];
    char place[LINE_SIZE / 2];
    char more[LINE_SIZE / 4];
    char moment[TIMESTAMP_SIZE];
    const char *kind = or_dash(answer_text(event, "event"));
    const char *rule = answer_text(event, "rule");
    int64_t at_ms = timestamp_read(answer_text(event, "started_at"));
    if (strcmp(kind, "begun") != 0)
        at_ms += member_number(event, "took_ms");
    write_place(event, place, sizeof place);
    if (strcmp(kind, "ended") == 0)
        write_end(event, more, sizeof more);
    else if (strcmp(kind, "refused") == 0)
        (void) snprintf(more, sizeof more, "%s", or_dash(answer_text(event, "reason")));
    else
        (void) snprintf(more, sizeof more, "to %s by rule %s",
                        or_dash(answer_text(event, "address")), or_dash(rule));
    (void) snprintf(line, sizeof line, "%s %-7s %s %s  %s  %s",
                    time_of_day(timestamp_write(at_ms, moment)), kind,
                    or_dash(answer_text(event, "source")), or_dash(answer_text(event, "policy")),
                    place, more);
    put_line(line);
}

void net_print_missed(json_object *event)
{
    (void) fprintf(stderr,
                   "glovebox: up to %" PRId64 " connections came faster than they were read\n",
                   member_number(event, "at_most"));
}
