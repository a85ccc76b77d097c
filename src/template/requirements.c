/* requirements.c - one line at a time. */
#include "template/requirements.h"

#include "base/cleanup.h"
#include "template/recipe_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REQUIREMENTS_FILE_MAX = 256 * 1024, PROJECT_FILE_MAX = 8 << 20 };

/* A comment begins with the line, or behind a space; digests follow, often on own lines. */
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

static FILE *open_list(const char *file, off_t most, error *err)
{
    struct stat status;
    FILE *stream = fopen(file, "re");
    if (!stream && errno == ENOENT)
        (void) fail(err, ERR_NOT_FOUND, "there is no file '%s'; give one that lists packages",
                    file);
    else if (!stream)
        (void) fail_os(err, "read '%s'", file);
    else if (fstat(fileno(stream), &status) < 0 || !S_ISREG(status.st_mode) ||
             status.st_size > most) {
        (void) fail(err, ERR_BAD_REQUEST, "'%s' is no file of at most %lld bytes", file,
                    (long long) most);
        (void) fclose(stream);
        stream = NULL;
    }
    return stream;
}

int requirements_read(const char *file, struct json_object *list, error *err)
{
    FILE *stream = open_list(file, REQUIREMENTS_FILE_MAX, err);
    if (!stream)
        return -1;
    int result = 0;
    auto_text line = NULL;
    size_t room = 0;
    for (unsigned number = 1; result == 0 && getline(&line, &room, stream) >= 0; number++)
        result = take_line(file, number, cut(line), list, err);
    (void) fclose(stream);
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
    FILE *stream = open_list(file, PROJECT_FILE_MAX, err);
    if (!stream)
        return -1;
    auto_text text = NULL;
    size_t room = 0;
    ssize_t size = getdelim(&text, &room, '\0', stream);
    bool is_read = size >= 0 || feof(stream);
    (void) fclose(stream);
    if (!is_read)
        return fail_os(err, "read '%s'", file);
    if (size > 0 && text[size - 1] == '\0')
        return fail(err, ERR_BAD_REQUEST, "'%s' is no text: it has a zero byte", file);
    const char *slash = strrchr(file, '/');
    struct json_object *project = json_object_new_object();
    (void) json_object_object_add(project, "name",
                                  json_object_new_string(slash ? slash + 1 : file));
    (void) json_object_object_add(project, "text", json_object_new_string(size > 0 ? text : ""));
    *ret_project = project;
    return 0;
}
