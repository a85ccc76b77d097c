/* prepare.c - work in the new root that sandboxes then need not do: compiles Python, runs the
 * recipe's commands, and lists Python's distributions. */
#include "template/build.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "model/template_bounds.h"
#include "template/approved.h"
#include "template/tool.h"
#include "template/tree.h"
#include "template/walls.h"
#include "try_imports.h"
#include "try_packages.h"
#include "try_pip.h"
#include "json/member.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VARIABLES_MAX = 64, ARGUMENTS_MAX = 4 + TEMPLATE_PREPARE_MAX };

/* As in a sandbox, except: HOME is the skeleton of homes, hashes are the same in every build, and
 * only compile_all writes .pyc files. */
static const char *const fixed_variables[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "HOME=/usr/share/glovebox/skel",
    "LANG=C.UTF-8",
    "TZ=UTC",
    "TMPDIR=/tmp",
    "PYTHONHASHSEED=0",
    "PYTHONDONTWRITEBYTECODE=1",
    "OPENBLAS_NUM_THREADS=1",
    "SOURCE_DATE_EPOCH=1735689600",
};

/* The digest of a template must not depend on the order of compilation, but the reference flags in
 * a .pyc depend on what the process has compiled before. So each file is compiled in its own
 * process, forked from the same parent. A .pyc has the hash of its source, unchecked when it is
 * loaded: times do not matter, and an import needs one system call less. */
static const char compile_all[] =
    "import os, py_compile, sys\n"
    "sources = []\n"
    "for top in sys.argv[1:]:\n"
    "    for where, folders, files in os.walk(top):\n"
    "        sources += [os.path.join(where, file) for file in files if file.endswith('.py')]\n"
    "sources.sort()\n"
    "def compile_one(source):\n"
    "    try:\n"
    "        py_compile.compile(source, doraise=True,\n"
    "            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
    "    except Exception:\n"
    "        pass # some packages ship examples in older Pythons\n"
    "running, most = 0, max(1, len(os.sched_getaffinity(0)))\n"
    "for done, source in enumerate(sources):\n"
    "    if done % 500 == 0:\n"
    "        print('compiled', done, 'of', len(sources), 'Python files', file=sys.stderr, "
    "flush=True)\n"
    "    if running == most:\n"
    "        os.wait()\n"
    "        running -= 1\n"
    "    if os.fork() == 0:\n"
    "        compile_one(source)\n"
    "        os._exit(0)\n"
    "    running += 1\n"
    "while running:\n"
    "    os.wait()\n"
    "    running -= 1\n";

static const char list_distributions[] =
    "import importlib.metadata, sys\n"
    "found = {}\n"
    "python = 'python%d.%d' % sys.version_info[:2]\n"
    "for folder in ['local/lib/' + python, 'lib/python3', 'lib/' + python]:\n"
    "    sys.path.append('/usr/' + folder + '/dist-packages')\n"
    "for one in importlib.metadata.distributions():\n"
    "    found.setdefault(one.metadata['Name'] or '?', one.version or '?')\n"
    "for name, version in sorted(found.items()):\n"
    "    print(name, version, sep='\\t')\n";

static void collect_variables(const struct build *build, char **variables, char *room, size_t size)
{
    size_t count = 0, used = 0;
    for_each(variable, fixed_variables) {
        variables[count++] = room + used;
        used += (size_t) snprintf(room + used, size - used, "%s", *variable) + 1;
    }
    json_object_object_foreach(build_key(build, "env"), name, value)
    {
        size_t needed = strlen(name) + strlen(json_object_get_string(value)) + 2;
        if (count == VARIABLES_MAX || used + needed > size)
            break;
        variables[count++] = room + used;
        used += (size_t) snprintf(room + used, size - used, "%s=%s", name,
                                  json_object_get_string(value)) +
                1;
    }
    variables[count] = NULL;
}

/* Runs a command in the new root. Gives *ret_text, its stdout, unless `ret_text` is NULL. */
static int run_inside(struct build *build, char **arguments, char **ret_text, error *err)
{
    char room[8192];
    char *variables[VARIABLES_MAX + 1];
    collect_variables(build, variables, room, sizeof(room));
    const struct walls walls = {
        .root = build->root_path,
        .disk = build->root_path,
        .binds = build->binds,
    };
    struct tool tool = {
        .arguments = arguments,
        .variables = variables,
        .walls = &walls,
        .line = build_says,
        .context = build,
    };
    int result = ret_text ? tool_read(&tool, ret_text, err) : tool_run(&tool, err);
    if (result < 0 && !tool_interrupted && *tool.tail) {
        return under(err, "in the new root: %.300s", tool_last_line(&tool));
    }
    return result;
}

int build_run_python(struct build *build, const char *code, const char *const *more,
                     char **ret_text, error *err)
{
    /* -S: does not run code that packages have added to the start of Python (.pth files). */
    char program[] = "/usr/bin/python3", alone[] = "-I", no_site[] = "-S", option[] = "-c";
    char *arguments[ARGUMENTS_MAX + 1] = { program, alone, no_site, option, strdup(code) };
    size_t count = 5;
    for (; more && *more && count < ARGUMENTS_MAX; more++)
        arguments[count++] = strdup(*more);
    int result = run_inside(build, arguments, ret_text, err);
    for (size_t index = 4; index < count; index++)
        free(arguments[index]);
    return result;
}

