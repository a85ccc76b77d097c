/* repl.c - `glovebox repl`: a prompt like that of a notebook. Each entry is a cell of one session:
 * variables stay, values are printed, pictures are drawn or saved. */
#include "cli/options.h"
#include "cli/session/session.h"
#include "cli/tty/entry_scanner.h"
#include "cli/tty/line_editor.h"

#include "base/table.h"
#include "cli/commands.h"
#include "model/languages.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct repl, name)

enum { ENTRY_MAX = 256 * 1024, STATUS_OF_SIGNAL = 128 };

struct repl {
    struct session_arguments arguments; /* shared by the verbs of sessions */
    const char *folder;                 /* where pictures are saved */
    struct line_reader reader;
    struct images images;
    char session[SESSION_NAME_SIZE];
    char entry[ENTRY_MAX];
    size_t size;
    unsigned number;
    int64_t beat_ms; /* how often the session is marked as in use */
};

/* clang-format off */
static const struct option_row rows[] = {
    { "policy",   'p', "NAME",   VALUES_POLICY, "what the session may do; default: as run",               store_text, FIELD(arguments.policy) },
    { "template", 0,   "NAME",   VALUES_TEMPLATE,   "root file system; default: what the policy says",        store_text, FIELD(arguments.template_name) },
    { "language", 0,   "NAME",   VALUES_NONE,   NULL,                                                     store_text, FIELD(arguments.in) }, /* as for run */
    { "context",  'l', "NAME",   VALUES_NONE,   "a language, or the id of a context; default: python",    store_text, FIELD(arguments.in) },
    { "images",   0,   "FOLDER", VALUES_FOLDER, "where pictures are kept; default: drawn where the terminal can, else a folder in /tmp", store_text, FIELD(folder) },
    { "daemon",   0,   "SOCKET", VALUES_FILE,   "the daemon's socket; default: where it is looked for",   store_text, FIELD(arguments.daemon) },
};

const struct option_table repl_option_table = {
    .verb = "repl",
    .examples = "  glovebox repl            python in a session of its own, which ends with it\n"
                "  glovebox repl -l bash    another language that it has\n"
                "  glovebox repl ses_2f1    in a session that is there, and stays\n",
    .usage = "[OPTIONS] [SESSION]",
    .more = "An entry that is not finished goes on in the next line: as python's do, where an\nempty line ends a block; in bash, javascript and r with what is open, or two\nempty lines. The history has entries whole, with ↵ between their lines; Tab goes\non with a word of it. A cell has no stdin for input(): set values in the code.\nCtrl-C interrupts a cell, Ctrl-D or exit ends. Needs a daemon: glovebox serve.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

/* --- an entry --------------------------------------------------------------------------------- */

static void add_line_end(struct repl *repl)
{
    repl->entry[repl->size++] = '\n';
    repl->entry[repl->size] = '\0';
}

/* Returns as line_read(). */
static int read_lines(struct repl *repl)
{
    char prompt[32];
    const char *line;
    repl->size = 0;
    repl->entry[0] = '\0';
    (void) snprintf(prompt, sizeof prompt, "In [%u]: ", repl->number);
    for (;;) {
        int outcome = line_read(&repl->reader, prompt, &line);
        if (outcome == LINE_ENDED && repl->size > 0)
            return LINE_TYPED;
        if (outcome != LINE_TYPED)
            return outcome;
        size_t length = strlen(line);
        if (repl->size + length + 3 > sizeof repl->entry) {
            (void) complain("an entry has at most %d bytes; put more into a file", ENTRY_MAX);
            return LINE_THROWN_AWAY;
        }
        memcpy(repl->entry + repl->size, line, length);
        repl->size += length;
        add_line_end(repl);
        if (strchr(line, '\n')) /* a complete entry from the history */
            add_line_end(repl);
        if (entry_is_whole(repl->arguments.in, repl->entry))
            return LINE_TYPED;
        (void) snprintf(prompt, sizeof prompt, "%*s", (int) strlen(prompt), "...: ");
    }
}

/* Reads an entry as read_lines() does, and adds it to the history. */
static int read_entry(struct repl *repl)
{
    int outcome = read_lines(repl);
    size_t size = repl->size;
    while (size > 0 && repl->entry[size - 1] == '\n')
        size--;
    repl->entry[size] = '\0';
    if (repl->reader.is_terminal && outcome == LINE_TYPED)
        line_remember(&repl->reader, repl->entry);
    if (size < repl->size)
        repl->entry[size] = '\n';
    return outcome;
}

/* Is it `exit`, `quit()` or `exit(3)`? In a cell they would only end the interpreter; at a prompt
 * they end this program. Gives *ret_status, unchanged if no status is named. */
static bool is_farewell(const char *entry, int *ret_status)
{
    static const char *const words[] = { "exit", "quit" };
    for_each(word, words) {
        const char *at = entry + strspn(entry, " \t");
        size_t length = strlen(*word);
        if (strncmp(at, *word, length) != 0)
            continue;
        at += length;
        size_t digits = *at == '(' ? strspn(at + 1, "0123456789") : 0;
        bool is_call = *at == '(' && at[1 + digits] == ')' && digits <= 3;
        const char *rest = is_call ? at + digits + 2 : at;
        if (rest[strspn(rest, " \t;\n")])
            continue;
        if (digits > 0)
            *ret_status = (int) strtol(at + 1, NULL, 10) & 255;
        return true;
    }
    return false;
}

/* --- signals ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped_by; /* number of the signal */
static int stop_event = -1;
static glb_client *volatile running; /* connection of the running cell */

static void stop(int number)
{
    int before = errno;
    uint64_t one = 1;
    stopped_by = number;
    (void) !write(stop_event, &one, sizeof one);
    if (running)
        glb_cancel(running);
    errno = before;
}

/* Called before a session is made: a terminal that hangs up must not leave the session behind. */
static int watch_signals(error *err)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_event < 0)
        return fail_os(err, "make an eventfd");
    for_each(number, numbers) {
        struct sigaction before;
        (void) sigaction(*number, NULL, &before);
        if (before.sa_handler != SIG_IGN) /* ignored by nohup */
            (void) sigaction(*number, &action, NULL);
    }
    (void) signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* --- the session ------------------------------------------------------------------------------ */

