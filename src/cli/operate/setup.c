/* setup.c - `glovebox setup`: asks five questions, shows what it would write, and writes it after a
 * yes. It calls the usual verbs to make keys and templates. */
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/common/inputs.h"
#include "cli/common/replace_file.h"
#include "cli/common/settings_file.h"
#include "cli/operate/setup_answers.h"
#include "cli/options.h"
#include "supervisor/install_paths.h"
#include "supervisor/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0644, CALL_WORDS = 8 };

struct setup_arguments {
    const char *given[SETUP_ANSWERS]; /* NULL: ask for it */
    const char *config;
    bool yes, show;
};

struct setup {
    struct setup_arguments arguments;
    struct setup_answers answers;
    char *file;   /* glovebox.yaml */
    char *before; /* its content; NULL: there is no file */
    char *policy; /* path of the policy `online` */
};

#define FIELD(name) offsetof(struct setup_arguments, name)

static const struct option_row rows[] = {
    { "state", 0, "FOLDER", VALUES_FOLDER, "data folder: templates, keys, artifacts, the log",
      store_text, FIELD(given[SETUP_STATE]) },
    { "listen", 0, "ADDRESS:PORT", VALUES_NONE, "loopback address for HTTP, or none", store_text,
      FIELD(given[SETUP_LISTEN]) },
    { "keys", 0, "NAMES", VALUES_NONE, "API keys to make, with commas between them, or none",
      store_text, FIELD(given[SETUP_KEYS]) },
    { "network", 0, "SETS", VALUES_NONE,
      "sets of hosts that the policy online lets runs reach, or none", store_text,
      FIELD(given[SETUP_NETWORK]) },
    { "templates", 0, "NAMES", VALUES_NONE, "templates to build, or none", store_text,
      FIELD(given[SETUP_TEMPLATES]) },
    { "config", 0, "FILE", VALUES_FILE, "the file to write; default: see below", store_text,
      FIELD(config) },
    { "show", 0, NULL, VALUES_NONE, "show what would be written, and write nothing", store_switch,
      FIELD(show) },
    { "yes", 'y', NULL, VALUES_NONE, "ask nothing: what is not given is as the question proposes",
      store_switch, FIELD(yes) },
};

const struct option_table setup_option_table = {
    .verb = "setup",
    .examples =
        "  glovebox setup                                       asks, shows, writes\n"
        "  glovebox setup --yes --listen 127.0.0.1:7070 --keys ci,agents --templates python\n",
    .usage = "[OPTIONS]",
    .more = "Other settings of a file that is there already stay as they are. Root's file is\n"
            "/etc/glovebox/glovebox.yaml, which glovebox serve reads; other users' is\n"
            "$XDG_CONFIG_HOME/glovebox/glovebox.yaml, or in ~/.config: serve --config FILE\n"
            "reads it.\n",
    OPTION_ROWS(rows),
};

static int find_file(struct setup *setup, error *err)
{
    const char *file =
        setup->arguments.config ? setup->arguments.config : environment_text("GLOVEBOX_CONFIG");
    const char *home = environment_text("XDG_CONFIG_HOME");
    size_t size;
    int result = file ? format_text(&setup->file, err, "%s", file)
                 : geteuid() == 0
                     ? format_text(&setup->file, err, "%s", GLOVEBOX_SYSCONFDIR "/glovebox.yaml")
                 : home ? format_text(&setup->file, err, "%s/glovebox/glovebox.yaml", home)
                 : environment_text("HOME")
                     ? format_text(&setup->file, err, "%s/.config/glovebox/glovebox.yaml",
                                   environment_text("HOME"))
                     : fail(err, ERR_BAD_REQUEST, "HOME is not set; say --config FILE");
    if (result == 0 && access(setup->file, F_OK) == 0)
        result = read_input_file(setup->file, &setup->before, &size, err);
    return result;
}

