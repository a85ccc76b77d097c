/* review.c - each package manager has a helper, which prints its findings as JSON. */
#include "template/review.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "review_apt.h"
#include "review_npm.h"
#include "review_pip.h"
#include "template/approved.h"
#include "template/recipe_words.h"
#include "template/requests.h"
#include "template/review_run.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *helper;
} managers[] = { { "pip", review_pip_code },
                 { "apt", review_apt_code },
                 { "npm", review_npm_code } };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool is_word(const char *text, const char *letters)
{
    size_t length = strspn(text, letters);
    return length > 0 && length <= 100 && text[length] == '\0' && strchr(LETTERS, text[0]);
}

bool review_name_is_valid(const char *manager, const char *name)
{
    return strcmp(manager, "npm") == 0 ? recipe_is_npm_name(name) : is_word(name, LETTERS "-_.+");
}

bool review_version_is_valid(const char *version)
{
    return *version == '\0' || is_word(version, LETTERS "-_.+~:!");
}

/* The helper of a package manager; NULL if it is unknown. */
static const char *review_manager(const char *name)
{
    for_each(manager, managers)
        if (strcmp(manager->name, name) == 0)
            return manager->helper;
    return NULL;
}

int review_package(const char *state, int requests, struct json_object *request,
                   struct json_object **ret_facts, error *err)
{
    const char *id = approved_text(request, "id");
    const char *helper = review_manager(approved_text(request, "manager"));
    char manifest[PATH_MAX], folder[PATH_MAX];
    if (snprintf(manifest, sizeof manifest, "%s/templates/%s/manifest.json", state,
                 approved_text(request, "template")) >= (int) sizeof manifest ||
        snprintf(folder, sizeof folder, "%s/libs/%s/archives", state, id) >= (int) sizeof folder)
        return fail(err, ERR_BAD_REQUEST, "the state directory's path is too long");
    if (!helper)
        return fail(err, ERR_BAD_REQUEST, "request %s is of an unknown package manager", id);
    auto_fd archives = request_archives(requests, id, true, err);
    if (archives < 0)
        return -1;
    auto_text text = NULL;
    const struct review_run run = {
        .helper = helper,
        .manifest = manifest,
        .folder = folder,
        .archives = archives,
        .name = approved_text(request, "name"),
        .version = approved_text(request, "version"),
        .on_host = strcmp(approved_text(request, "manager"), "apt") == 0,
    };
    if (review_run(&run, &text, err) < 0)
        return -1;
    auto_json facts = json_tokener_parse(text);
    struct json_object *files = NULL;
    if (json_object_object_get_ex(facts, "files", &files) && json_object_array_length(files) > 0) {
        *ret_facts = take_json(&facts);
        return 0;
    }
    return fail(err, ERR_UNAVAILABLE,
                "nothing is left to be installed: the template has %s as it was asked for",
                approved_text(request, "name"));
}