static int find_session(struct repl *repl, error *err)
{
    auto_text json = NULL;
    if (repl->arguments.count > 0)
        return session_named(&repl->arguments, repl->arguments.words[0], repl->session, err);
    if (session_begin(&repl->arguments, &json, err) < 0)
        return -1;
    auto_json root = json_tokener_parse(json);
    (void) snprintf(repl->session, sizeof repl->session, "%s", answer_text(root, "id"));
    return 0;
}

static bool has(json_object *list, const char *member, const char *name)
{
    for (size_t at = 0; at < json_object_array_length(list); at++) {
        json_object *one = json_object_array_get_idx(list, at);
        const char *other = member ? answer_text(one, member) : json_object_get_string(one);
        if (other && language_is(name, other))
            return true;
    }
    return false;
}

static int no_such_context(json_object *root, json_object *languages, const char *name, error *err)
{
    char names[128] = "";
    json_object *policy = json_member(root, "policy");
    for (size_t at = 0, used = 0; at < json_object_array_length(languages) && used < sizeof names;
         at++)
        used += (size_t) snprintf(names + used, sizeof names - used, "%s%s", at > 0 ? ", " : "",
                                  json_object_get_string(json_object_array_get_idx(languages, at)));
    return fail(err, ERR_NOT_FOUND,
                "there is no language and no context '%.40s'; policy %.63s has %s", name,
                policy ? answer_text(policy, "name") : "", names[0] ? names : "none");
}

/* Marks the session as in use while the prompt is open. Failures show up at the next cell. */
static void touch(void *user)
{
    const struct repl *repl = user;
    (void) glb_session_touch(repl->arguments.client, repl->session, NULL);
}

static void stay_in_use(struct repl *repl, json_object *session)
{
    enum { BEAT_MAX_MS = 60000, BEAT_MIN_MS = 100 };
    double idle_ms = json_object_get_double(json_member(session, "idle_seconds")) * 1000;
    double beat_ms = idle_ms / 3 < BEAT_MAX_MS ? idle_ms / 3 : BEAT_MAX_MS;
    repl->beat_ms = beat_ms > BEAT_MIN_MS ? (int64_t) beat_ms : BEAT_MIN_MS;
}

/* Prints where the code runs, and how to leave. */
static void print_banner(const struct repl *repl, json_object *session, const char *context)
{
    json_object *policy = json_member(session, "policy");
    (void) printf("glovebox " GLOVEBOX_VERSION
                  ": %s in a sandbox, policy %s. Session %s, which %s.\n"
                  "Ctrl-C interrupts, Ctrl-D leaves; glovebox session cp copies files.\n",
                  language_name(context), policy ? answer_text(policy, "name") : "", repl->session,
                  repl->arguments.count > 0 ? "stays" : "ends with this prompt");
}

