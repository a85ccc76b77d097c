/* session.c - `glovebox session`: sandboxes that are kept between runs, by nothing but libglovebox.
 */
#include "cli/session.h"

#include "base/table.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "client/launch.h"
#include "model/limits.h"

#include <json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct session_arguments, name)

/* --- the command line ---------------------------------------------------------------------------
 */

static int take_time(void *into, const struct option_row *row, const char *value, error *err)
{
    if (limit_parse(LIMIT_wall, value, (uint64_t *) ((char *) into + row->field), err) < 0)
        return fail(err, ERR_BAD_REQUEST, "--%s takes a time such as 30s, 10m or 2h, not '%.40s'",
                    row->name, value);
    return 0;
}

static int take_limit(void *into, const struct option_row *row, const char *value, error *err)
{
    struct session_arguments *arguments = into;
    const char *equals = strchr(value, '=');
    char name[40];
    if (!equals || (size_t) (equals - value) >= sizeof name)
        return fail(err, ERR_BAD_REQUEST, "--%s takes NAME=VALUE, such as memory=1GiB", row->name);
    (void) snprintf(name, sizeof name, "%.*s", (int) (equals - value), value);
    enum limit_id id = limit_find(name);
    if (id == LIMITS)
        return fail(err, ERR_LIMIT, "no limit is named '%s'; see glovebox run --help", name);
    if (arguments->limit_count == SESSION_LISTS_MOST)
        return fail(err, ERR_TOO_LARGE, "there are more than %d limits", SESSION_LISTS_MOST);
    glb_limit *limit = &arguments->limits[arguments->limit_count++];
    limit->name = limit_rows[id].name;
    return limit_parse(id, equals + 1, &limit->value, err);
}

static int take_pair(const char **list, size_t *count, const struct option_row *row,
                     const char *value, error *err)
{
    if (!strchr(value, '='))
        return fail(err, ERR_BAD_REQUEST, "--%s takes NAME=VALUE, not '%.40s'", row->name, value);
    if (*count == SESSION_LISTS_MOST)
        return fail(err, ERR_TOO_LARGE, "--%s is given more than %d times", row->name,
                    SESSION_LISTS_MOST);
    list[(*count)++] = value;
    return 0;
}

static int take_variable(void *into, const struct option_row *row, const char *value, error *err)
{
    struct session_arguments *arguments = into;
    return take_pair(arguments->variables, &arguments->variable_count, row, value, err);
}

static int take_label(void *into, const struct option_row *row, const char *value, error *err)
{
    struct session_arguments *arguments = into;
    return take_pair(arguments->labels, &arguments->label_count, row, value, err);
}

/* clang-format off */
static const struct option_row rows[] = {
    { "policy",   'p', "NAME",       VALUES_POLICY, "new: what it may do; default: as run",             store_text,    FIELD(policy) },
    { "template", 0,   "NAME",       VALUES_NONE,   "new: root file system; default: what the policy says",   store_text,    FIELD(template_name) },
    { "idle",     0,   "TIME",       VALUES_NONE,   "new: it ends when nobody has used it for so long; default: 10m", take_time, FIELD(idle_ms) },
    { "ttl",      0,   "TIME",       VALUES_NONE,   "new: it ends after so long in any case; default: 24h",   take_time,     FIELD(lifetime_ms) },
    { "limit",    0,   "NAME=VALUE", VALUES_NONE,   "new, run: a limit, such as memory=1GiB or wall=5s",      take_limit,    0 },
    { "env",      'e', "NAME=VALUE", VALUES_NONE,   "new, exec, shell: an environment variable",              take_variable, 0 },
    { "label",    0,   "NAME=VALUE", VALUES_NONE,   "new: metadata, which list shows",                        take_label,    0 },
    { "cwd",      0,   "FOLDER",     VALUES_NONE,   "new, exec, shell: working folder inside",                store_text,    FIELD(folder) },
    { "code",     'c', "CODE",       VALUES_NONE,   "run: this text",                                         store_text,    FIELD(code) },
    { "context",  0,   "NAME",       VALUES_NONE,   "run: a language, or the id of a context; default: python", store_text,  FIELD(in) },
    { "attach",   'a', "PROCESS",    VALUES_NONE,   "shell, exec: one that runs already",                     store_text,    FIELD(process) },
    { "tar",      0,   NULL,         VALUES_NONE,   "cp: a folder inside, a tar outside",                     store_switch,  FIELD(is_folder) },
    { "all",      0,   NULL,         VALUES_NONE,   "list: those that have ended too",                        store_switch,  FIELD(all) },
    { "json",     0,   NULL,         VALUES_NONE,   "the daemon's answer, for programs",                      store_switch,  FIELD(json) },
    { "daemon",   0,   "SOCKET",     VALUES_FILE,   "the daemon's socket; default: where it is looked for",   store_text,    FIELD(daemon) },
};
/* clang-format on */

