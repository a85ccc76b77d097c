/* timestamp.c - see timestamp.h. */
#include "base/timestamp.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

/* 0001-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: other years have no form in RFC 3339. */
#define FIRST_MS INT64_C(-62135596800000)
#define LAST_MS  INT64_C(253402300799999)

const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE])
{
    struct tm parts;
    int64_t since_ms = (at_ms < FIRST_MS ? FIRST_MS : at_ms > LAST_MS ? LAST_MS : at_ms) - FIRST_MS;
    time_t at = (time_t) (since_ms / 1000 + FIRST_MS / 1000);
    (void) gmtime_r(&at, &parts);
    (void) snprintf(text, TIMESTAMP_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                    (unsigned) (parts.tm_year + 1900) % 10000, (unsigned) (parts.tm_mon + 1) % 100,
                    (unsigned) parts.tm_mday % 100, (unsigned) parts.tm_hour % 100,
                    (unsigned) parts.tm_min % 100, (unsigned) parts.tm_sec % 100,
                    (unsigned) (since_ms % 1000));
    return text;
}

int64_t timestamp_read(const char *text)
{
    struct tm parts = { 0 };
    int64_t ms = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest && *rest == '.')
        for (int64_t unit = 100; isdigit((unsigned char) *++rest); unit /= 10)
            ms += (*rest - '0') * unit;
    rest = rest ? strptime(rest, "%z", &parts) : NULL;
    if (!rest || *rest != '\0')
        return 0;
    long offset_s = parts.tm_gmtoff; /* timegm() overwrites it */
    return ((int64_t) timegm(&parts) - offset_s) * 1000 + ms;
}