/* Checks the session and its language before the user types. */
static int look_at_session(struct repl *repl, error *err)
{
    const char *name = repl->arguments.in ? repl->arguments.in : "python";
    auto_text json = NULL;
    json_object *languages = NULL;
    json_object *contexts = NULL;
    int32_t code = glb_session_get(repl->arguments.client, repl->session, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    auto_json root = json_tokener_parse(json);
    int result = 0;
    if (json_object_object_get_ex(root, "languages", &languages) &&
        json_object_object_get_ex(root, "contexts", &contexts) && !has(languages, NULL, name) &&
        !has(contexts, "id", name))
        result = no_such_context(root, languages, name, err);
    stay_in_use(repl, root);
    if (result == 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        print_banner(repl, root, name);
    return result;
}

/* Returns the exit status of the last cell, 0 if a terminal has shown it, or -1. */
static int converse(struct repl *repl, error *err)
{
    int status = 0;
    for (repl->number = 1;; repl->number++) {
        int outcome = read_entry(repl);
        if (stopped_by != 0)
            return STATUS_OF_SIGNAL + stopped_by;
        if (outcome == LINE_ENDED)
            return repl->reader.is_terminal ? 0 : status;
        if (outcome == LINE_THROWN_AWAY || strspn(repl->entry, " \t\n") == repl->size) {
            repl->number--;
            continue;
        }
        int last = repl->reader.is_terminal ? 0 : status;
        if (is_farewell(repl->entry, &last))
            return last;
        struct cell cell = { .code = repl->entry, .size = repl->size, .images = &repl->images };
        running = repl->arguments.client;
        int done = stopped_by != 0 ? 0 : cell_run(&repl->arguments, repl->session, &cell, err);
        running = NULL;
        if (stopped_by == 0 && done < 0)
            return -1;
        if (stopped_by != 0) {
            glb_outcome_free(cell.outcome);
            return STATUS_OF_SIGNAL + stopped_by;
        }
        status = cell_exit_status(&cell);
        glb_outcome_free(cell.outcome);
    }
}

static char *history_path(void)
{
    auto_text state = NULL;
    char *path = NULL;
    error err;
    if (path_of_own_state(&state, &err) == 0 && make_folder(state, 0755, &err) == 0)
        (void) format_text(&path, &err, "%s/repl-history", state);
    return path;
}

static int32_t connect_to(const struct repl *repl, glb_client **ret_client)
{
    glb_connect_options options = { .socket = repl->arguments.daemon, .how = GLB_CONNECT_SOCKET };
    return glb_connect(&options, sizeof options, ret_client);
}

/* Ends the session by a new connection: on the old one a cell may just have been cancelled. */
static void end_session(const struct repl *repl)
{
    glb_client *client = NULL;
    int32_t code = connect_to(repl, &client);
    if (code == GLB_OK)
        code = glb_session_kill(client, repl->session, NULL);
    error why;
    if (code != GLB_OK && code != GLB_E_NOT_FOUND && library_failed(code, &why) < 0)
        (void) complain("the session could not be ended: %s; glovebox session kill %s", why.text,
                        repl->session);
    glb_close(client);
}

static int begin(struct repl *repl, error *err)
{
    int32_t code = connect_to(repl, &repl->arguments.client);
    if (code != GLB_OK)
        return library_failed(code, err);
    if (watch_signals(err) < 0 || find_session(repl, err) < 0)
        return -1;
    int status = look_at_session(repl, err);
    if (status == 0) {
        char *history = isatty(STDIN_FILENO) ? history_path() : NULL;
        line_open(&repl->reader, history, stop_event);
        free(history);
        repl->reader.beat = touch;
        repl->reader.user = repl;
        repl->reader.beat_ms = repl->beat_ms;
        images_open(&repl->images, repl->folder, isatty(STDOUT_FILENO));
        status = converse(repl, err);
        line_close(&repl->reader);
    }
    if (repl->arguments.count == 0)
        end_session(repl);
    return status;
}

int command_repl(int argc, char **argv)
{
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    struct repl *repl = calloc(1, sizeof *repl);
    if (!repl)
        return complain("out of memory");
    int outcome = options_read(&repl_option_table, repl, &words, &err);
    repl->arguments.words = argv + words.next;
    repl->arguments.count = argc - words.next;
    int status = 0;
    if (outcome == OPTIONS_TAKEN && repl->arguments.count > 1)
        status = complain("repl takes one session; see glovebox repl --help");
    else if (outcome == OPTIONS_TAKEN)
        status = begin(repl, &err);
    if (outcome < 0 || status < 0)
        status = complain_of(&err);
    glb_close(repl->arguments.client);
    free(repl);
    return status;
}
