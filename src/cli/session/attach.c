/* attach.c - `glovebox session ps` and `attach`: lists processes of a session, connects to one. */
#include "cli/session/session.h"

#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* Calls `each` for every running process; with `all` also for those that have ended. */
static int list_processes(const struct session_arguments *arguments, const char *session,
                          json_object **ret_root, json_object **ret_list, error *err)
{
    auto_text json = NULL;
    int32_t code = glb_session_processes(arguments->client, session, arguments->all, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    auto_json root = json_tokener_parse(json);
    json_object *list = list_of(root, "processes");
    if (!list)
        return fail(err, ERR_PROTOCOL, "the daemon's list of processes cannot be read");
    *ret_root = take_json(&root);
    *ret_list = list;
    return 0;
}

static bool flag_of(json_object *object, const char *key)
{
    return json_object_get_boolean(json_member(object, key));
}

/* Writes the command, a line for the shell or a list of words, as one line. */
static void command_of(json_object *process, char *line, size_t size)
{
    json_object *words = list_of(process, "command");
    (void) snprintf(line, size, "%s", answer_text(process, "command"));
    size_t used = 0;
    for (size_t at = 0; words && at < json_object_array_length(words) && used + 1 < size; at++) {
        json_object *word = json_object_array_get_idx(words, at);
        int length =
            snprintf(line + used, size - used, "%s%s", at ? " " : "", json_object_get_string(word));
        used += length > 0 ? (size_t) length : 0;
    }
}

/* The names come from the sandbox, so they are filtered for the terminal. */
static void print_process(json_object *process)
{
    char command[160], line[320], shown[1300];
    command_of(process, command, sizeof command);
    (void) snprintf(line, sizeof line, "%-37s  %6d  %-8s  %-8s  %s", answer_text(process, "id"),
                    json_object_get_int(json_member(process, "pid")), answer_text(process, "state"),
                    flag_of(process, "terminal") ? "yes" : "-", command);
    shown[line_add_harmless(shown, 0, sizeof shown - 1, line)] = '\0';
    print_filtered(shown);
}

int session_processes(struct session_arguments *arguments, error *err)
{
    auto_json root = NULL;
    json_object *list = NULL;
    if (list_processes(arguments, arguments->session, &root, &list, err) < 0)
        return -1;
    if (!arguments->json)
        (void) printf("%-37s  %6s  %-8s  %-8s  %s\n", "ID", "PID", "STATE", "TERMINAL", "COMMAND");
    session_print_list(arguments, list, print_process);
    return 0;
}

/* Does `word` name the process, by its id or the beginning of it, its tag or pid? */
static bool is_meant(json_object *process, const char *word)
{
    json_object *pid = NULL;
    const char *id = answer_text(process, "id");
    if (!word || strncmp(id, word, strlen(word)) == 0 ||
        strcmp(answer_text(process, "tag"), word) == 0)
        return true;
    return json_object_object_get_ex(process, "pid", &pid) &&
           strcmp(json_object_get_string(pid), word) == 0;
}

struct found {
    unsigned count;
    char name[SESSION_NAME_SIZE];
    bool has_terminal;
};

/* Finds the process that `word` names; with NULL the only one that runs. */
static int find_process(const struct session_arguments *arguments, const char *session,
                        const char *word, struct found *found, error *err)
{
    auto_json root = NULL;
    json_object *list = NULL;
    if (list_processes(arguments, session, &root, &list, err) < 0)
        return -1;
    for (size_t at = 0; at < json_object_array_length(list); at++) {
        json_object *process = json_object_array_get_idx(list, at);
        if (!is_meant(process, word))
            continue;
        (void) snprintf(found->name, sizeof found->name, "%s", answer_text(process, "id"));
        found->has_terminal = flag_of(process, "terminal");
        found->count++;
    }
    if (found->count == 1)
        return 0;
    if (word)
        return fail(err, ERR_NOT_FOUND, "%s begins with '%.40s'; see glovebox session ps",
                    found->count ? "more than one process" : "no process that runs", word);
    return fail(err, ERR_NOT_FOUND, "%s; %s",
                found->count ? "more than one program runs there" : "no program runs there",
                found->count ? "name one of glovebox session ps"
                             : "begin one: glovebox session shell");
}

int session_attach(struct session_arguments *arguments, error *err)
{
    static struct found found; /* `arguments` borrow its name */
    const char *word = arguments->process;
    if (!word && arguments->count > 1)
        word = arguments->words[1];
    if (find_process(arguments, arguments->session, word, &found, err) < 0)
        return -1;
    arguments->process = found.name;
    return found.has_terminal ? session_shell(arguments, err) : session_exec(arguments, err);
}
