/* template.c - `glovebox template build|list|show|verify|remove|rollback`: root file systems, made
 * and kept by name. */
#include "cli/commands.h"

#include "cli/operate/template_progress.h"
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

#include <assert.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help_text[] =
    "Makes and keeps templates: the root file systems that code runs in.\n"
    "\n"
    "  glovebox template build python         build a template that comes with glovebox\n"
    "  glovebox template build my.yaml        build one of your own\n"
    "  glovebox template build minimal --base host-copy\n"
    "                                         without network, from this machine's packages\n"
    "  glovebox template list                 what has been built, and what can be\n"
    "  glovebox template show python          digest, runners, packages and versions\n"
    "  glovebox template verify               are the files still those that were built?\n"
    "  glovebox template rollback python      the one that was in use before the last build\n"
    "  glovebox template remove python\n"
    "  glovebox template export python python.tar.gz\n"
    "                                         one file, for a machine without network (or "
    ".tar.zst,\n"
    "                                         .tar.xz, .tar)\n"
    "  glovebox template import python.tar.gz\n"
    "\n"
    "  --base debian|host-copy   where packages come from (instead of what the file says)\n"
    "  --offline                 --base host-copy, and wheels from the cache of earlier builds\n"
    "  --requirements FILE       Python packages besides those of the recipe: requirements.txt,\n"
    "                            pyproject.toml, or the lock of uv, Poetry, PDM or PEP 751\n"
    "  --name NAME               build it under this name instead of the file's\n"
    "  --record                  of verify: put what is found into the log of receipts\n"
    "  --state DIR               where templates are kept\n"
    "  --json                    print JSON\n";

/* What the command line says. */
struct wishes {
    const char *state; /* --state */
    const char *base;  /* --base */
    const char *name;  /* --name */
    const char *requirements;
    bool is_offline, record, json, help;
    const char *verb, *what, *file; /* what stands behind the options */
};

static int check_wishes(const struct wishes *wishes)
{
    const char *base = wishes->base;
    if (base && strcmp(base, "debian") != 0 && strcmp(base, "host-copy") != 0)
        return complain("--base must be debian or host-copy, not '%s'", base);
    if (wishes->name && !recipe_name_is_valid(wishes->name))
        return complain("--name must be 1 to %d of a-z, 0-9 and '-', not '%.80s'", RECIPE_NAME_MAX,
                        wishes->name);
    return 0;
}

static int parse_wishes(int argc, char **argv, struct wishes *ret_wishes)
{
    static const struct option options[] = {
        { "state", required_argument, NULL, 's' },
        { "base", required_argument, NULL, 'b' },
        { "offline", no_argument, NULL, 'o' },
        { "record", no_argument, NULL, 'R' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { "name", required_argument, NULL, 'n' },
        { "requirements", required_argument, NULL, 'r' },
        { NULL, 0, NULL, 0 },
    };
    struct wishes wishes = { .json = false };
    int option;
    optind = 1;
    opterr = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1)
        switch (option) {
        case 's':
            wishes.state = optarg;
            break;
        case 'b':
            wishes.base = optarg;
            break;
        case 'n':
            wishes.name = optarg;
            break;
        case 'r':
            wishes.requirements = optarg;
            break;
        case 'o':
            wishes.is_offline = true;
            wishes.base = "host-copy";
            break;
        case 'R':
            wishes.record = true;
            break;
        case 'j':
            wishes.json = true;
            break;
        case 'h':
            wishes.help = true;
            break;
        case ':':
            return complain("%s needs a value; see glovebox template --help", argv[optind - 1]);
        default:
            return complain("there is no option '%s'; see glovebox template --help",
                            argv[optind - 1]);
        }
    int words = argc > optind && strcmp(argv[optind], "export") == 0 ? 3 : 2;
    if (argc - optind > words)
        return complain("'%s' is one word too many; see glovebox template --help",
                        argv[optind + words]);
    wishes.verb = argc > optind ? argv[optind] : NULL;
    wishes.what = argc > optind + 1 ? argv[optind + 1] : NULL;
    wishes.file = argc > optind + 2 ? argv[optind + 2] : NULL;
    *ret_wishes = wishes;
    return check_wishes(&wishes);
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

/* A word with a '/' or ".yaml" is a file; any other is one of the templates that come with
 * glovebox. */
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

/* RECIPE.yaml pins its wheels in RECIPE.lock, another list of packages in one of its own name. */
static int find_lock(const char *recipe, char **ret_path, error *err)
{
    assert(recipe);
    size_t length = strlen(recipe);
    bool is_yaml = length > 5 && strcmp(recipe + length - 5, ".yaml") == 0;
    return format_text(ret_path, err, "%.*s.lock", (int) (is_yaml ? length - 5 : length), recipe);
}

/* What a project's file lists besides: into the recipe, or as *ret_project. */
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
    struct json_object *recipe = NULL, *manifest = NULL, *project = NULL;
    if (!wishes->what)
        return complain("which template? as in: glovebox template build minimal");
    if (find_recipe(wishes->what, &path, err) < 0 || recipe_read(path, &recipe, err) < 0)
        return complain_of(err);
    if (find_lock(wishes->requirements ? wishes->requirements : path, &lock, err) < 0 ||
        add_requirements(wishes->requirements, recipe, &project, err) < 0) {
        (void) json_object_put(recipe);
        return complain_of(err);
    }
    if (wishes->name)
        (void) json_object_object_add(recipe, "name", json_object_new_string(wishes->name));
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
        .is_offline = wishes->is_offline,
        .progress = build_progress,
        .context = &display,
    };
    template_print_cost(recipe);
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
    (void) json_object_put(manifest);
    (void) json_object_put(project);
    (void) json_object_put(recipe);
    if (result == 0)
        return 0;
    int status = complain_of(err);
    return tool_interrupted ? EXIT_CANCELLED : status;
}