/* Fills in the proposals: the present settings, else the defaults. */
static int propose(struct setup *setup, error *err)
{
    static struct settings settings;
    auto_text state = NULL;
    char(*list)[SETTING_SIZE] = setup->answers.list;
    settings_init(&settings);
    if (setup->before &&
        settings_read(&settings, setup->file, setup->before, strlen(setup->before), err) < 0)
        return -1;
    const char *set = settings.list[SETTING_state].text;
    const char *listen = settings.list[SETTING_listen].text;
    if (path_of_state(set[0] ? set : NULL, &state, err) < 0)
        return -1;
    (void) snprintf(list[SETUP_STATE], SETTING_SIZE, "%s", state);
    (void) snprintf(list[SETUP_LISTEN], SETTING_SIZE, "%s", listen[0] ? listen : "none");
    for (enum setup_answer id = SETUP_KEYS; id < SETUP_ANSWERS; id++)
        (void) snprintf(list[id], SETTING_SIZE, "none");
    return 0;
}

/* Proposes a template if none is built. */
static void propose_template(struct setup *setup)
{
    const char *state = setup->answers.list[SETUP_STATE];
    if (!launch_has_template(state, "python") && !launch_has_template(state, "minimal"))
        (void) snprintf(setup->answers.list[SETUP_TEMPLATES], SETTING_SIZE, "python");
}

/* Reads one line from the terminal; an empty line accepts the proposal. */
static int read_answer(const char *question, char answer[SETTING_SIZE], error *err)
{
    char line[SETTING_SIZE + 1];
    (void) printf("%s [%s]: ", question, answer);
    (void) fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return fail(err, ERR_BAD_REQUEST, "the questions were left; nothing was written");
    line[strcspn(line, "\n")] = '\0';
    if (line[0])
        (void) snprintf(answer, SETTING_SIZE, "%.*s", SETTING_SIZE - 1, line);
    return 0;
}

static int ask_one(struct setup *setup, enum setup_answer id, error *err)
{
    char choices[SETTING_SIZE] = "", question[2 * SETTING_SIZE];
    char *answer = setup->answers.list[id];
    static const char *const questions[SETUP_ANSWERS] = {
        "1. Data folder: templates, keys, artifacts and the log of receipts",
        "2. Address for HTTP beside the Unix socket, such as 127.0.0.1:7070",
        "3. API keys to make, by name; the address needs one",
        "4. Hosts that runs of the policy online may reach; sets: ",
        "5. Templates to build; minutes each: ",
    };
    if (id == SETUP_NETWORK)
        setup_list_sets(choices, sizeof choices);
    if (id == SETUP_TEMPLATES)
        setup_list_templates(choices, sizeof choices);
    (void) snprintf(question, sizeof question, "%s%s", questions[id], choices);
    for (;;) {
        char proposed[SETTING_SIZE];
        memcpy(proposed, answer, sizeof proposed);
        if (read_answer(question, answer, err) < 0)
            return -1;
        if (setup_check(id, answer, err) == 0)
            return 0;
        (void) complain_of(err);
        memcpy(answer, proposed, sizeof proposed);
    }
}

static int gather(struct setup *setup, error *err)
{
    bool asks = !setup->arguments.yes && isatty(STDIN_FILENO);
    for (enum setup_answer id = 0; id < SETUP_ANSWERS; id++) {
        const char *given = setup->arguments.given[id];
        if (id == SETUP_TEMPLATES)
            propose_template(setup);
        if (given && setup_check(id, given, err) < 0)
            return -1;
        if (given)
            (void) snprintf(setup->answers.list[id], SETTING_SIZE, "%s", given);
        else if (asks && ask_one(setup, id, err) < 0)
            return -1;
    }
    return format_text(&setup->policy, err, "%s/policies/online.yaml",
                       setup->answers.list[SETUP_STATE]);
}

static void print_indented(const char *path, const char *text)
{
    (void) printf("\n%s:\n", path);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        (void) printf("  %.*s\n", (int) length, line);
        line += length + (line[length] == '\n');
    }
}

