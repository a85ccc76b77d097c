/* libs.c - `glovebox libs`: what is installed in a template, from its manifest. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/inputs.h"
#include "cli/libs.h"
#include "cli/options.h"
#include "client/paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct libs_arguments {
    const char *state;
    bool json;
};

static const struct option_row rows[] = {
    { "json", 0, NULL, VALUES_NONE, "print a JSON array of name and version", store_switch,
      offsetof(struct libs_arguments, json) },
    { "state", 0, "FOLDER", VALUES_FOLDER, "where templates are kept", store_text,
      offsetof(struct libs_arguments, state) },
};

const struct option_table *libs_option_table(void)
{
    static const struct option_table table = {
        .verb = "libs",
        .examples = "  glovebox libs                  what the template python has\n"
                    "  glovebox libs python numpy     only what has this word in its name\n"
                    "  glovebox libs minimal --json\n",
        .usage = "[OPTIONS] [TEMPLATE] [WORD]",
        .rows = rows,
        .count = COUNT_OF(rows),
    };
    return &table;
}

static const char *text_of(json_object *object, const char *key)
{
    json_object *value = NULL;
    return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : "";
}

static void print_packages(json_object *packages, const char *word, bool as_json)
{
    bool first = true;
    for (size_t index = 0; index < json_object_array_length(packages); index++) {
        json_object *package = json_object_array_get_idx(packages, index);
        const char *name = text_of(package, "name");
        if (word && !strstr(name, word))
            continue;
        if (as_json)
            (void) printf("%s%s", first ? "[" : ",",
                          json_object_to_json_string_ext(package, JSON_C_TO_STRING_PLAIN));
        else
            (void) printf("%-40s %s\n", name, text_of(package, "version"));
        first = false;
    }
    if (as_json)
        (void) puts(first ? "[]" : "]");
}

int read_template_manifest(const char *state, const char *template_name, json_object **ret_manifest,
                           error *err)
{
    auto_text folder = NULL;
    auto_text path = NULL;
    auto_text text = NULL;
    size_t size = 0;
    if (strchr(template_name, '/') || template_name[0] == '.')
        return fail(err, ERR_BAD_REQUEST,
                    "'%s' is no name of a template; see glovebox template list", template_name);
    if (path_of_templates(state, &folder, err) < 0 ||
        format_text(&path, err, "%s/%s/manifest.json", folder, template_name) < 0)
        return -1;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "template %s is not built (looked in %s); run: glovebox template build %s",
                    template_name, folder, template_name);
    if (read_input_file(path, &text, &size, err) < 0)
        return -1;
    *ret_manifest = json_tokener_parse(text);
    if (!*ret_manifest)
        return fail(err, ERR_UNAVAILABLE, "'%s' is damaged; build the template again", path);
    return 0;
}

int command_libs(int argc, char **argv)
{
    struct libs_arguments arguments = { 0 };
    error err = { 0 };
    struct words words = { argc, argv, 1 };
    /* Flags may stand behind the names here: nothing is handed on. */
    const char *operands[2] = { "python", NULL };
    size_t count = 0;
    for (;;) {
        int outcome = options_read(libs_option_table(), &arguments, &words, &err);
        if (outcome == OPTIONS_HELP)
            return 0;
        if (outcome < 0)
            return complain_of(&err);
        if (words.next == words.count)
            break;
        if (count == COUNT_OF(operands))
            return complain("libs takes a template and a word, not '%s'; see glovebox libs --help",
                            argv[words.next]);
        operands[count++] = argv[words.next++];
    }
    json_object *manifest = NULL;
    json_object *packages = NULL;
    if (read_template_manifest(arguments.state, operands[0], &manifest, &err) < 0)
        return complain_of(&err);
    if (json_object_object_get_ex(manifest, "packages", &packages))
        print_packages(packages, operands[1], arguments.json);
    else if (arguments.json)
        (void) puts("[]");
    json_object_put(manifest);
    return 0;
}
