/* requirements.c - one line at a time. */
#include "template/requirements.h"

#include "base/cleanup.h"
#include "template/recipe_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { REQUIREMENTS_FILE_MAX = 256 * 1024 };

/* A comment begins with the line, or behind a space; digests follow, often on lines of their own.
 */
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
    struct stat status;
    FILE *stream = fopen(file, "re");
    if (!stream && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND, "there is no file '%s'; give one that lists packages",
                    file);
    if (!stream)
        return fail_os(err, "read '%s'", file);
    int result = 0;
    if (fstat(fileno(stream), &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size > REQUIREMENTS_FILE_MAX)
        result = fail(err, ERR_BAD_REQUEST, "'%s' is no file of at most %d bytes", file,
                      REQUIREMENTS_FILE_MAX);
    auto_text line = NULL;
    size_t room = 0;
    for (unsigned number = 1; result == 0 && getline(&line, &room, stream) >= 0; number++)
        result = take_line(file, number, cut(line), list, err);
    (void) fclose(stream);
    return result;
}
