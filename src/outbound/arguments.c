/* arguments.c - see arguments.h. */
#include "outbound/arguments.h"

#include <stdlib.h>
#include <string.h>

static int read_one(const struct argument *known, size_t known_count, const char *name,
                    const char *value, error *err)
{
    for (size_t i = 0; i < known_count; i++) {
        const struct argument *argument = &known[i];
        const char *behind = argument->number && argument->text ? strchr(value, '=') : NULL;
        if (strcmp(argument->name, name) != 0)
            continue;
        if (argument->number && argument->text && !behind)
            return fail(err, ERR_BAD_REQUEST, "option %s takes FD=PATH", name);
        if (argument->number)
            *argument->number = (int) strtol(value, NULL, 10);
        if (argument->text)
            *argument->text = behind ? behind + 1 : value;
        return 0;
    }
    return fail(err, ERR_BAD_REQUEST, "there is no option '%s'", name);
}

int arguments_read(int count, char **words, const struct argument *known, size_t known_count,
                   error *err)
{
    for (int i = 1; i + 1 < count; i += 2)
        if (read_one(known, known_count, words[i], words[i + 1], err) < 0)
            return -1;
    if (count % 2 == 0)
        return fail(err, ERR_BAD_REQUEST, "only glovebox serve can start this program");
    return 0;
}
