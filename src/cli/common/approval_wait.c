/* approval_wait.c - uses /dev/tty, since stdin and stdout belong to the program. */
#include "cli/common/approval_wait.h"

#include "base/clock.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/common/approval_card.h"
#include "cli/daemon_request.h"
#include "client/client.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Does it wait for a decision, and is there a user to ask? With --json there is none. */
static bool decide_is_wanted(const glb_outcome *outcome, bool is_for_programs)
{
    return glb_outcome_status(outcome) == GLB_STATUS_PENDING_APPROVAL && !is_for_programs &&
           isatty(STDERR_FILENO);
}

/* Gives  the approval, with all that its card shows. */
static int fetch(glb_client *client, const glb_outcome *outcome, json_object **ret, error *err)
{
    char path[128];
    auto_json result = json_tokener_parse(glb_outcome_json(outcome));
    (void) snprintf(path, sizeof path, "/v1/approvals/%.60s", answer_text(result, "approval"));
    const struct ask ask = { "GET", path, NULL, NULL };
    return ask_daemon(client, &ask, ret, err);
}

static bool allows(json_object *approval, const char *scope)
{
    json_object *scopes = json_member(approval, "scopes");
    for (size_t i = 0; scopes && i < json_object_array_length(scopes); i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(scopes, i)), scope) == 0)
            return true;
    return false;
}

/* How long an approval for the same request is valid: as long as this one could wait. */
static void write_always(json_object *approval, char *text, size_t size)
{
    int64_t minutes = (timestamp_read(answer_text(approval, "expires_at")) -
                       timestamp_read(answer_text(approval, "asked_at"))) /
                      60000;
    bool are_hours = minutes >= 120;
    (void) snprintf(text, size, "; [a]lways this very request, for %" PRId64 " %s",
                    are_hours     ? minutes / 60
                    : minutes > 1 ? minutes
                                  : 1,
                    are_hours ? "h" : "min");
}

/* Reads the answer: a scope, "" for no, NULL for none: then it goes on waiting. */
static const char *hear(FILE *terminal, json_object *approval)
{
    char line[16];
    char always[64] = "";
    bool may_repeat = allows(approval, "code");
    if (may_repeat)
        write_always(approval, always, sizeof always);
    (void) tcflush(fileno(terminal), TCIFLUSH); /* input from before the question does not count */
    (void) fprintf(terminal, "\nLet this run? [y]es, once%s, [n]o: ", always);
    (void) fflush(terminal);
    if (!fgets(line, sizeof line, terminal))
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "y") == 0 || strcmp(line, "yes") == 0)
        return "once";
    return may_repeat && strcmp(line, "a") == 0 ? "code" : "";
}

static int decide(glb_client *client, const char *id, const char *scope, error *err)
{
    char path[128];
    auto_json answer = NULL;
    auto_json body = json_object_new_object();
    member_set_text(body, "decision", *scope ? "approve" : "deny");
    if (*scope)
        member_set_text(body, "scope", scope);
    else
        member_set_text(body, "reason", "denied at the terminal");
    (void) snprintf(path, sizeof path, "/v1/approvals/%.60s:decide", id);
    const struct ask ask = { "POST", path, body, NULL };
    return ask_daemon(client, &ask, &answer, err);
}

static void close_file(FILE **file)
{
    if (*file)
        (void) fclose(*file);
}

/* Shows the card on the terminal and sends the answer to the daemon. Returns 1 if decided. */
static bool decide_at_terminal(glb_client *client, const glb_outcome *outcome)
{
    __attribute__((cleanup(close_file))) FILE *terminal = fopen("/dev/tty", "r+e");
    auto_json approval = NULL;
    error err = { 0 };
    if (!terminal)
        return false;
    int result = fetch(client, outcome, &approval, &err);
    bool is_ours = result == 0 && strcmp(answer_text(approval, "by"), "terminal") == 0;
    const char *scope = NULL;
    if (is_ours) {
        card_print(terminal, approval);
        scope = hear(terminal, approval);
    }
    if (scope)
        result = decide(client, answer_text(approval, "id"), scope, &err);
    if (result < 0)
        (void) complain_of(&err);
    return result == 0 && scope;
}

enum { WAIT_S = 60, RETRIES = 20, RETRY_MS = 500 };

