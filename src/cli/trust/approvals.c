/* approvals.c - `glovebox approvals`, `approve`, `deny`: lists what waits, and decides. */
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/approval_card.h"
#include "cli/daemon_request.h"
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct approval_arguments {
    const char *daemon, *key, *scope, *until, *reason, *state;
    bool json;
};

#define FIELD(name) offsetof(struct approval_arguments, name)

/* clang-format off */
#define COMMON \
    { "daemon", 0, "SOCKET", VALUES_FILE, "socket of the daemon; default: where glovebox run looks", store_text, FIELD(daemon) }, \
    { "key",    0, "KEY",    VALUES_NONE, "API key to decide with; default: $GLOVEBOX_API_KEY, else as the daemon's owner", store_text, FIELD(key) }, \
    { "json",   0, NULL,     VALUES_NONE, "the answer as JSON", store_switch, FIELD(json) }

static const struct option_row list_rows[] = {
    { "state",  0, "STATUS", VALUES_NONE, NULL, store_text, FIELD(state) }, /* old name */
    { "status", 0, "STATUS", VALUES_NONE, "pending (default), approved, denied, expired, used, revoked or all", store_text, FIELD(state) },
    { "reason", 0, "TEXT",   VALUES_NONE, "revoke: told to the caller that asked", store_text, FIELD(reason) },
    COMMON,
};
static const struct option_row approve_rows[] = {
    { "scope",  0, "SCOPE",  VALUES_NONE, "how far: once (default), code, session or time, as the policy allows", store_text, FIELD(scope) },
    { "until",  0, "10m",    VALUES_NONE, "how long it holds: 90s, 15m, 12h or 7d; or a moment of RFC 3339 within 30 days", store_text, FIELD(until) },
    { "reason", 0, "TEXT",   VALUES_NONE, "for the requester", store_text, FIELD(reason) },
    COMMON,
};
static const struct option_row deny_rows[] = {
    { "reason", 0, "TEXT",   VALUES_NONE, "for the requester", store_text, FIELD(reason) },
    COMMON,
};

const struct option_table approvals_option_table = {
    .verb = "approvals",
    .examples = "  glovebox approvals                 what waits\n"
                "  glovebox approvals apr_…           one of them: its code, what it asks for, what could leave\n"
                "  glovebox approvals revoke apr_…    takes one back that was not used yet\n",
    .usage = "[list|show|revoke] [OPTIONS] [ID]",
    OPTION_ROWS(list_rows),
};

const struct option_table approve_option_table = {
    .verb = "approve",
    .examples = "  glovebox approve apr_…\n"
                "  glovebox approve --scope code --until 1h apr_…\n",
    .usage = "[OPTIONS] ID",
    OPTION_ROWS(approve_rows),
};

const struct option_table deny_option_table = {
    .verb = "deny",
    .examples = "  glovebox deny --reason 'not with customer data' apr_…\n",
    .usage = "[OPTIONS] ID",
    OPTION_ROWS(deny_rows),
};
/* clang-format on */

static int connect_daemon(const struct approval_arguments *arguments, glb_client **ret_client,
                          error *err)
{
    glb_connect_options options = { .socket = arguments->daemon, .how = GLB_CONNECT_SOCKET };
    int32_t code = glb_connect(&options, sizeof options, ret_client);
    return code == GLB_OK ? 0 : fail(err, (enum error_code) code, "%s", glb_error_text());
}

static int ask(const struct approval_arguments *arguments, struct ask *ask,
               json_object **ret_answer, error *err)
{
    glb_client *client = NULL;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
    const char *key = arguments->key ? arguments->key : getenv("GLOVEBOX_API_KEY");
    ask->key = key && *key ? key : NULL;
    if (connect_daemon(arguments, &client, err) < 0)
        return -1;
    int result = ask_daemon(client, ask, ret_answer, err);
    glb_close(client);
    return result;
}

