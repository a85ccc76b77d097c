/* packages.c - `glovebox libs`: lists what is installed in a template, from its manifest, and
 * dispatches the verbs that request packages. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/common/template_manifest.h"
#include "cli/operate/packages.h"
#include "cli/operate/template_view.h"
#include "cli/options.h"
#include "supervisor/install_paths.h"
#include "template/approved.h"
#include "json/member.h"

#include <stdio.h>
#include <string.h>

#define FIELD(name) offsetof(struct libs_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "template", 0, "NAME",   VALUES_TEMPLATE,   "request: for which template; default: python, of npm node", store_text,   FIELD(template_name) },
    { "pip",      0, NULL,     VALUES_NONE,   "request: a package of Python; the default",     store_switch, FIELD(pip) },
    { "apt",      0, NULL,     VALUES_NONE,   "request: a package of Debian",                  store_switch, FIELD(apt) },
    { "npm",      0, NULL,     VALUES_NONE,   "request: a package of npm",                      store_switch, FIELD(npm) },
    { "version",  0, "TEXT",   VALUES_NONE,   "request: this version; default: the newest",    store_text,   FIELD(version) },
    { "reason",   0, "TEXT",   VALUES_NONE,   "request, approve, deny: why; it is kept with it", store_text, FIELD(reason) },
    { "all",      0, NULL,     VALUES_NONE,   "review: what has been decided, too",            store_switch, FIELD(all) },
    { "json",     0, NULL,     VALUES_NONE,   "the same for programs",                         store_switch, FIELD(json) },
    { "state",    0, "FOLDER", VALUES_FOLDER, "where templates are kept",                      store_text,   FIELD(state) },
};

const struct option_table libs_option_table = {
    .verb = "libs",
    .examples = "  glovebox libs                  what the template python has\n"
                "  glovebox libs python numpy     only what has this word in its name\n"
                "  glovebox libs minimal --json\n"
                "  glovebox libs request numpy-financial --template python --reason \"net present value\"\n"
                "  glovebox libs review           requests that wait for a review\n"
                "  glovebox libs review ID        fetch it, read it, show what it is\n"
                "  glovebox libs approve ID       the next build of the template installs exactly that\n"
                "  glovebox libs deny ID          no; or no longer\n",
    .usage = "[OPTIONS] [TEMPLATE [WORD] | request PACKAGE | review|approve|deny ID]",
    .more = "Packages are fetched by this machine's own pip, apt or npm, as they are\n"
            "configured, and kept with their sha256 in STATE/libs; what is approved stands in\n"
            "STATE/libs/TEMPLATE.approved.yaml.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

/* A list of packages whose names contain `word`. */
struct listing {
    const char *word;
    bool as_json;
    size_t count;
};

static void print_package(struct listing *listing, json_object *package, const char *note)
{
    if (listing->word && !strcasestr(approved_text(package, "name"), listing->word))
        return;
    if (listing->as_json) {
        template_name_moments(package);
        (void) printf("%s%s", listing->count == 0 ? "[" : ",",
                      json_object_to_json_string_ext(package, JSON_C_TO_STRING_PLAIN));
    } else
        (void) printf("%-40s %s%s\n", approved_text(package, "name"),
                      approved_text(package, "version"), note);
    listing->count++;
}

static bool has_digest(json_object *packages, const char *digest)
{
    for (size_t index = 0; index < json_object_array_length(packages); index++)
        if (strcmp(approved_text(json_object_array_get_idx(packages, index), "sha256"), digest) ==
            0)
            return true;
    return false;
}

static bool has_name(json_object *packages, const char *name)
{
    for (size_t index = 0; index < json_object_array_length(packages); index++)
        if (strcasecmp(approved_text(json_object_array_get_idx(packages, index), "name"), name) ==
            0)
            return true;
    return false;
}

/* Prints one array of the manifest; a JSON row names the package manager. Approved packages are
 * left to print_approved(). */