/* False for a run without a daemon. */
static bool decision_can_come(const glb_client *client, const glb_outcome *outcome)
{
    return glb_outcome_status(outcome) == GLB_STATUS_PENDING_APPROVAL && !client->private;
}

/* Requests of the daemon's owner belong to no tenant. */
static const char *who_decides(json_object *approval)
{
    bool is_by_others = strcmp(answer_text(approval, "by"), "out_of_band") == 0;
    if (strcmp(answer_text(approval, "asker"), "owner") != 0)
        return is_by_others ? "another key with scope approve"
                            : "the owner of the daemon, or a key with scope approve";
    return is_by_others ? "a key with the scopes approve and admin (glovebox key create --name N "
                          "--scope approve,admin), in GLOVEBOX_API_KEY"
                        : "the owner of the daemon, or a key with the scopes approve and admin";
}

static void tell_what_to_do(json_object *approval)
{
    const char *id = answer_text(approval, "id");
    int64_t left_s = (timestamp_read(answer_text(approval, "expires_at")) - wall_clock_ms()) / 1000;
    (void) complain("policy %s asks a person first; waiting %" PRId64
                    " s at most for %s: glovebox approve %s (or deny)",
                    answer_text(approval, "policy"), left_s > 0 ? left_s : 0, who_decides(approval),
                    id);
}

/* One long poll. If the daemon ends meanwhile, the request is kept. */
static int look(glb_client *client, const char *path, json_object **ret_approval, error *err)
{
    const struct ask ask = { "GET", path, NULL, NULL };
    for (unsigned tries = 0;; tries++) {
        if (ask_daemon(client, &ask, ret_approval, err) == 0)
            return 0;
        bool is_away = err->code == ERR_SYSTEM || err->code == ERR_UNAVAILABLE;
        if (!is_away || tries == RETRIES)
            return -1;
        (void) poll(NULL, 0, RETRY_MS);
    }
}

static int wait_for_decision(glb_client *client, const glb_outcome *outcome, error *err)
{
    auto_json approval = NULL;
    char path[160], state[16] = "pending";
    if (fetch(client, outcome, &approval, err) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/v1/approvals/%.60s?wait=%d", answer_text(approval, "id"),
                    WAIT_S);
    (void) snprintf(state, sizeof state, "%s", answer_text(approval, "state"));
    if (strcmp(state, "pending") == 0)
        tell_what_to_do(approval);
    while (strcmp(state, "pending") == 0) {
        (void) json_object_put(approval);
        approval = NULL;
        if (look(client, path, &approval, err) < 0)
            return -1;
        (void) snprintf(state, sizeof state, "%s", answer_text(approval, "state"));
    }
    return strcmp(state, "expired") == 0 ? DECISION_EXPIRED : DECISION_CAME;
}

int decision_await(const struct held *held, error *err)
{
    int32_t code = GLB_OK;
    if (decide_is_wanted(*held->outcome, held->is_for_programs) &&
        decide_at_terminal(held->client, *held->outcome))
        code = held->again(held->context);
    while (code == GLB_OK && decision_can_come(held->client, *held->outcome)) {
        int result = wait_for_decision(held->client, *held->outcome, err);
        client_forget_cancels(held->client);
        if (result != DECISION_CAME)
            return result;
        code = held->again(held->context);
    }
    return code == GLB_OK ? DECISION_CAME
                          : fail(err, (enum error_code) code, "%s", glb_error_text());
}

void decision_tell_given_up(const glb_outcome *outcome, const char *what)
{
    auto_json result = json_tokener_parse(glb_outcome_json(outcome));
    const char *id = answer_text(result, "approval");
    (void) complain(
        "cancelled; %s waits on and can still be decided on: once approved, the same %s "
        "runs; glovebox deny %s ends it",
        id, what, id);
}

bool decision_tell(const glb_outcome *outcome)
{
    glb_program_error why;
    int32_t status = glb_outcome_status(outcome);
    bool is_held = status == GLB_STATUS_PENDING_APPROVAL || status == GLB_STATUS_DENIED;
    if (!is_held || glb_outcome_error(outcome, &why, sizeof why) != GLB_OK)
        return false;
    (void) complain("%s", why.value);
    return true;
}