static void print_row(json_object *approval)
{
    const char *name = answer_text(approval, "asker_name");
    (void) printf("%-37s %-8s %-16s %-16s %-24s", answer_text(approval, "id"),
                  answer_text(approval, "state"), *name ? name : answer_text(approval, "asker"),
                  answer_text(approval, "policy"), answer_text(approval, "expires_at"));
    json_object *reasons = json_member(approval, "reasons");
    for (size_t i = 0; reasons && i < json_object_array_length(reasons); i++)
        (void) printf(" %s", json_object_get_string(json_object_array_get_idx(reasons, i)));
    (void) putchar('\n');
}

static void print_rows(json_object *answer)
{
    json_object *rows = json_member(answer, "approvals");
    size_t count = rows ? json_object_array_length(rows) : 0;
    if (count == 0)
        (void) puts("none; those that are decided: glovebox approvals --status all");
    else
        (void) printf("%-37s %-8s %-16s %-16s %-24s %s\n", "ID", "STATE", "ASKER", "POLICY",
                      "EXPIRES", "REASONS");
    for (size_t i = 0; i < count; i++)
        print_row(json_object_array_get_idx(rows, i));
}

/* --- ids -------------------------------------------------------------------------------------- */

enum { ID_SIZE = 37 }; /* "apr_", 32 hex digits and a zero byte */

/* Approvals of one state whose ids begin with a word; two are enough to see that it is
 * ambiguous. */
struct search {
    const char *word, *state;
    unsigned found;
    char ids[2][ID_SIZE];
};

static void compare_beginnings(struct search *search, json_object *rows)
{
    size_t count = rows ? json_object_array_length(rows) : 0;
    for (size_t i = 0; i < count && search->found < 2; i++) {
        const char *id = answer_text(json_object_array_get_idx(rows, i), "id");
        if (strncmp(id, search->word, strlen(search->word)) == 0)
            (void) snprintf(search->ids[search->found++], ID_SIZE, "%s", id);
    }
}

static int search_state(const struct approval_arguments *arguments, struct search *search,
                        error *err)
{
    char path[160], cursor[ID_SIZE] = "";
    do {
        auto_json answer = NULL;
        struct ask asked = { "GET", path, NULL, NULL };
        (void) snprintf(path, sizeof path, "/v1/approvals?limit=1000&state=%s%s%s", search->state,
                        *cursor ? "&cursor=" : "", cursor);
        if (ask(arguments, &asked, &answer, err) < 0)
            return -1;
        compare_beginnings(search, json_member(answer, "approvals"));
        (void) snprintf(cursor, sizeof cursor, "%s", answer_text(answer, "next_cursor"));
    } while (*cursor && search->found < 2);
    return 0;
}

/* Finds an id by itself or its beginning, if only one approval of that state begins so. Ids become
 * part of a URL, so only their letters are accepted. */
static int find_id(const struct approval_arguments *arguments, const char *word, const char *state,
                   char ret_id[ID_SIZE], error *err)
{
    struct search search = { .word = word, .state = state };
    if (strlen(word) >= ID_SIZE || strspn(word, "apr_0123456789bcdef") != strlen(word))
        return fail(err, ERR_BAD_REQUEST, "'%.60s' is no id of an approval; see glovebox approvals",
                    word);
    (void) snprintf(ret_id, ID_SIZE, "%s", word);
    if (strlen(word) == ID_SIZE - 1)
        return 0;
    if (search_state(arguments, &search, err) < 0)
        return -1;
    if (search.found > 1)
        return fail(err, ERR_BAD_REQUEST, "'%s' begins more than one: %s and %s; write more of it",
                    word, search.ids[0], search.ids[1]);
    if (search.found == 0)
        return fail(err, ERR_NOT_FOUND,
                    "no approval that is %s begins with '%s'; see glovebox approvals --status all",
                    state, word);
    (void) snprintf(ret_id, ID_SIZE, "%s", search.ids[0]);
    return 0;
}

/* --- the verbs -------------------------------------------------------------------------------- */

