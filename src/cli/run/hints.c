/* hints.c - names of missing files come from the sandbox. They are looked up beneath the caller's
 * folder only, and the result goes to the caller's terminal, never into the sandbox. */
#include "cli/run/hints.h"

#include "base/table.h"
#include "cli/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void hints_hear(struct hints *hints, const char *data, size_t size)
{
    if (size >= HINT_TAIL) {
        data += size - HINT_TAIL;
        size = HINT_TAIL;
    }
    size_t kept = hints->length < HINT_TAIL - size ? hints->length : HINT_TAIL - size;
    memmove(hints->tail, hints->tail + hints->length - kept, kept);
    memcpy(hints->tail + kept, data, size);
    hints->length = kept + size;
    hints->tail[hints->length] = '\0';
}

/* ---- a file that was not given to the run ---- */

enum { NAME_ROOM = 256 };

static const char no_module[] = "ModuleNotFoundError: No module named '";

/* Finds the last quoted text after `mark`. */
static bool find_quoted(const char *text, const char *mark, char name[NAME_ROOM])
{
    const char *last = NULL;
    for (const char *at = strstr(text, mark); at; at = strstr(at + 1, mark))
        last = at + strlen(mark);
    const char *end = last ? strpbrk(last, "'\n") : NULL;
    if (!end || *end != '\'' || end == last || end - last >= NAME_ROOM)
        return false;
    (void) snprintf(name, NAME_ROOM, "%.*s", (int) (end - last), last);
    return true;
}

/* Finds the word before the message, as in "cat: data.csv: No such file or directory". */
static bool find_word(const char *text, char name[NAME_ROOM])
{
    const char *end = strstr(text, ": No such file or directory\n");
    const char *begin = end;
    while (begin && begin > text && !strchr(" '\"\n", begin[-1]))
        begin--;
    if (!end || begin == end || end - begin >= NAME_ROOM)
        return false;
    (void) snprintf(name, NAME_ROOM, "%.*s", (int) (end - begin), begin);
    return true;
}

/* Cuts the folder off the path of a file in it; the path of a file elsewhere stays. */
static bool cut_folder(char name[NAME_ROOM], const char *folder)
{
    size_t length = strlen(folder);
    if (length < 2 || strncmp(name, folder, length) != 0 || name[length] != '/')
        return false;
    memmove(name, name + length + 1, strlen(name + length));
    return true;
}

/* Finds the missing file, as a path beneath the caller's folder; the host's path is cut to it. */
static bool find_missing(const char *text, char name[NAME_ROOM], bool *ret_is_absolute)
{
    char folder[NAME_ROOM];
    if (find_quoted(text, no_module, name)) {
        name[strcspn(name, ".")] = '\0';
        size_t length = strlen(name);
        (void) snprintf(name + length, NAME_ROOM - length, ".py");
    } else if (!find_quoted(text, "No such file or directory: '", name) && !find_word(text, name)) {
        return false;
    }
    *ret_is_absolute = !cut_folder(name, "/workspace") && getcwd(folder, sizeof folder) &&
                       cut_folder(name, folder);
    bool is_beneath = *name && *name != '/' && strncmp(name, "..", 2) != 0 && !strstr(name, "/..");
    return is_beneath && access(name, F_OK) == 0;
}

static bool is_sent(const struct run_arguments *arguments, const char *name)
{
    for (size_t index = 0; index < arguments->file_count; index++)
        if (strcmp(arguments->files[index].path, name) == 0)
            return true;
    return false;
}

static void tell_missing_file(const struct hints *hints, const struct run_arguments *arguments)
{
    char name[NAME_ROOM];
    bool is_absolute = false;
    bool is_here = find_missing(hints->tail, name, &is_absolute);
    bool is_given = is_here && is_sent(arguments, name);
    if (is_here && is_absolute)
        (void) complain("the sandbox does not have your '%s'; open it by that name%s%s", name,
                        is_given ? "" : ", and add --file ", is_given ? "" : name);
    else if (is_here && !is_given)
        (void) complain("'%s' lies in your folder and was not sent along; add --file %s", name,
                        name);
    else if (find_quoted(hints->tail, no_module, name) && !strstr(hints->tail, "glovebox libs "))
        (void) complain("the template has no module %s; its operator can add it: glovebox libs "
                        "request %s",
                        name, name);
    else if (!arguments->pass_stdin && strstr(hints->tail, "\nEOFError: EOF when reading a line\n"))
        (void) complain("the program reads stdin, and was given none; pass yours on with --stdin");
}

/* ---- how the run ended, what it made ---- */

/* Explains a signal, but not 137 by the memory limit, which has its own message. */
static void tell_signal(int32_t number, const glb_outcome *outcome)
{
    glb_limit_reached limit;
    if (number <= 0 || glb_outcome_limit(outcome, &limit, sizeof limit) == GLB_OK)
        return;
    const char *name = sigabbrev_np(number);
    const char *cause = number == SIGKILL || number == SIGTERM
                            ? "a program in the sandbox sent it, no limit was reached"
                            : sigdescr_np(number);
    (void) complain("the program was ended by signal %d (SIG%s): %s", number, name ? name : "?",
                    cause ? cause : "a real-time signal");
}

static bool is_picture(const char *path)
{
    static const char *const endings[] = { ".png", ".svg", ".pdf", ".jpg", ".jpeg", ".html" };
    const char *ending = strrchr(path, '.');
    for_each(one, endings)
        if (ending && strcmp(ending, *one) == 0)
            return true;
    return false;
}

static void tell_what_was_made(const struct run_arguments *arguments, const glb_outcome *outcome)
{
    glb_artifact artifact;
    char first[128] = "";
    size_t count = 0;
    bool has_picture = false;
    for (; glb_outcome_artifact(outcome, count, &artifact, sizeof artifact) == GLB_OK; count++) {
        has_picture = has_picture || is_picture(artifact.path);
        if (count == 0)
            (void) snprintf(first, sizeof first, "%s", artifact.path);
    }
    if (count > 0 && !arguments->out)
        (void) complain("%zu file%s made (%s%s) and not saved here; add --out FOLDER", count,
                        count == 1 ? " was" : "s were", first, count == 1 ? "" : ", …");
    if (!has_picture && arguments->code && strstr(arguments->code, "plt.show("))
        (void) complain("plt.show() shows nothing here; call plt.savefig('chart.png') before it, "
                        "and add --out FOLDER");
}

void hints_tell(const struct hints *hints, const struct run_arguments *arguments,
                const glb_outcome *outcome)
{
    if (arguments->json || !outcome)
        return;
    int32_t status = glb_outcome_status(outcome);
    if (status == GLB_STATUS_ERROR) {
        tell_signal(glb_outcome_signal(outcome), outcome);
        tell_missing_file(hints, arguments);
    }
    if (status == GLB_STATUS_ERROR || status == GLB_STATUS_OK)
        tell_what_was_made(arguments, outcome);
}
