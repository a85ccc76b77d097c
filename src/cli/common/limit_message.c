/* limit_message.c - see limit_message.h. */
#include "cli/common/limit_message.h"

#include "cli/commands.h"
#include "model/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of limit_sentence(): "…; ask for limits.memory_bytes up to 4294967296 or a wider policy".
 */
void limit_message_print(const glb_limit_reached *limit, const char *before, const char *after)
{
    static const char ask[] = "; ask for limits.", up_to[] = " up to ";
    enum limit_id id = limit_find(limit->name);
    const char *end = strstr(limit->message, ask);
    const char *number = end ? strstr(end, up_to) : NULL;
    if (!number || id == LIMITS) {
        (void) complain("%s", limit->message);
        return;
    }
    number += sizeof up_to - 1;
    char maximum[32];
    if (limit_rows[id].unit == UNIT_MILLI)
        (void) snprintf(maximum, sizeof maximum, "%.*s", (int) strcspn(number, " "), number);
    else
        limit_print(id, strtoull(number, NULL, 10), maximum, sizeof maximum);
    (void) complain("%.*s; ask for more with %s%s%s, up to %s, or a wider policy",
                    (int) (end - limit->message), limit->message, before, limit->name, after,
                    maximum);
}

const char *limit_option(const char *name, char *text, size_t size)
{
    (void) snprintf(text, size, "%s", name);
    for (char *letter = text; (letter = strchr(letter, '_'));)
        *letter = '-';
    return text;
}
