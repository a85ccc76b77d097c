/* template.c - `glovebox template build|list|show|verify|tune|remove|rollback`: makes and keeps
 * root file systems by name. */
#include "cli/commands.h"
#include "cli/options.h"

#include "cli/operate/template_progress.h"
#include "cli/operate/template_tune.h"
#include "cli/operate/template_verify.h"
#include "cli/operate/template_view.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "supervisor/install_paths.h"
#include "template/archive.h"
#include "template/build.h"
#include "template/recipe.h"
#include "template/requirements.h"
#include "template/store.h"
#include "template/tool.h"
#include "json/member.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The command line. */
struct wishes {
    const char *state, *base, *name, *requirements, *daemon;
    bool is_offline, record, json;
    const char *verb, *what, *file; /* words beside the options */
};

#define FIELD(name) offsetof(struct wishes, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "base",         0, "debian|host-copy", VALUES_NONE,   "build: where packages come from; default: what the file says", store_text, FIELD(base) },
    { "offline",      0, NULL,               VALUES_NONE,   "build: --base host-copy, and wheels and packages of npm from earlier builds", store_switch, FIELD(is_offline) },
    { "requirements", 0, "FILE",             VALUES_FILE,   "build: Python packages besides: requirements.txt, pyproject.toml, or the lock of uv, Poetry, PDM or PEP 751", store_text, FIELD(requirements) },
    { "name",         0, "NAME",             VALUES_NONE,   "build: under this name instead of the file's", store_text, FIELD(name) },
    { "record",       0, NULL,               VALUES_NONE,   "verify: put what is found into the log of receipts", store_switch, FIELD(record) },
    { "daemon",       0, "SOCKET|HOST:PORT", VALUES_FILE,   "tune: the daemon's socket or port; default: where it is looked for", store_text, FIELD(daemon) },
    { "state",        0, "FOLDER",           VALUES_FOLDER, "where templates are kept", store_text, FIELD(state) },
    { "json",         0, NULL,               VALUES_NONE,   "print JSON", store_switch, FIELD(json) },
};

const struct option_table template_option_table = {
    .verb = "template",
    .examples =
        "Makes and keeps templates: the root file systems that code runs in.\n"
        "\n"
        "  glovebox template build python         build a template that comes with glovebox\n"
        "  glovebox template build my.yaml        build one of your own\n"
        "  glovebox template build minimal --base host-copy\n"
        "                                         without network, from this machine's packages\n"
        "  glovebox template list                 what has been built, and what can be\n"
        "  glovebox template show python          digest, runners, packages and versions\n"
        "  glovebox template verify               are the files still those that were built?\n"
        "  glovebox template tune python          which modules its programs import, and which its\n"
        "                                         zygotes would better have\n"
        "  glovebox template rollback python      the one that was in use before the last build\n"
        "  glovebox template remove python\n"
        "  glovebox template export python python.tar.gz\n"
        "                                         one file, for a machine without network (or .tar.zst,\n"
        "                                         .tar.xz, .tar)\n"
        "  glovebox template import python.tar.gz\n",
    .usage = "build|list|show|verify|tune|remove|rollback|export|import [OPTIONS] [NAME|FILE]",
    .more = "A recipe lists Debian's packages under `packages`, those of other indexes under\n"
            "`pip`, `npm` and `r`. What pip and npm fetch is pinned in RECIPE.lock and\n"
            "RECIPE.npm.lock beside it.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

static int check_wishes(struct wishes *wishes)
{
    const char *base = wishes->base;
    if (wishes->file && strcmp(wishes->verb, "export") != 0)
        return complain("'%s' is one word too many; see glovebox template --help", wishes->file);
    if (base && strcmp(base, "debian") != 0 && strcmp(base, "host-copy") != 0)
        return complain("--base must be debian or host-copy, not '%s'", base);
    if (wishes->is_offline)
        wishes->base = "host-copy";
    if (wishes->name && !recipe_name_is_valid(wishes->name))
        return complain("--name must be 1 to %d of a-z, 0-9 and '-', not '%.80s'", RECIPE_NAME_MAX,
                        wishes->name);
    return 0;
}

static void note_signal(int number)
{
    (void) number;
    tool_interrupted = 1;
}

static void catch_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = note_signal };
    for_each(number, numbers)
        (void) sigaction(*number, &action, NULL);
}

/* Finds the recipe: a word with a '/' or ".yaml" is a path, any other names a template that comes
 * with glovebox. */
