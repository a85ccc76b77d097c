/* top.c - `glovebox top`: asks the daemon for its state, once or every two seconds. */
#include "cli/operate/top.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "cli/options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

enum { EVERY_MS = 2000, ANSWER_MS = 5000 };

struct top_arguments {
    const char *socket;
    bool once, json;
};

#define FIELD(name) offsetof(struct top_arguments, name)

static const struct option_row rows[] = {
    { "once", 0, NULL, VALUES_NONE,
      "print one page and leave; so it is too when stdout is no terminal", store_switch,
      FIELD(once) },
    { "json", 0, NULL, VALUES_NONE, "print the daemon's answer: GET /v1/status", store_switch,
      FIELD(json) },
    { "daemon", 0, "SOCKET|HOST:PORT", VALUES_FILE,
      "the daemon's socket or port; default: where it is looked for", store_text, FIELD(socket) },
};

const struct option_table top_option_table = {
    .verb = "top",
    .examples =
        "  glovebox top                          keys, pools and sessions, every two seconds\n"
        "  glovebox top --once                   one page\n"
        "  glovebox top --json | jq .keys        for programs\n",
    .usage = "[OPTIONS]",
    .more = "q or Ctrl-C leaves. Below the tables it says which limits look too tight, and\n"
            "which keys run into theirs again and again.\n",
    OPTION_ROWS(rows),
};

/* Gives the text of the answer and its value; the caller frees both. */
static int ask(const char *place, char **ret_text, json_object **ret_value, error *err)
{
    const struct question question = { place, "/v1/status", "application/json", NULL, ANSWER_MS };
    const struct question sessions = { place, "/v1/sessions?limit=50", "application/json", NULL,
                                       ANSWER_MS };
    auto_text text = NULL;
    auto_json page = NULL;
    error unheard; /* a key may lack the scope for sessions: leave them out */
    if (ask_value(&question, ret_text, ret_value, err) < 0)
        return -1;
    if (ask_value(&sessions, &text, &page, &unheard) == 0)
        (void) json_object_object_add(*ret_value, "live",
                                      json_object_get(json_member(page, "sessions")));
    return 0;
}

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
    ended_by = number;
}

/* Makes the terminal give each key at once, without echo. Returns false if stdin is no terminal. */
static bool take_keyboard(struct termios *ret_before)
{
    struct sigaction action = { .sa_handler = on_signal };
    if (tcgetattr(STDIN_FILENO, ret_before) < 0)
        return false;
    (void) sigaction(SIGINT, &action, NULL); /* restore the terminal before the end */
    (void) sigaction(SIGTERM, &action, NULL);
    struct termios keys = *ret_before;
    keys.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

/* True after the key q, or a signal to end. */
static bool wants_to_leave(bool has_keyboard)
{
    struct pollfd watched = { .fd = STDIN_FILENO, .events = POLLIN };
    char typed;
    deadline end = deadline_in(EVERY_MS);
    while (!deadline_has_passed(end)) {
        if (poll(&watched, has_keyboard ? 1 : 0, (int) deadline_left_ms(end)) <= 0)
            return ended_by != 0;
        if (read(STDIN_FILENO, &typed, 1) <= 0)
            return true;
        if (typed == 'q')
            return true;
    }
    return false;
}

/* Prints page after page, each over the last one. */
static int watch(const char *place, error *err)
{
    auto_json before = NULL;
    int64_t before_ms = 0;
    int result;
    struct termios terminal;
    bool has_keyboard = take_keyboard(&terminal);
    for (;;) {
        auto_text text = NULL;
        json_object *now = NULL;
        result = ask(place, &text, &now, err);
        if (result < 0)
            break;
        int64_t moment_ms = now_ms();
        struct winsize window = { 0 };
        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        (void) fputs("\x1b[H\x1b[2J", stdout);
        top_print(now, before, (double) (moment_ms - before_ms) / 1000, &window);
        (void) fflush(stdout);
        (void) json_object_put(before);
        before = now;
        before_ms = moment_ms;
        if (wants_to_leave(has_keyboard))
            break;
    }
    if (has_keyboard)
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
    return result;
}

int command_top(int argc, char **argv)
{
    struct top_arguments arguments = { 0 };
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    auto_text text = NULL;
    auto_json value = NULL;
    int outcome = options_read_all(&top_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    if (!arguments.once && !arguments.json && isatty(STDOUT_FILENO))
        return watch(arguments.socket, &err) < 0 ? complain_of(&err)
               : ended_by                        ? 128 + ended_by
                                                 : 0;
    if (ask(arguments.socket, &text, &value, &err) < 0)
        return complain_of(&err);
    if (arguments.json)
        (void) fputs(text, stdout);
    else
        top_print(value, NULL, 0, NULL);
    return 0;
}
