/* session.c - `glovebox session`: sandboxes that are kept between runs, by calls of libglovebox. */
#include "cli/session/session.h"

#include "base/table.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "model/limits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct session_arguments, name)

/* --- the command line ------------------------------------------------------------------------- */

static int take_time(void *into, const struct option_row *row, const char *value, error *err)
{
    uint64_t *time = (uint64_t *) ((char *) into + row->field);
    if (limit_parse(LIMIT_wall, value, time, err) < 0 || *time == 0) /* 0 means the default */
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
    if (arguments->limit_count == SESSION_LISTS_MAX)
        return fail(err, ERR_TOO_LARGE, "there are more than %d limits", SESSION_LISTS_MAX);
    glb_limit *limit = &arguments->limits[arguments->limit_count++];
    limit->name = limit_rows[id].name;
    return limit_parse(id, equals + 1, &limit->value, err);
}

static int take_pair(void *into, const struct option_row *row, const char *value, error *err)
{
    struct session_arguments *arguments = into;
    bool is_label = row->field == FIELD(label_count);
    size_t *count = is_label ? &arguments->label_count : &arguments->variable_count;
    if (!strchr(value, '=') || *value == '=')
        return fail(err, ERR_BAD_REQUEST, "--%s takes NAME=VALUE, not '%.40s'", row->name, value);
    if (*count == SESSION_LISTS_MAX)
        return fail(err, ERR_TOO_LARGE, "--%s is given more than %d times", row->name,
                    SESSION_LISTS_MAX);
    (is_label ? arguments->labels : arguments->variables)[(*count)++] = value;
    return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
    { "policy",   'p', "NAME",       VALUES_POLICY, "new: what it may do; default: as run",             store_text,    FIELD(policy) },
    { "template", 0,   "NAME",       VALUES_TEMPLATE,   "new: root file system; default: what the policy says",   store_text,    FIELD(template_name) },
    { "idle",     0,   "TIME",       VALUES_NONE,   "new, branch: it ends when it was not used for so long; default: 10m, as its parent", take_time, FIELD(idle_ms) },
    { "ttl",      0,   "TIME",       VALUES_NONE,   "new, branch: it ends after so long in any case; default: 24h", take_time,     FIELD(lifetime_ms) },
    { "limit",    0,   "NAME=VALUE", VALUES_NONE,   "new, run: a limit, such as memory=1GiB or wall=5s",      take_limit,    FIELD(limit_count) },
    { "env",      'e', "NAME=VALUE", VALUES_NONE,   "new, exec, shell: an environment variable",              take_pair,     FIELD(variable_count) },
    { "label",    0,   "NAME=VALUE", VALUES_NONE,   "new, branch, list: metadata, which list shows; default: that of the parent; of list, those that have it", take_pair,     FIELD(label_count) },
    { "cwd",      0,   "FOLDER",     VALUES_NONE,   "new, exec, shell: working folder inside",                store_text,    FIELD(folder) },
    { "code",     'c', "CODE",       VALUES_NONE,   "run: this text",                                         store_text,    FIELD(code) },
    { "context",  0,   "NAME",       VALUES_NONE,   "run, branch, checkpoint: a language, or the id of a context; default: python", store_text,  FIELD(in) },
    { "language", 'l', "NAME",       VALUES_NONE,   NULL,                                                     store_text,    FIELD(in) }, /* as for run */
    { "checkpoint",     0,   "CHECKPOINT",       VALUES_NONE,   "branch: from this checkpoint, by its id or name",              store_text,    FIELD(checkpoint) },
    { "expect",   0,   "FILE",       VALUES_FILE,   "run: compare the output with what this JSON file expects; 65 if it is something else", store_text, FIELD(expect) },
    { "no-wait",  0,   NULL,         VALUES_NONE,   "run: where a person is asked first, give the approval's id at once, and 126", store_switch, FIELD(no_wait) },
    { "attach",   'a', "PROCESS",    VALUES_NONE,   "shell, exec, attach: one that runs already",                     store_text,    FIELD(process) },
    { "recursive", 'r', NULL,        VALUES_NONE,   "cp: folders too, with what is in them",              store_switch,  FIELD(is_recursive) },
    { "tar",      0,   NULL,         VALUES_NONE,   "cp: a folder inside, a tar outside",                     store_switch,  FIELD(is_folder) },
    { "all",      0,   NULL,         VALUES_NONE,   "list, ps: those that have ended too",                        store_switch,  FIELD(all) },
    { "state",    0,   "STATE",      VALUES_NONE,   "list: ended, those that have ended alone; all, these too",    store_text,    FIELD(state) },
    { "files-only", 0, NULL,         VALUES_NONE,   "pause: end the programs, keep the files",                 store_switch,  FIELD(files_only) },
    { "json",     0,   NULL,         VALUES_NONE,   "the same for programs", store_switch,  FIELD(json) },
    { "daemon",   0,   "SOCKET",     VALUES_FILE,   "the daemon's socket; default: where it is looked for",   store_text,    FIELD(daemon) },
};

