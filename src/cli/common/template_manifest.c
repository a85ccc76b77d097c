/* template_manifest.c - see template_manifest.h. */
#include "cli/common/template_manifest.h"

#include "base/cleanup.h"
#include "cli/common/inputs.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool comes_with_glovebox(const char *template_name)
{
    auto_text folder = NULL;
    auto_text path = NULL;
    error unheard;
    return path_of_data("templates", &folder, &unheard) == 0 &&
           format_text(&path, &unheard, "%s/%s.yaml", folder, template_name) == 0 &&
           access(path, R_OK) == 0;
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
        return comes_with_glovebox(template_name)
                   ? fail(
                         err, ERR_NOT_FOUND,
                         "template %s is not built (looked in %s); run: glovebox template build %s",
                         template_name, folder, template_name)
                   : fail(err, ERR_NOT_FOUND,
                          "there is no template '%.60s' (looked in %s); one of your own is built "
                          "from its file: glovebox template build FILE.yaml",
                          template_name, folder);
    if (read_input_file(path, &text, &size, err) < 0)
        return -1;
    *ret_manifest = json_tokener_parse(text);
    if (!*ret_manifest)
        return fail(err, ERR_UNAVAILABLE, "'%s' is damaged; build the template again", path);
    return 0;
}