static int find_recipe(const char *what, char **ret_path, error *err)
{
    size_t length = strlen(what);
    if (strchr(what, '/') || (length > 5 && strcmp(what + length - 5, ".yaml") == 0))
        return format_text(ret_path, err, "%s", what);
    if (!recipe_name_is_valid(what))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no name of a template", what);
    auto_text folder = NULL;
    if (path_of_data("templates", &folder, err) < 0 ||
        format_text(ret_path, err, "%s/%s.yaml", folder, what) < 0)
        return -1;
    if (access(*ret_path, R_OK) == 0)
        return 0;
    free(*ret_path);
    *ret_path = NULL;
    return fail(
        err, ERR_NOT_FOUND,
        "no template '%s' comes with glovebox; see glovebox template list, or give a YAML file",
        what);
}

/* Finds a file beside RECIPE.yaml with another ending: RECIPE.lock pins its wheels; other package
 * managers have lists of their own. */
static int find_lock(const char *recipe, const char *ending, char **ret_path, error *err)
{
    assert(recipe);
    size_t length = strlen(recipe);
    bool is_yaml = length > 5 && strcmp(recipe + length - 5, ".yaml") == 0;
    return format_text(ret_path, err, "%.*s%s", (int) (is_yaml ? length - 5 : length), recipe,
                       ending);
}

/* Adds the requirements of a project's file to the recipe, or gives them as *ret_project. */
static int add_requirements(const char *file, struct json_object *recipe,
                            struct json_object **ret_project, error *err)
{
    if (!file)
        return 0;
    return requirements_are_of_project(file)
               ? requirements_read_project(file, ret_project, err)
               : requirements_read(file, json_object_object_get(recipe, "pip"), err);
}

static int build(const struct wishes *wishes, const char *state, error *err)
{
    auto_text path = NULL;
    auto_text lock = NULL;
    auto_text npm_lock = NULL;
    auto_json recipe = NULL;
    auto_json manifest = NULL;
    auto_json project = NULL;
    if (!wishes->what)
        return complain("which template? as in: glovebox template build minimal");
    if (find_recipe(wishes->what, &path, err) < 0 || recipe_read(path, &recipe, err) < 0 ||
        find_lock(wishes->requirements ? wishes->requirements : path, ".lock", &lock, err) < 0 ||
        find_lock(path, ".npm.lock", &npm_lock, err) < 0 ||
        add_requirements(wishes->requirements, recipe, &project, err) < 0)
        return complain_of(err);
    if (wishes->name)
        member_set_text(recipe, "name", wishes->name);
    struct build_display display = {
        .terminal = isatty(STDERR_FILENO) == 1,
        .started_ms = now_ms(),
        .template = template_text(recipe, "name"),
    };
    struct build_request request = {
        .recipe = recipe,
        .project = project,
        .state = state,
        .base = wishes->base,
        .lock = lock,
        .npm_lock = npm_lock,
        .is_offline = wishes->is_offline,
        .progress = build_progress,
        .context = &display,
    };
    template_print_cost(recipe, npm_lock);
    catch_signals();
    (void) umask(022);
    int result = template_build(&request, &manifest, err);
    build_progress_end(&display);
    if (result == 0 && wishes->json)
        template_print_json(manifest);
    else if (result == 0)
        (void) printf("%s %s\n%" PRId64 " MiB in %" PRId64 " files, %zu packages, %.1f s\n",
                      template_text(manifest, "name"), template_text(manifest, "digest"),
                      json_object_get_int64(json_object_object_get(manifest, "bytes")) >> 20,
                      json_object_get_int64(json_object_object_get(manifest, "files")),
                      json_object_array_length(json_object_object_get(manifest, "packages")),
                      (double) (now_ms() - display.started_ms) / 1000);
    if (result == 0)
        return 0;
    int status = complain_of(err);
    return tool_interrupted ? EXIT_CANCELLED : status;
}

/* Removes the packages, which a list does not show. */
static struct json_object *without_packages(struct json_object *manifests)
{
    for (size_t index = 0; index < json_object_array_length(manifests); index++) {
        struct json_object *manifest = json_object_array_get_idx(manifests, index);
        json_object_object_del(manifest, "packages");
        json_object_object_del(manifest, "python");
        json_object_object_del(manifest, "npm");
    }
    return manifests;
}

static int list(const struct wishes *wishes, const char *state, error *err)
{
    auto_json manifests = NULL;
    auto_fd store = store_open(state, false, err);
    if (store < 0 && err->code != ERR_NOT_FOUND)
        return complain_of(err);
    if (store < 0)
        manifests = json_object_new_array();
    else if (store_list(store, &manifests, err) < 0)
        return complain_of(err);
    if (wishes->json) {
        template_print_json(without_packages(manifests));
    } else {
        for (size_t index = 0; index < json_object_array_length(manifests); index++)
            template_print_row(json_object_array_get_idx(manifests, index));
        template_print_unbuilt(store);
    }
    return 0;
}

