/* timestamp.c - see timestamp.h: RFC 3339, in UTC. */
#include "cli/timestamp.h"

#include <time.h>

const char *moment_write(int64_t at_ms, char text[MOMENT_SIZE])
{
    struct tm parts;
    time_t at = (time_t) (at_ms / 1000);
    text[0] = '\0';
    if (at_ms != 0 && gmtime_r(&at, &parts))
        (void) strftime(text, MOMENT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}
