/* timestamp.c - see timestamp.h: RFC 3339, in UTC. */
#include "cli/timestamp.h"

#include <time.h>

const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE])
{
    struct tm parts;
    time_t at = (time_t) (at_ms / 1000);
    text[0] = '\0';
    if (at_ms != 0 && gmtime_r(&at, &parts))
        (void) strftime(text, TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}