const struct option_table session_option_table = {
    .verb = "session",
    .examples =
        "  id=$(glovebox session new --policy data)      begin one\n"
        "  glovebox session run $id -c 'x = 6 * 7'       a cell; names are kept\n"
        "  glovebox session run $id -c x\n"
        "  glovebox session cp table.csv $id:in/table.csv\n"
        "  glovebox session exec $id -- wc -l in/table.csv\n"
        "  glovebox session shell $id                    a terminal inside\n"
        "  glovebox session attach $id                   what runs there already\n"
        "  glovebox session checkpoint $id before; glovebox session rollback $id before\n"
        "  other=$(glovebox session branch $id)   one more, with its names and files\n"
        "  glovebox session kill $id\n",
    .usage = "new|create [OPTIONS]\n"
             "       glovebox session list|ls|show [OPTIONS] [ID]\n"
             "       glovebox session run [OPTIONS] ID FILE|-|-c CODE\n"
             "       glovebox session exec|shell [OPTIONS] ID [-- COMMAND]\n"
             "       glovebox session ps ID\n"
             "       glovebox session attach ID [PROCESS]\n"
             "       glovebox session cp [-r] FILE… ID:PATH | ID:PATH… FILE; - is stdin/stdout\n"
             "       glovebox session cp --tar ID:FOLDER FILE|- | FILE|- ID:FOLDER\n"
             "       glovebox session files ID [FOLDER]\n"
             "       glovebox session pause [--files-only] ID\n"
             "       glovebox session resume ID\n"
             "       glovebox session branch [--context NAME | --checkpoint CHECKPOINT]\n"
             "               [--label NAME=VALUE] [--idle TIME] [--ttl TIME] ID\n"
             "       glovebox session checkpoint ID [NAME]\n"
             "       glovebox session checkpoints ID, or checkpoint list ID\n"
             "       glovebox session checkpoint-rm ID CHECKPOINT, or checkpoint rm ID …\n"
             "       glovebox session rollback ID CHECKPOINT\n"
             "       glovebox session kill|rm ID…",
    .more = "An ID may be shortened to a beginning that only one session has.\nNeeds a daemon: glovebox serve.\nIn a shell, Enter ~ . leaves the program running; come back with attach.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

int library_failed(int32_t code, error *err)
{
    return code == GLB_OK ? 0 : fail(err, (enum error_code) code, "%s", glb_error_text());
}

int session_answered(const struct session_arguments *arguments, int32_t code, char *json,
                     bool is_id_wanted, error *err)
{
    auto_json root = json ? json_tokener_parse(json) : NULL;
    if (root && arguments->json)
        print_json_line(root);
    else if (root && is_id_wanted)
        (void) puts(answer_text(root, "id"));
    glb_text_free(json);
    return library_failed(code, err);
}

void session_print_list(const struct session_arguments *arguments, json_object *list,
                        void (*print)(json_object *one))
{
    if (arguments->json)
        print_json_line(list);
    for (size_t at = 0; !arguments->json && list && at < json_object_array_length(list); at++)
        print(json_object_array_get_idx(list, at));
}

/* --- dispatch --------------------------------------------------------------------------------- */

enum { WORDS_ANY = INT_MAX };

/* The verbs. An option or a word that a verb would ignore is refused. */
static const struct verb {
    const char *name;
    int min, max; /* fewest and most words that follow */
    int (*take)(struct session_arguments *arguments, error *err);
} verbs[] = {
    /* clang-format off */
    { "new",      0, 0,         session_new },
    { "list",     0, 0,         session_list },
    { "show",     1, 1,         session_show },
    { "run",      1, 2,         session_run },
    { "exec",     1, WORDS_ANY, session_exec },
    { "shell",    1, WORDS_ANY, session_shell },
    { "ps",       1, 1,         session_processes },
    { "attach",   1, 2,         session_attach },
    { "pause",    1, 1,         session_pause },
    { "resume",   1, 1,         session_resume },
    { "branch",   1, 1,         session_branch },
    { "checkpoint",     1, 2,         session_checkpoint },
    { "checkpoints",    1, 1,         session_checkpoints },
    { "checkpoint-rm",   2, 2,         session_checkpoint_remove },
    { "rollback", 2, 2,         session_rollback },
    { "cp",       2, WORDS_ANY, session_copy },
    { "files",    1, 2,         session_files },
    { "kill",     1, WORDS_ANY, session_kill },
    /* clang-format on */
};

static const struct verb *verb_named(const char *name)
{
    for_each(row, verbs)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* Finds "checkpoint rm ID NAME" and "checkpoint list ID", as for other nouns; no id looks like
 * these words. */
static const struct verb *inner_verb(const struct verb *verb, struct session_arguments *arguments)
{
    static const char *const inner[][2] = {
        { "list", "checkpoints" },     { "ls", "checkpoints" },    { "rm", "checkpoint-rm" },
        { "remove", "checkpoint-rm" }, { "create", "checkpoint" }, { "new", "checkpoint" },
    };
    for_each(row, inner)
        if (verb->take == session_checkpoint && arguments->count > 0 &&
            strcmp((*row)[0], arguments->words[0]) == 0) {
            memmove(arguments->words, arguments->words + 1,
                    (size_t) --arguments->count * sizeof *arguments->words);
            return verb_named((*row)[1]);
        }
    return verb;
}

/* Reads options before and after the id. Words after "--" or a command are left unread. */
static int read_words(struct session_arguments *arguments, struct words *words, const char *verb,
                      error *err)
{
    bool is_command = strcmp(verb, "exec") == 0 || strcmp(verb, "shell") == 0;
    for (;;) {
        int outcome = options_read(&session_option_table, arguments, words, err);
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

static int check_words(const struct session_arguments *arguments, const struct verb *verb,
                       error *err)
{
    int max = arguments->code && verb->max == 2 ? 1 : verb->max;
    if (arguments->count < verb->min)
        return fail(err, ERR_BAD_REQUEST, "session %s needs %s", verb->name,
                    verb->min == 1 ? "the id of a session; glovebox session list shows them"
                    : strcmp(verb->name, "cp") == 0 ? "two places; see glovebox session --help"
                                                    : "the id of a session, and a checkpoint; "
                                                      "see glovebox session --help");
    if (arguments->count > max)
        return fail(err, ERR_BAD_REQUEST,
                    "session %s takes no '%.40s'; see glovebox session --help", verb->name,
                    arguments->words[max]);
    return 0;
}

static int begin(struct session_arguments *arguments, const struct verb *verb, error *err)
{
    glb_connect_options options = { .socket = arguments->daemon, .how = GLB_CONNECT_SOCKET };
    if (check_words(arguments, verb, err) < 0)
        return -1;
    int32_t code = glb_connect(&options, sizeof options, &arguments->client);
    if (code != GLB_OK)
        return library_failed(code, err);
    bool is_of_one = verb->min > 0 && verb->take != session_copy && verb->take != session_kill;
    if (is_of_one && session_named(arguments, arguments->words[0], arguments->session, err) < 0)
        return -1;
    return verb->take(arguments, err);
}

int command_session(int argc, char **argv)
{
    struct session_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    int outcome = options_read(&session_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    const char *word = words.next < argc ? verb_meant("session", argv[words.next++]) : "";
    const struct verb *verb = verb_named(word);
    if (!verb)
        return complain_of_verb("session", word);
    arguments.words = calloc((size_t) argc + 1, sizeof *arguments.words);
    if (!arguments.words)
        return complain("out of memory");
    int status = 0;
    outcome = read_words(&arguments, &words, verb->name, &err);
    verb = inner_verb(verb, &arguments);
    if (outcome == OPTIONS_TAKEN)
        outcome = options_check(&session_option_table, &words, verb->name, &err);
    if (outcome == OPTIONS_TAKEN)
        status = begin(&arguments, verb, &err);
    if (outcome < 0 || status < 0)
        status = complain_of(&err);
    glb_close(arguments.client);
    free(arguments.words);
    return status;
}