const struct option_table *session_option_table(void)
{
    static const struct option_table table = {
        .verb = "session",
        .examples = "  id=$(glovebox session new --policy data)      begin one\n"
                    "  glovebox session run $id -c 'x = 6 * 7'       a cell; names are kept\n"
                    "  glovebox session run $id -c x\n"
                    "  glovebox session cp table.csv $id:in/table.csv\n"
                    "  glovebox session exec $id -- wc -l in/table.csv\n"
                    "  glovebox session shell $id                    a terminal inside\n"
                    "  glovebox session kill $id\n",
        .usage = "new [OPTIONS]\n"
                 "       glovebox session list|show [OPTIONS] [ID]\n"
                 "       glovebox session run [OPTIONS] ID FILE|-\n"
                 "       glovebox session exec|shell [OPTIONS] ID [-- COMMAND]\n"
                 "       glovebox session cp [--tar] ID:PATH FILE|-  or  FILE|- ID:PATH\n"
                 "       glovebox session files ID [FOLDER]\n"
                 "       glovebox session kill ID…",
        .more = "An ID may be shortened to a beginning that only one session has. Needs a daemon: "
                "glovebox serve.\nIn a shell, Enter ~ . leaves the program running; come back with "
                "--attach.\n",
        .rows = rows,
        .count = COUNT_OF(rows),
    };
    return &table;
}

/* --- sessions by name ---------------------------------------------------------------------------
 */

int library_failed(int32_t code, error *err)
{
    return fail(err, (enum error_code) code, "%s", glb_error_text());
}

static const char *text_of(json_object *object, const char *key)
{
    json_object *value = NULL;
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_string))
        return "";
    return json_object_get_string(value);
}

static json_object *list_of(json_object *object, const char *key)
{
    json_object *value = NULL;
    return json_object_object_get_ex(object, key, &value) &&
                   json_object_is_type(value, json_type_array)
               ? value
               : NULL;
}

/* Calls `each` for every session; stops when it returns true. */
static int walk_sessions(const struct session_arguments *arguments, const char *state,
                         bool (*each)(void *context, json_object *session), void *context,
                         error *err)
{
    char after[SESSION_NAME_SIZE] = "";
    bool is_done = false;
    do {
        char *json = NULL;
        int32_t code = glb_session_list(arguments->client, state, after[0] ? after : NULL, &json);
        if (code != GLB_OK)
            return library_failed(code, err);
        json_object *root = json_tokener_parse(json);
        json_object *list = list_of(root, "sessions");
        for (size_t at = 0; list && !is_done && at < json_object_array_length(list); at++)
            is_done = each(context, json_object_array_get_idx(list, at));
        (void) snprintf(after, sizeof after, "%s", text_of(root, "next"));
        (void) json_object_put(root);
        glb_text_free(json);
    } while (after[0] && !is_done);
    return 0;
}

struct search {
    const char *word;
    char *name;
    unsigned found;
};