/* Runs `glovebox WORD …`; NULL follows the last word. */
static int call(const char *const *words)
{
    static char texts[CALL_WORDS][SETTING_SIZE];
    char *argv[CALL_WORDS + 1] = { NULL };
    int argc = 0;
    for (; argc < CALL_WORDS && words[argc]; argc++) {
        (void) snprintf(texts[argc], sizeof texts[argc], "%s", words[argc]);
        argv[argc] = texts[argc];
    }
    const struct command *command = command_named(words[0]);
    optind = 0; /* the verb may call getopt() from the beginning */
    (void) fflush(stdout);
    return command ? command->handler(argc, argv) : EXIT_OWN_FAILURE;
}

static int call_for_each(const struct setup *setup, enum setup_answer id)
{
    char word[SETTING_SIZE];
    const char *state = setup->answers.list[SETUP_STATE];
    int status = 0;
    if (!setup_wants(&setup->answers, id))
        return 0;
    const char *rest = setup_next_word(setup->answers.list[id], word);
    for (; rest && status == 0; rest = setup_next_word(rest, word)) {
        if (id == SETUP_KEYS) {
            (void) printf("key %s:\n", word);
            status = call((const char *const[]){ "key", "create", "--name", word, "--scope",
                                                 "run,sessions", "--state", state, NULL });
        } else
            status =
                call((const char *const[]){ "template", "build", "--state", state, word, NULL });
    }
    return status;
}

static int write_all(const struct setup *setup, const char *settings, const char *policy,
                     error *err)
{
    if (geteuid() == 0)
        (void) umask(022); /* gloveboxd runs as another user and must read it */
    return make_folder(setup->answers.list[SETUP_STATE], 0755, err) < 0 ||
                   replace_file(setup->file, settings, FILE_MODE, err) < 0 ||
                   (policy && replace_file(setup->policy, policy, FILE_MODE, err) < 0)
               ? -1
               : 0;
}

static void tell_next(const struct setup *setup)
{
    bool is_system = strcmp(setup->file, GLOVEBOX_SYSCONFDIR "/glovebox.yaml") == 0;
    (void) printf("\nNext: glovebox serve%s%s\n", is_system ? "" : " --config ",
                  is_system ? ", or systemctl enable --now glovebox.socket glovebox.service"
                            : setup->file);
}

/* Returns the exit status. */
static int show_and_write(const struct setup *setup, error *err)
{
    auto_bytes settings = { 0 }, policy = { 0 };
    bool has_network = setup_wants(&setup->answers, SETUP_NETWORK);
    setup_write_settings(setup->before, &setup->answers, &settings);
    if (has_network)
        setup_write_policy(&setup->answers, &policy);
    print_indented(setup->file, bytes_text(&settings));
    if (has_network)
        print_indented(setup->policy, bytes_text(&policy));
    (void) printf("\ntemplates to build: %s\nkeys to make: %s\n",
                  setup->answers.list[SETUP_TEMPLATES], setup->answers.list[SETUP_KEYS]);
    if (setup->arguments.show)
        return 0;
    if (!setup->arguments.yes && !says_yes("Write it?"))
        return complain("nothing was written; say --yes to write without being asked");
    if (write_all(setup, bytes_text(&settings), has_network ? bytes_text(&policy) : NULL, err) < 0)
        return complain_of(err);
    int status = call_for_each(setup, SETUP_TEMPLATES); /* before keys: making those */
    if (status == 0)                                    /* turns root into the daemon's user */
        status = call_for_each(setup, SETUP_KEYS);
    if (status == 0)
        tell_next(setup);
    return status;
}

int command_setup(int argc, char **argv)
{
    static struct setup setup;
    struct words words = { argc, argv, 1 };
    error err = { 0 };
    int outcome = options_read_all(&setup_option_table, &setup.arguments, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome == 0)
        outcome = find_file(&setup, &err);
    if (outcome == 0)
        outcome = propose(&setup, &err);
    if (outcome == 0)
        outcome = gather(&setup, &err);
    int status = outcome < 0 ? complain_of(&err) : show_and_write(&setup, &err);
    free(setup.file);
    free(setup.before);
    free(setup.policy);
    return status;
}