static int note_distributions(struct build *build, error *err)
{
    auto_text text = NULL;
    if (build_run_python(build, list_distributions, NULL, &text, err) < 0)
        return under(err, "list Python's distributions");
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        char *version = strchr(line, '\t');
        if (!version)
            continue;
        *version++ = '\0';
        struct json_object *one = json_object_new_object();
        member_set_text(one, "name", line);
        member_set_text(one, "version", version);
        (void) json_object_array_add(build->distributions, one);
    }
    return 0;
}

int build_run(struct build *build, const char *const *words, error *err)
{
    char *arguments[ARGUMENTS_MAX + 1] = { NULL };
    size_t count = 0;
    for (; count < ARGUMENTS_MAX && words[count]; count++)
        arguments[count] = strdup(words[count]);
    int result = run_inside(build, arguments, NULL, err);
    while (count-- > 0)
        free(arguments[count]);
    return result;
}

static int run_recipe_command(struct build *build, struct json_object *words, error *err)
{
    const char *arguments[ARGUMENTS_MAX + 1] = { NULL };
    for (size_t index = 0; index < json_object_array_length(words); index++)
        arguments[index] = json_object_get_string(json_object_array_get_idx(words, index));
    return build_run(build, arguments, err);
}

/* Is the program there? Links in the root are followed within it. */
static bool has_program(const struct build *build, const char *path)
{
    return faccessat(build->root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Runs ldconfig(8): without its cache every program searches all directories for libraries. */
static int index_libraries(struct build *build, error *err)
{
    char program[] = "/sbin/ldconfig", ignore[] = "-i";
    char *arguments[] = { program, ignore, NULL };
    if (!has_program(build, "usr/sbin/ldconfig") && !has_program(build, "sbin/ldconfig"))
        return 0;
    if (run_inside(build, arguments, NULL, err) < 0)
        return -1;
    auto_fd cache = tree_open(build->root, "var/cache", O_RDONLY | O_DIRECTORY);
    return cache < 0 ? 0 : tree_remove(cache, "ldconfig", err); /* it holds inode numbers */
}

int prepare_tree(struct build *build, error *err)
{
    static const char *const python_places[] = {
        "/usr/lib/python3",    "/usr/lib/python3.9",  "/usr/lib/python3.10",
        "/usr/lib/python3.11", "/usr/lib/python3.12", "/usr/lib/python3.13",
        "/usr/lib/python3.14", "/usr/local/lib",      NULL
    };
    if (index_libraries(build, err) < 0)
        return -1;
    bool python = has_program(build, "usr/bin/python3");
    if (python && (build_run_python(build, compile_all, python_places, NULL, err) < 0 ||
                   note_distributions(build, err) < 0))
        return -1;
    struct json_object *commands = build_key(build, "prepare");
    for (size_t index = 0; index < json_object_array_length(commands); index++)
        if (run_recipe_command(build, json_object_array_get_idx(commands, index), err) < 0)
            return under(err, "command %zu", index + 1);
    return 0;
}

/* Imports a set as its zygote will, with site-packages. If that fails, so does the build, and the
 * previous template stays. */
static int try_set(struct build *build, const char *name, struct json_object *modules, error *err)
{
    const char *arguments[ARGUMENTS_MAX + 1] = { "/usr/bin/python3", "-c", try_imports_code, name };
    for (size_t index = 0; index < json_object_array_length(modules); index++)
        arguments[4 + index] = json_object_get_string(json_object_array_get_idx(modules, index));
    return build_run(build, arguments, err);
}

/* Imports each approved package of pip, without site, so that no .pth file of theirs runs. */
static int try_approved(struct build *build, error *err)
{
    auto_json names = json_object_new_array();
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        if (strcmp(approved_text(row, "manager"), "pip") == 0)
            json_object_array_add(names, json_object_new_string(approved_text(row, "name")));
    }
    const char *const imported[] = {
        "/usr/bin/python3", "-S", "-c", try_pip_code, json_object_to_json_string(names), NULL
    };
    return json_object_array_length(names) > 0 ? build_run(build, imported, err) : 0;
}

int try_imports(struct build *build, error *err)
{
    const char *const packages[] = { "/usr/bin/node", "-e", try_packages_code,
                                     json_object_to_json_string(build_key(build, "npm")), NULL };
    if (build->npm && build_run(build, packages, err) < 0)
        return -1;
    if (!has_program(build, "usr/bin/python3"))
        return 0;
    json_object_object_foreach(build_key(build, "zygotes"), name, modules)
    {
        if (json_object_array_length(modules) > 0 && try_set(build, name, modules, err) < 0)
            return -1;
    }
    struct json_object *wheels = build_key(build, "pip");
    const char *const imported[] = { "/usr/bin/python3", "-c", try_pip_code,
                                     json_object_to_json_string(wheels), NULL };
    if (json_object_array_length(wheels) > 0 && build_run(build, imported, err) < 0)
        return -1;
    return try_approved(build, err);
}