static bool compare_beginning(void *context, json_object *session)
{
    struct search *search = context;
    const char *id = text_of(session, "id");
    const char *word = search->word;
    bool begins = strncmp(id, word, strlen(word)) == 0 ||
                  (strlen(id) > 4 && strncmp(id + 4, word, strlen(word)) == 0);
    if (begins && search->found++ == 0)
        (void) snprintf(search->name, SESSION_NAME_SIZE, "%s", id);
    return search->found > 1;
}

int session_named(const struct session_arguments *arguments, const char *word,
                  char name[SESSION_NAME_SIZE], error *err)
{
    enum { WHOLE = 36 };
    struct search search = { .word = word, .name = name };
    if (strlen(word) == WHOLE && strncmp(word, "ses_", 4) == 0) {
        (void) snprintf(name, SESSION_NAME_SIZE, "%s", word);
        return 0;
    }
    if (*word && walk_sessions(arguments, NULL, compare_beginning, &search, err) < 0)
        return -1;
    if (search.found == 1)
        return 0;
    return fail(err, ERR_NOT_FOUND, "%s begins with '%.40s'; see glovebox session list",
                search.found ? "more than one session" : "no session that is alive", word);
}

/* --- new, list, show, kill ----------------------------------------------------------------------
 */

static int session_new(struct session_arguments *arguments, error *err)
{
    glb_session_options options = { .policy = arguments->policy ? arguments->policy
                                                                : launch_default_policy(NULL),
                                    .template_name = arguments->template_name,
                                    .limits = arguments->limits,
                                    .limit_count = arguments->limit_count,
                                    .environment = arguments->variables,
                                    .metadata = arguments->labels,
                                    .folder = arguments->folder,
                                    .idle_ms = arguments->idle_ms,
                                    .lifetime_ms = arguments->lifetime_ms };
    char *json = NULL;
    int32_t code = glb_session_new(arguments->client, &options, sizeof options, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    json_object *root = json_tokener_parse(json);
    (void) puts(arguments->json ? json : text_of(root, "id"));
    (void) json_object_put(root);
    glb_text_free(json);
    return 0;
}

/* Metadata and reasons are what others have said: a terminal is not to obey them. JSON escapes
 * ESC, and not U+009B. */
static void print_text(const char *text)
{
    struct terminal terminal;
    (void) fflush(stdout);
    terminal_init(&terminal, STDOUT_FILENO);
    terminal_write(&terminal, text, strlen(text));
    terminal_write(&terminal, "\n", 1);
    terminal_done(&terminal);
}

static void print_session(json_object *session)
{
    char line[512];
    json_object *policy = NULL, *ended = NULL, *metadata = NULL;
    (void) json_object_object_get_ex(session, "policy", &policy);
    (void) json_object_object_get_ex(session, "ended", &ended);
    (void) json_object_object_get_ex(session, "metadata", &metadata);
    (void) snprintf(line, sizeof line, "%-36s  %-8s  %-10s  %s  %s%.200s", text_of(session, "id"),
                    text_of(session, "state"), policy ? text_of(policy, "name") : "-",
                    text_of(session, "created_at"), ended ? text_of(ended, "why") : "",
                    metadata && json_object_object_length(metadata) > 0
                        ? json_object_to_json_string_ext(metadata, JSON_C_TO_STRING_PLAIN)
                        : "");
    print_text(line);
}

static bool print_each(void *context, json_object *session)
{
    const struct session_arguments *arguments = context;
    if (arguments->json)
        print_text(json_object_to_json_string_ext(session, JSON_C_TO_STRING_PLAIN));
    else
        print_session(session);
    return false;
}

static int session_list(struct session_arguments *arguments, error *err)
{
    return walk_sessions(arguments, arguments->all ? "all" : NULL, print_each, arguments, err);
}

static int session_show(struct session_arguments *arguments, error *err)
{
    char name[SESSION_NAME_SIZE];
    char *json = NULL;
    if (session_named(arguments, arguments->words[0], name, err) < 0)
        return -1;
    int32_t code = glb_session_get(arguments->client, name, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    json_object *root = json_tokener_parse(json);
    print_text(arguments->json || !root
                   ? json
                   : json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
                                                              JSON_C_TO_STRING_SPACED |
                                                              JSON_C_TO_STRING_NOSLASHESCAPE));
    (void) json_object_put(root);
    glb_text_free(json);
    return 0;
}

static int session_kill(struct session_arguments *arguments, error *err)
{
    for (int at = 0; at < arguments->count; at++) {
        char name[SESSION_NAME_SIZE];
        if (session_named(arguments, arguments->words[at], name, err) < 0)
            return -1;
        int32_t code = glb_session_kill(arguments->client, name, NULL);
        if (code != GLB_OK)
            return library_failed(code, err);
    }
    return 0;
}

/* --- cells --------------------------------------------------------------------------------------
 */

struct showing {
    struct terminal out, err;
};

static int32_t show_output(void *context, int32_t stream, const void *data, size_t length)
{
    struct showing *showing = context;
    struct terminal *terminal = stream == GLB_STDERR ? &showing->err : &showing->out;
    terminal_write(terminal, data, length);
    return terminal->failed != 0;
}

static void show_line(struct terminal *terminal, const char *text)
{
    terminal_write(terminal, text, strlen(text));
    terminal_write(terminal, "\n", 1);
}

/* A value as text; what has none, such as an image, is named. */
static int32_t show_event(void *context, const char *name, const char *json)
{
    struct showing *showing = context;
    if (strcmp(name, "result") != 0 && strcmp(name, "error") != 0)
        return 0;
    json_object *event = json_tokener_parse(json);
    json_object *data = NULL;
    if (*name == 'e') {
        show_line(&showing->err, text_of(event, "traceback"));
    } else if (json_object_object_get_ex(event, "data", &data) && data) {
        json_object *text = NULL;
        if (json_object_object_get_ex(data, "text/plain", &text) && text)
            show_line(&showing->out, json_object_get_string(text));
        json_object_object_foreach(data, mime, value)
        {
            char line[160];
            (void) value;
            if (strncmp(mime, "image/", 6) != 0)
                continue;
            (void) snprintf(line, sizeof line, "[%.60s; --json has it]", mime);
            show_line(&showing->out, line);
        }
    }
    (void) json_object_put(event);
    return 0;
}

static glb_client *interrupted;

static void interrupt(int number)
{
    (void) number;
    if (interrupted)
        glb_cancel(interrupted);
}

static int read_cell(const struct session_arguments *arguments, char **ret_code, size_t *ret_size,
                     error *err)
{
    if (arguments->code) {
        *ret_code = strdup(arguments->code);
        *ret_size = strlen(arguments->code);
        return *ret_code ? 0 : fail(err, ERR_INTERNAL, "out of memory");
    }
    if (arguments->count < 2)
        return fail(err, ERR_BAD_REQUEST, "there is no code; give a file, - for stdin, or -c CODE");
    if (strcmp(arguments->words[1], "-") == 0)
        return read_to_end(STDIN_FILENO, "stdin", ret_code, ret_size, err);
    return read_input_file(arguments->words[1], ret_code, ret_size, err);
}

static int session_run(struct session_arguments *arguments, error *err)
{
    char name[SESSION_NAME_SIZE];
    char *code = NULL;
    struct showing showing;
    glb_cell_options options = { .in = arguments->in,
                                 .limits = arguments->limits,
                                 .limit_count = arguments->limit_count,
                                 .on_output = arguments->json ? NULL : show_output,
                                 .on_event = arguments->json ? NULL : show_event,
                                 .context = &showing };
    glb_outcome *outcome = NULL;
    if (session_named(arguments, arguments->words[0], name, err) < 0 ||
        read_cell(arguments, &code, &options.code_length, err) < 0)
        return -1;
    options.code = code;
    terminal_init(&showing.out, STDOUT_FILENO);
    terminal_init(&showing.err, STDERR_FILENO);
    interrupted = arguments->client;
    struct sigaction action = { .sa_handler = interrupt };
    (void) sigaction(SIGINT, &action, NULL);
    int32_t result = glb_session_run(arguments->client, name, &options, sizeof options, &outcome);
    interrupted = NULL;
    terminal_done(&showing.out);
    terminal_done(&showing.err);
    free(code);
    if (result != GLB_OK)
        return library_failed(result, err);
    if (arguments->json)
        (void) puts(glb_outcome_json(outcome));
    glb_limit_reached limit;
    if (!arguments->json && glb_outcome_limit(outcome, &limit, sizeof limit) == GLB_OK)
        (void) complain("%s", limit.message);
    int status = glb_outcome_exit_status(outcome);
    glb_outcome_free(outcome);
    return status;
}

/* --- dispatch -----------------------------------------------------------------------------------
 */

static const struct verb {
    const char *name;
    int least; /* words that must follow */
    int (*take)(struct session_arguments *arguments, error *err);
} verbs[] = {
    { "new", 0, session_new }, { "list", 0, session_list },   { "show", 1, session_show },
    { "run", 1, session_run }, { "exec", 1, session_exec },   { "shell", 1, session_shell },
    { "cp", 2, session_copy }, { "files", 1, session_files }, { "kill", 1, session_kill },
};

static int no_such_verb(const char *word)
{
    const char *names[COUNT_OF(verbs) + 1] = { NULL };
    for (size_t at = 0; at < COUNT_OF(verbs); at++)
        names[at] = verbs[at].name;
    const char *meant = nearest_word(word, names);
    return complain("session cannot '%s'; %s%s", word,
                    meant ? "did you mean glovebox session " : "see glovebox session --help",
                    meant ? meant : "");
}

/* Options may stand before and after the id; what follows "--", or a command, is left alone. */
static int read_words(struct session_arguments *arguments, struct words *words, const char *verb,
                      error *err)
{
    bool is_command = strcmp(verb, "exec") == 0 || strcmp(verb, "shell") == 0;
    for (;;) {
        int outcome = options_read(session_option_table(), arguments, words, err);
        bool is_rest = words->next > 0 && strcmp(words->words[words->next - 1], "--") == 0;
        if (outcome != OPTIONS_TAKEN || words->next == words->count)
            return outcome;
        if (is_rest || (is_command && arguments->count > 0)) {
            while (words->next < words->count)
                arguments->words[arguments->count++] = words->words[words->next++];
            return OPTIONS_TAKEN;
        }
        arguments->words[arguments->count++] = words->words[words->next++];
    }
}

static int begin(struct session_arguments *arguments, const struct verb *verb, error *err)
{
    glb_connect_options options = { .socket = arguments->daemon, .how = GLB_CONNECT_SOCKET };
    if (arguments->count < verb->least)
        return fail(err, ERR_BAD_REQUEST, "session %s needs %s; see glovebox session --help",
                    verb->name, verb->least == 1 ? "the id of a session" : "two places");
    int32_t code = glb_connect(&options, sizeof options, &arguments->client);
    if (code != GLB_OK)
        return library_failed(code, err);
    return verb->take(arguments, err);
}

int command_session(int argc, char **argv)
{
    struct session_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    const struct verb *verb = NULL;
    error err = { 0 };
    int outcome = options_read(session_option_table(), &arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0)
        return complain_of(&err);
    if (words.next == argc)
        return complain("what about sessions? try glovebox session list");
    const char *word = argv[words.next++];
    for_each(row, verbs)
        if (strcmp(row->name, word) == 0)
            verb = row;
    if (!verb)
        return no_such_verb(word);
    arguments.words = calloc((size_t) argc + 1, sizeof *arguments.words);
    if (!arguments.words)
        return complain("out of memory");
    int status = 0;
    outcome = read_words(&arguments, &words, verb->name, &err);
    if (outcome == OPTIONS_TAKEN)
        status = begin(&arguments, verb, &err);
    if (outcome < 0 || status < 0)
        status = complain_of(&err);
    glb_close(arguments.client);
    free(arguments.words);
    return status;
}
