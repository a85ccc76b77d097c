/* run_arguments.c - the flags of `run` and `exec`: a table, and a row for each limit. */
#include "cli/run/run_arguments.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/folder_input.h"
#include "cli/common/inputs.h"
#include "cli/common/limit_message.h"
#include "cli/options.h"
#include "model/limits.h"
#include "supervisor/install_paths.h"

#include <string.h>

static int take_file(void *into, const struct option_row *row, const char *value, error *err)
{
    struct run_arguments *arguments = into;
    if (!*value)
        return fail(err, ERR_BAD_REQUEST, "--%s is empty; give %s", row->name, row->value);
    return read_file_argument(value, arguments->files, RUN_FILES_MAX, &arguments->file_count, err);
}

static int take_variable(void *into, const struct option_row *row, const char *value, error *err)
{
    (void) row;
    struct run_arguments *arguments = into;
    if (arguments->variable_count == RUN_VARIABLES_MAX)
        return fail(err, ERR_BAD_REQUEST, "more than %d variables", RUN_VARIABLES_MAX);
    if (!strchr(value, '=') || value[0] == '=')
        return fail(err, ERR_BAD_REQUEST, "--env takes NAME=VALUE, not '%s'", value);
    arguments->variables[arguments->variable_count++] = value;
    return 0;
}

/* Was "64" probably meant as "64MiB"? */
static bool lacks_its_unit(const struct limit_row *limit, const char *value, uint64_t number)
{
    bool is_bare = value[strspn(value, "0123456789")] == '\0';
    return limit->unit == UNIT_BYTES && is_bare && number > 0 && number < limit->min &&
           number <= limit->max >> 20 && number << 20 >= limit->min;
}

static int take_limit(void *into, const struct option_row *row, const char *value, error *err)
{
    struct run_arguments *arguments = into;
    enum limit_id id = (enum limit_id) row->field;
    const struct limit_row *limit = &limit_rows[id];
    uint64_t number = 0;
    if (limit_parse(id, value, &number, err) < 0)
        return under(err, "--%s", row->name);
    if (number < limit->min || number > limit->max) {
        char min[32], max[32];
        limit_print(id, limit->min, min, sizeof min);
        limit_print(id, limit->max, max, sizeof max);
        if (lacks_its_unit(limit, value, number))
            return fail(
                err, ERR_LIMIT,
                "--%s %s is %s bytes, and %s to %s can be given; write --%s %sMiB if that is "
                "meant",
                row->name, value, value, min, max, row->name, value);
        return fail(err, ERR_LIMIT, "--%s %s is out of bounds; give %s to %s", row->name, value,
                    min, max);
    }
    arguments->limits[arguments->limit_count % RUN_LIMITS_MAX] =
        (glb_limit){ .name = limit->name, .value = number };
    if (arguments->limit_count < RUN_LIMITS_MAX)
        arguments->limit_count++;
    return 0;
}

#define FIELD(name) offsetof(struct run_arguments, name)

/* name, letter, value, completion, text, function, field */
/* clang-format off */
static const struct option_row own_rows[] = {
    { "code",     'c', "CODE",       VALUES_NONE,     "run this text",                                   store_text,    FIELD(code_text) },
    { "language", 'l', "LANGUAGE",   VALUES_LANGUAGE, "of the code; default: by name or first line, else python, or the first of the policy", store_text, FIELD(language) },
    { "policy",   'p', "NAME",       VALUES_POLICY,   "what the run may do; default: the daemon's, which is data where its template is built", store_text, FIELD(policy) },
    { "template", 0,   "NAME",       VALUES_TEMPLATE,     "root file system; default: what the policy says", store_text,    FIELD(template_name) },
    { "file",     'f', "FILE[:PATH][:ro]", VALUES_FILE, "copy a file or folder to /workspace (or PATH there); :ro makes it read-only", take_file, 0 },
    { "out",      'o', "FOLDER",     VALUES_FOLDER,   "write the files that the run makes here",         store_text,    FIELD(out) },
    { "receipt",  0,   "FILE",       VALUES_FILE,     "write the signed receipt of the run here",        store_text,    FIELD(receipt) },
    { "expect",   0,   "FILE",       VALUES_FILE,     "compare the output with what this JSON file expects; 65 if it is something else", store_text, FIELD(expect) },
    { "env",      'e', "NAME=VALUE", VALUES_NONE,     "set an environment variable",                     take_variable, 0 },
    { "stdin",    'i', NULL,         VALUES_NONE,     "pass stdin on; default: the program reads nothing", store_switch, FIELD(pass_stdin) },
    { "json",     0,   NULL,         VALUES_NONE,     "print the whole result as JSON on stdout",        store_switch,  FIELD(json) },
    { "no-wait",  0,   NULL,         VALUES_NONE,     "where a person is asked first: give the approval's id at once, and 126", store_switch, FIELD(no_wait) },
    { "daemon",   0,   "SOCKET|HOST:PORT", VALUES_FILE, "use the daemon at this socket or port (GLOVEBOX_API_KEY is its key)", store_text,    FIELD(daemon) },
    { "private",  0,   NULL,         VALUES_NONE,     "use no running daemon, start one for this call",  store_switch,  FIELD(private) },
    { "state",    0,   "FOLDER",     VALUES_FOLDER,   "where templates are kept",                        store_text,    FIELD(state) },
    { "verbose",  'v', NULL,         VALUES_NONE,     "say on stderr what is chosen and how long it takes", store_switch, FIELD(verbose) },
};
/* clang-format on */