/* What scripts ask of a list; packages are a matter for `show`. */
static struct json_object *without_packages(struct json_object *manifests)
{
    for (size_t index = 0; index < json_object_array_length(manifests); index++) {
        struct json_object *manifest = json_object_array_get_idx(manifests, index);
        json_object_object_del(manifest, "packages");
        json_object_object_del(manifest, "python");
    }
    return manifests;
}

static int list(const struct wishes *wishes, const char *state, error *err)
{
    struct json_object *manifests = NULL;
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
    (void) json_object_put(manifests);
    return 0;
}

/* For a misspelt name there is no advice to build it. */
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
    struct json_object *manifest = NULL;
    if (!wishes->what)
        return complain("which template? see glovebox template list");
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_manifest(store, wishes->what, &manifest, err) < 0)
        return complain_of_missing(wishes->what, err);
    if (wishes->json)
        template_print_json(manifest);
    else
        template_print(manifest);
    (void) json_object_put(manifest);
    return 0;
}

static int remove_one(const struct wishes *wishes, const char *state, error *err)
{
    if (!wishes->what)
        return complain("which template? see glovebox template list");
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_sweep(store, err) < 0 || store_remove(store, wishes->what, err) < 0)
        return complain_of(err);
    if (wishes->json)
        (void) printf("{\"removed\": \"%s\"}\n", wishes->what);
    return 0;
}

/* Takes the manifest. */
static int told(const struct wishes *wishes, struct json_object *manifest)
{
    if (wishes->json)
        template_print_json(manifest);
    else
        template_print_row(manifest);
    (void) json_object_put(manifest);
    return 0;
}

static int rollback(const struct wishes *wishes, const char *state, error *err)
{
    struct json_object *manifest = NULL;
    if (!wishes->what)
        return complain("which template? see glovebox template list");
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_rollback(store, wishes->what, err) < 0 ||
        store_manifest(store, wishes->what, &manifest, err) < 0)
        return complain_of(err);
    return told(wishes, manifest);
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
    struct json_object *manifest = NULL;
    if (!wishes->what)
        return complain("which file? as in: glovebox template import minimal.tar.gz");
    auto_fd file = open(wishes->what, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        (void) fail_os(err, "open '%s'", wishes->what);
        return complain_of(err);
    }
    catch_signals();
    (void) umask(022);
    if (template_import(state, file, &manifest, err) < 0) {
        (void) under(err, "import '%s'", wishes->what);
        int status = complain_of(err);
        return tool_interrupted ? EXIT_CANCELLED : status;
    }
    return told(wishes, manifest);
}

static int verify(const struct wishes *wishes, const char *state, error *err)
{
    const struct template_verification asked = { state, wishes->what, wishes->record,
                                                 wishes->json };
    int status = template_verify_all(&asked, err);
    return status < 0 ? complain_of(err) : status;
}

int command_template(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(const struct wishes *, const char *, error *);
    } verbs[] = {
        { "build", build },       { "list", list },         { "show", show },
        { "remove", remove_one }, { "export", export_one }, { "import", import_one },
        { "rollback", rollback }, { "verify", verify },
    };
    struct wishes wishes = { .json = false };
    error err;
    int status = parse_wishes(argc, argv, &wishes);
    if (status != 0)
        return status;
    if (wishes.help) {
        (void) fputs(help_text, stdout);
        return 0;
    }
    auto_text state = NULL;
    if (path_of_state(wishes.state, &state, &err) < 0)
        return complain_of(&err);
    const char *meant = verb_meant("template", wishes.verb);
    for_each(verb, verbs)
        if (meant && strcmp(meant, verb->name) == 0)
            return verb->act(&wishes, state, &err);
    return complain_of_verb("template", wishes.verb);
}