static int list(const struct approval_arguments *arguments, const char *word, error *err)
{
    char path[160], id[ID_SIZE];
    auto_json answer = NULL;
    const char *state = arguments->state ? arguments->state : "pending";
    struct ask asked = { "GET", path, NULL, NULL };
    if (strspn(state, "abcdefghijklmnopqrstuvwxyz") != strlen(state))
        return fail(err, ERR_BAD_REQUEST, "state '%.40s' does not exist", state);
    if (word && find_id(arguments, word, "pending", id, err) < 0)
        return -1;
    if (word)
        (void) snprintf(path, sizeof path, "/v1/approvals/%s", id);
    else
        (void) snprintf(path, sizeof path, "/v1/approvals?limit=1000&state=%.40s", state);
    if (ask(arguments, &asked, &answer, err) < 0)
        return -1;
    if (arguments->json)
        print_json_line(word ? answer : list_of(answer, "approvals"));
    else if (word)
        card_print(stdout, answer);
    else
        print_rows(answer);
    return 0;
}

static int fill(const struct approval_arguments *arguments, const char *decision, json_object *body,
                error *err)
{
    int64_t seconds = 0;
    if (arguments->until && option_read_span("until", arguments->until, &seconds, err) < 0)
        return -1;
    if (seconds > INT64_C(30) * 86400)
        return fail(err, ERR_BAD_REQUEST, "--until is 30 days at most, not '%.40s'",
                    arguments->until);
    (void) json_object_object_add(body, "decision", json_object_new_string(decision));
    if (arguments->scope)
        (void) json_object_object_add(body, "scope", json_object_new_string(arguments->scope));
    if (arguments->reason)
        (void) json_object_object_add(body, "reason", json_object_new_string(arguments->reason));
    if (seconds > 0)
        (void) json_object_object_add(body, "until_seconds", json_object_new_int64(seconds));
    return 0;
}

static int decide(const struct approval_arguments *arguments, const char *decision,
                  const char *word, error *err)
{
    char path[128], id[ID_SIZE];
    auto_json answer = NULL;
    auto_json body = json_object_new_object();
    struct ask asked = { "POST", path, body, NULL };
    bool is_revoked = strcmp(decision, "revoke") == 0;
    int result = find_id(arguments, word, is_revoked ? "approved" : "pending", id, err);
    (void) snprintf(path, sizeof path, "/v1/approvals/%s:decide", result == 0 ? id : "");
    if (result == 0)
        result = fill(arguments, decision, body, err);
    if (result == 0)
        result = ask(arguments, &asked, &answer, err);
    if (result == 0 && arguments->json)
        print_json_line(answer);
    else if (result == 0)
        (void) printf("%s is %s\n", id, answer_text(answer, "state"));
    return result;
}

/* `decision` is NULL for `approvals`, whose first word may be a verb. */
static int command(const struct option_table *table, const char *decision, int argc, char **argv)
{
    static const char *const verbs[] = { "list", "ls", "show", "revoke" };
    struct approval_arguments arguments = { 0 };
    const char *given[2] = { NULL, NULL };
    struct words words = { argc, argv, 1, given, decision ? 1 : 2 };
    error err = { 0 };
    int outcome = options_read_all(table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    bool has_verb = false;
    for_each(verb, verbs)
        has_verb |= !decision && given[0] && strcmp(*verb, given[0]) == 0;
    if (!has_verb && given[1])
        return complain("approvals takes no '%.60s'; see glovebox approvals --help", given[1]);
    if (has_verb && strcmp(given[0], "revoke") == 0)
        decision = "revoke";
    const char *id = given[has_verb];
    if (decision && !id)
        return complain("which one? glovebox approvals shows what waits");
    outcome = decision ? decide(&arguments, decision, id, &err) : list(&arguments, id, &err);
    return outcome < 0 ? complain_of(&err) : 0;
}

int command_approvals(int argc, char **argv)
{
    return command(&approvals_option_table, NULL, argc, argv);
}

int command_approve(int argc, char **argv)
{
    return command(&approve_option_table, "approve", argc, argv);
}

int command_deny(int argc, char **argv)
{
    return command(&deny_option_table, "deny", argc, argv);
}