enum { ROWS = COUNT_OF(own_rows) + LIMITS };

/* Returns our rows and those of the limits. It makes them at the first call, since names and texts
 * of limits come from limits.def. */
static const struct option_row *all_rows(void)
{
    static struct option_row rows[ROWS];
    static char names[LIMITS][32];
    static const char *const values[] = {
        [UNIT_COUNT] = "N", [UNIT_BYTES] = "SIZE", [UNIT_MSEC] = "TIME", [UNIT_MILLI] = "N"
    };
    if (rows[0].name)
        return rows;
    memcpy(rows, own_rows, sizeof own_rows);
    for (size_t id = 0; id < LIMITS; id++) {
        const struct limit_row *limit = &limit_rows[id];
        rows[COUNT_OF(own_rows) + id] = (struct option_row){
            .name = limit_option(limit->name, names[id], sizeof names[id]),
            .value = values[limit->unit],
            .text = limit->text,
            .take = take_limit,
            .field = id,
        };
    }
    return rows;
}

#define ENDINGS                                                                          \
    "SIZE is a number with K, M or G (MB is MiB); TIME with ms, s, m or h.\n"            \
    "The program's exit status passes through. 124: ended for a time or output limit;\n" \
    "137: out of memory; 126: denied by policy, or a limit that cannot be had;\n"        \
    "125: glovebox could not run it; 65: it ended with 0, and its output is not what\n"  \
    "--expect says.\n"

const struct option_table *run_option_table(void)
{
    static struct option_table table = {
        .verb = "run",
        .examples = "  glovebox run script.py arg            run a script with an argument\n"
                    "  glovebox run project                  run a folder: its main.py, main.sh …\n"
                    "  glovebox run -c \"print(6 * 7)\"        run a line of code\n"
                    "  echo 'print(1)' | glovebox run -      run code from stdin\n"
                    "  glovebox run --file data.csv --out out plot.py\n"
                    "                                        send a file, save what is made\n"
                    "  glovebox run --file data.csv:/workspace/in/x.csv:ro plot.py\n"
                    "  glovebox run --wall 1s --memory 64MiB --cpus 0.5 script.py\n"
                    "  cat data | glovebox run --stdin script.py\n"
                    "  glovebox run --expect table.json --out out report.py\n"
                    "                                        is what it made as expected?\n",
        .usage = "[OPTIONS] FILE|FOLDER|- [ARGUMENTS]\n       glovebox run [OPTIONS] -c CODE "
                 "[ARGUMENTS]",
        .more = ENDINGS,
        .count = ROWS,
    };
    table.rows = all_rows();
    return &table;
}

const struct option_table *exec_option_table(void)
{
    static struct option_row rows[ROWS];
    static struct option_table table = {
        .verb = "exec",
        .examples = "  glovebox exec -- ls -l /              run a command\n"
                    "  glovebox exec --file a.tar -- tar xf a.tar\n"
                    "  glovebox exec --out out -- bash -c 'date > now'\n",
        .usage = "[OPTIONS] -- COMMAND [ARGUMENTS]",
        .more = ENDINGS,
        .rows = rows,
        .count = ROWS,
    };
    memcpy(rows, all_rows(), sizeof rows);
    for (size_t index = 0; index < ROWS; index++) /* accepted only to be refused with a reason */
        if (strcmp(rows[index].name, "code") == 0 || strcmp(rows[index].name, "language") == 0)
            rows[index].text = NULL;
    return &table;
}

/* A folder is copied to /workspace, and its main file runs. */
static int take_folder(struct run_arguments *arguments, const char *folder, char **ret_path,
                       error *err)
{
    struct folder_input input = { .folder = folder, .target = "" };
    if (folder_entry(folder, &input.without, err) < 0 ||
        folder_read(&input, arguments->files, RUN_FILES_MAX, &arguments->file_count, err) < 0)
        return -1;
    return format_text(ret_path, err, "%s/%s", folder, input.without);
}