/* Suggests a build only for a name that has a recipe. */
static int complain_of_missing(const char *name, const error *err)
{
    auto_text path = NULL;
    error unheard;
    if (err->code == ERR_NOT_FOUND && recipe_name_is_valid(name) &&
        find_recipe(name, &path, &unheard) < 0)
        return complain("there is no template '%s'; see glovebox template list", name);
    return complain_of(err);
}

static int show(const struct wishes *wishes, const char *state, error *err)
{
    auto_json manifest = NULL;
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_manifest(store, wishes->what, &manifest, err) < 0)
        return complain_of_missing(wishes->what, err);
    (wishes->json ? template_print_json : template_print)(manifest);
    return 0;
}

static int remove_one(const struct wishes *wishes, const char *state, error *err)
{
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_sweep(store, err) < 0 || store_remove(store, wishes->what, err) < 0)
        return complain_of(err);
    if (wishes->json)
        (void) printf("{\"removed\": \"%s\"}\n", wishes->what);
    return 0;
}

static int rollback(const struct wishes *wishes, const char *state, error *err)
{
    auto_json manifest = NULL;
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_rollback(store, wishes->what, err) < 0 ||
        store_manifest(store, wishes->what, &manifest, err) < 0)
        return complain_of(err);
    (wishes->json ? template_print_json : template_print_row)(manifest);
    return 0;
}

static int export_one(const struct wishes *wishes, const char *state, error *err)
{
    if (!wishes->what || !wishes->file)
        return complain("which template, and to which file? as in: glovebox template export "
                        "minimal minimal.tar.gz");
    catch_signals();
    if (template_export(state, wishes->what, wishes->file, err) < 0)
        return complain_of_missing(wishes->what, err);
    return 0;
}

static int import_one(const struct wishes *wishes, const char *state, error *err)
{
    auto_json manifest = NULL;
    if (!wishes->what)
        return complain("which file? as in: glovebox template import minimal.tar.gz");
    auto_fd file = open(wishes->what, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return complain("cannot read '%s': %s; check the name", wishes->what,
                        strerrordesc_np(errno));
    catch_signals();
    (void) umask(022);
    if (template_import(state, file, &manifest, err) < 0) {
        (void) under(err, "import '%s'", wishes->what);
        int status = complain_of(err);
        return tool_interrupted ? EXIT_CANCELLED : status;
    }
    (wishes->json ? template_print_json : template_print_row)(manifest);
    return 0;
}

static int verify(const struct wishes *wishes, const char *state, error *err)
{
    const struct template_verification asked = { state, wishes->what, wishes->record,
                                                 wishes->json };
    int status = template_verify_all(&asked, err);
    if (status < 0 && wishes->what)
        return complain_of_missing(wishes->what, err);
    return status < 0 ? complain_of(err) : status;
}

static int tune(const struct wishes *wishes, const char *state, error *err)
{
    const struct template_tuning asked = { state, wishes->what, wishes->daemon, wishes->json };
    return template_tune(&asked, err) < 0 ? complain_of_missing(wishes->what, err) : 0;
}

int command_template(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(const struct wishes *, const char *, error *);
        bool needs_name;
    } verbs[] = {
        { "build", build, false },       { "list", list, false },
        { "show", show, true },          { "remove", remove_one, true },
        { "export", export_one, false }, { "import", import_one, false },
        { "rollback", rollback, true },  { "verify", verify, false },
        { "tune", tune, true },
    };
    struct wishes wishes = { .json = false };
    error err = { 0 };
    auto_text state = NULL;
    const char *given[3] = { NULL };
    struct words words = { argc, argv, 1, given, 3 };
    int outcome = options_read_all(&template_option_table, &wishes, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    wishes.verb = given[0];
    wishes.what = given[1];
    wishes.file = given[2];
    int status = check_wishes(&wishes);
    if (status != 0)
        return status;
    if (path_of_state(wishes.state, &state, &err) < 0)
        return complain_of(&err);
    const char *meant = verb_meant("template", wishes.verb);
    for_each(verb, verbs)
        if (meant && strcmp(meant, verb->name) == 0)
            return verb->needs_name && !wishes.what
                       ? complain("which template? see glovebox template list")
                       : verb->act(&wishes, state, &err);
    return complain_of_verb("template", wishes.verb);
}
