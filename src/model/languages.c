/* languages.c - see languages.h. */
#include "model/languages.h"

#include "base/table.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *alias, *name; /* an alias in any case */
} aliases[] = {
    { "js", "node" },    { "javascript", "node" }, { "nodejs", "node" },   { "node", "node" },
    { "py", "python" },  { "python3", "python" },  { "python", "python" }, { "sh", "bash" },
    { "shell", "bash" }, { "bash", "bash" },       { "c++", "cpp" },       { "cpp", "cpp" },
    { "pl", "perl" },    { "perl", "perl" },       { "r", "r" },           { "c", "c" },
};

const char *language_name(const char *name)
{
    for_each(row, aliases)
        if (strcasecmp(row->alias, name) == 0)
            return row->name;
    return name;
}

bool language_is(const char *name, const char *other)
{
    return strcmp(language_name(name), language_name(other)) == 0;
}
