/* requirements.c - one line at a time. */
#include "template/requirements.h"

#include "base/cleanup.h"
#include "template/recipe.h"
#include "template/recipe_words.h"
#include "json/member.h"

#include <ctype.h>
#include <string.h>

enum { REQUIREMENTS_FILE_MAX = 256 * 1024, PROJECT_FILE_MAX = 8 << 20 };

/* Removes comments, which begin a line or follow a space, and digests. */
static const char *cut(char *line)
{
    size_t length = strcspn(line, "\r\n");
    for (size_t i = 0; i < length; i++)
        if (line[i] == '#' && (i == 0 || isspace((unsigned char) line[i - 1])))
            length = i;
    line[length] = '\0';
    char *digest = strstr(line, "--hash=");
    if (digest)
        length = (size_t) (digest - line);
    while (length > 0 && (isspace((unsigned char) line[length - 1]) || line[length - 1] == '\\'))
        length--;
    line[length] = '\0';
    return line + strspn(line, " \t");
}

static int take_line(const char *file, unsigned number, const char *text, struct json_object *list,
                     error *err)
{
    if (*text == '\0')
        return 0;
    if (*text == '-')
        return fail(
            err, ERR_BAD_REQUEST,
            "%s:%u: '%.60s' is an option of pip; list the packages alone, and set the index "
            "in pip.conf",
            file, number, text);
    if (!recipe_is_requirement(text))
        return fail(err, ERR_BAD_REQUEST,
                    "%s:%u: '%.60s' is no package of an index, as in pandas>=2.2; addresses and "
                    "folders are not taken",
                    file, number, text);
    return json_object_array_add(list, json_object_new_string(text)) < 0
               ? fail(err, ERR_SYSTEM, "no memory for '%s'", file)
               : 0;
}

int requirements_read(const char *file, struct json_object *list, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    int result = recipe_read_text(file, REQUIREMENTS_FILE_MAX, &text, &size, err);
    char *rest = text, *line;
    for (unsigned number = 1; result == 0 && (line = strsep(&rest, "\n")); number++)
        result = take_line(file, number, cut(line), list, err);
    return result;
}

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

bool requirements_are_of_project(const char *file)
{
    return ends_in(file, ".toml") || ends_in(file, ".lock");
}

int requirements_read_project(const char *file, struct json_object **ret_project, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    if (recipe_read_text(file, PROJECT_FILE_MAX, &text, &size, err) < 0)
        return -1;
    if (strlen(text) != size)
        return fail(err, ERR_BAD_REQUEST, "'%s' is no text: it has a zero byte", file);
    const char *slash = strrchr(file, '/');
    struct json_object *project = json_object_new_object();
    member_set_text(project, "name", slash ? slash + 1 : file);
    member_set_text(project, "text", text);
    *ret_project = project;
    return 0;
}
