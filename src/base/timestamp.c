/* timestamp.c - see timestamp.h. */
#include "base/timestamp.h"

#include <stdio.h>
#include <time.h>

static size_t write_seconds(int64_t at_ms, char text[TIMESTAMP_SIZE])
{
    struct tm parts;
    time_t at = (time_t) (at_ms / 1000);
    text[0] = '\0';
    if (at_ms <= 0 || !gmtime_r(&at, &parts))
        return 0;
    return strftime(text, TIMESTAMP_SIZE - sizeof ".000Z", "%Y-%m-%dT%H:%M:%S", &parts);
}

const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE])
{
    size_t size = write_seconds(at_ms, text);
    if (size > 0)
        (void) snprintf(text + size, TIMESTAMP_SIZE - size, "Z");
    return text;
}

const char *timestamp_write_ms(int64_t at_ms, char text[TIMESTAMP_SIZE])
{
    size_t size = write_seconds(at_ms, text);
    if (size > 0)
        (void) snprintf(text + size, TIMESTAMP_SIZE - size, ".%03uZ", (unsigned) (at_ms % 1000));
    return text;
}