/* Reads code from a file, or from the main file of a folder. */
static int take_code_file(struct run_arguments *arguments, const char *path, size_t *ret_size,
                          error *err)
{
    auto_text entry = NULL;
    if (is_folder(path) && take_folder(arguments, path, &entry, err) < 0)
        return -1;
    if (entry)
        path = entry;
    if (read_input_file(path, &arguments->code, ret_size, err) < 0)
        return -1;
    arguments->file_name = strdup(text_last_name(path));
    if (!arguments->file_name)
        return fail(err, ERR_INTERNAL, "out of memory");
    if (!arguments->language)
        arguments->language = language_of_file(path, arguments->code, *ret_size);
    if (*ret_size == 0)
        return fail(err, ERR_BAD_REQUEST, "'%s' is empty; give code", path);
    return 0;
}

/* Reads the code: -c, "-", a file or a folder. The words after it are arguments of the code. */
static int take_code(struct run_arguments *arguments, const struct words *words, error *err)
{
    int next = words->next;
    size_t size = 0;
    if (arguments->code_text) {
        arguments->code = strdup(arguments->code_text);
        if (!arguments->code)
            return fail(err, ERR_INTERNAL, "out of memory");
        size = strlen(arguments->code);
    } else if (next >= words->count) {
        return fail(err, ERR_BAD_REQUEST,
                    "there is nothing to run; give a file, - for stdin, or -c CODE");
    } else if (strcmp(words->words[next], "-") == 0) {
        next++;
        if (arguments->pass_stdin)
            return fail(err, ERR_BAD_REQUEST,
                        "stdin cannot be both code and input; give the code as a file");
        if (read_to_end(STDIN_FILENO, "stdin", &arguments->code, &size, err) < 0)
            return -1;
    } else {
        if (take_code_file(arguments, words->words[next++], &size, err) < 0)
            return -1;
    }
    if (size == 0)
        return fail(err, ERR_BAD_REQUEST, "the code is empty; give some");
    arguments->code_length = size;
    arguments->arguments = (const char *const *) (words->words + next);
    return 0;
}

int run_arguments_read(struct run_arguments *arguments, bool is_exec, int argc, char **argv,
                       error *err)
{
    struct words words = { argc, argv, 1 };
    const struct option_table *table = is_exec ? exec_option_table() : run_option_table();
    int outcome = options_read(table, arguments, &words, err);
    if (outcome != OPTIONS_TAKEN)
        return outcome;
    if (arguments->private && arguments->daemon)
        return fail(err, ERR_BAD_REQUEST, "--private and --daemon exclude each other; give one");
    if (is_exec) {
        if (arguments->code_text || arguments->language)
            return fail(err, ERR_BAD_REQUEST, "exec takes a command, not code; use glovebox run");
        if (words.next >= argc)
            return fail(err, ERR_BAD_REQUEST,
                        "there is no command; write glovebox exec -- COMMAND");
        arguments->command = (const char *const *) (argv + words.next);
    } else if (take_code(arguments, &words, err) < 0) {
        return -1;
    }
    if (arguments->expect && read_expectation(arguments->expect, &arguments->expectation, err) < 0)
        return -1;
    if (arguments->pass_stdin)
        return read_to_end(STDIN_FILENO, "stdin", &arguments->input, &arguments->input_length, err);
    return 0;
}

void run_arguments_done(struct run_arguments *arguments)
{
    for (size_t index = 0; index < arguments->file_count; index++) {
        free((void *) (uintptr_t) arguments->files[index].path);
        free((void *) (uintptr_t) arguments->files[index].content);
    }
    free(arguments->code);
    free(arguments->file_name);
    free(arguments->input);
    free(arguments->expectation);
}

glb_run_options run_arguments_options(const struct run_arguments *arguments)
{
    return (glb_run_options){
        .code = arguments->code,
        .code_length = arguments->code_length,
        .language = arguments->command ? NULL : arguments->language,
        .file_name = arguments->file_name,
        .command = arguments->command,
        .arguments = arguments->arguments,
        .policy = arguments->policy,
        .template_name = arguments->template_name,
        .limits = arguments->limits,
        .limit_count = arguments->limit_count,
        .environment = arguments->variables,
        .input = arguments->input,
        .input_length = arguments->input_length,
        .files = arguments->files,
        .file_count = arguments->file_count,
        .file_size = sizeof *arguments->files,
        .expectation = arguments->expectation,
    };
}