static void print_part(struct listing *listing, json_object *manifest, const char *part,
                       const char *manager, const char *note)
{
    json_object *packages = json_member(manifest, part);
    json_object *approved = json_member(manifest, "approved");
    for (size_t index = 0; packages && index < json_object_array_length(packages); index++) {
        json_object *package = json_object_array_get_idx(packages, index);
        if (approved && has_name(approved, approved_text(package, "name")))
            continue;
        member_set_text(package, "manager", manager);
        (void) json_object_object_add(package, "built", json_object_new_boolean(true));
        print_package(listing, package, note);
    }
}

/* Prints the packages that were approved beyond the recipe, built in or not yet. */
static void print_approved(struct listing *listing, json_object *approved, json_object *inside)
{
    for (size_t index = 0; index < json_object_array_length(approved); index++) {
        json_object *row = json_object_array_get_idx(approved, index);
        auto_text note = NULL;
        error unheard;
        bool is_inside = inside && has_digest(inside, approved_text(row, "sha256"));
        (void) json_object_object_add(row, "built", json_object_new_boolean(is_inside));
        if (format_text(&note, &unheard, "  (%s, approved by %s%s)", approved_text(row, "manager"),
                        approved_text(row, "approved_by"),
                        is_inside ? "" : "; comes with the next build") == 0)
            print_package(listing, row, note);
    }
}

static int list_template(const struct libs_arguments *arguments, const char *name, const char *word,
                         error *err)
{
    struct listing listing = { .word = word, .as_json = arguments->json };
    auto_json manifest = NULL;
    auto_json approved = NULL;
    auto_text state = NULL;
    if (path_of_state(arguments->state, &state, err) < 0 ||
        read_template_manifest(arguments->state, name, &manifest, err) < 0)
        return -1;
    int result = approved_read(state, name, &approved, err);
    if (result == 0) {
        print_part(&listing, manifest, "python", "pip", "");
        print_part(&listing, manifest, "npm", "npm", "  (npm)");
        print_approved(&listing, approved, json_member(manifest, "approved"));
        print_part(&listing, manifest, "packages", "apt", "  (Debian)");
    }
    if (result == 0 && arguments->json)
        (void) puts(listing.count == 0 ? "[]" : "]");
    if (result == 0 && listing.count == 0 && word && !arguments->json)
        result = fail(err, ERR_NOT_FOUND,
                      "template %s has no package with '%.60s' in its name; ask for one with: "
                      "glovebox libs request NAME --template %s",
                      name, word, name);
    return result;
}

/* These words are verbs and not names of templates; `glovebox template show NAME` lists a template
 * with such a name. */
static const struct action {
    const char *name, *what; /* asked for if it is missing; NULL: optional */
    int (*take)(const struct libs_arguments *arguments, const char *what, error *err);
} actions[] = {
    { "request", "which package? as in: glovebox libs request NAME", libs_request },
    { "review", NULL, libs_review },
    { "approve", "which one? glovebox libs review shows them", libs_approve },
    { "deny", "which one? glovebox libs review shows them", libs_deny },
};

static int act(const struct libs_arguments *arguments, const char *const operands[2], error *err)
{
    for_each(action, actions) {
        if (!operands[0] || strcmp(action->name, operands[0]) != 0)
            continue;
        if (!operands[1] && action->what)
            return fail(err, ERR_BAD_REQUEST, "%s", action->what);
        return action->take(arguments, operands[1], err);
    }
    return list_template(arguments, operands[0] ? operands[0] : "python", operands[1], err);
}

int command_libs(int argc, char **argv)
{
    struct libs_arguments arguments = { 0 };
    error err = { 0 };
    const char *operands[2] = { NULL, NULL };
    struct words words = { argc, argv, 1, operands, 2 };
    int outcome = options_read_all(&libs_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    return act(&arguments, operands, &err) < 0 ? complain_of(&err) : 0;
}
