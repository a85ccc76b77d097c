/* limits.c - limits.def as a table; the only code that reads and writes values for people. */
#include "model/limits.h"

#include "base/table.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A JSON name has its unit, if that is not clear from the name. */
#define JSON_NAME_COUNT(name) #name
#define JSON_NAME_BYTES(name) #name "_bytes"
#define JSON_NAME_MSEC(name)  #name "_ms"
#define JSON_NAME_MILLI(name) #name

const struct limit_row limit_rows[LIMITS] = {
#define LIMIT(name, unit, start, min, max, text)                                      \
    [LIMIT_##name] = { #name, JSON_NAME_##unit(name),        UNIT_##unit, start, min, \
                       max,   offsetof(struct limits, name), text },
#include "model/limits.def"
};

/* Suffixes, largest first: a value is printed with the first that divides it. Only processors, in
 * thousandths, have fractions. Suffixes of sizes may be in upper or lower case, and MB is 1024 KiB,
 * as in Docker and in kernel parameters. */
static const struct suffix {
    enum unit unit;
    const char *text;  /* as it is read, without a blank before it */
    const char *print; /* as it is written; NULL: only for reading */
    uint64_t factor;
} suffixes[] = {
    /* clang-format off */
    { UNIT_BYTES, "GiB", " GiB",   GiB     },
    { UNIT_BYTES, "MiB", " MiB",   MiB     },
    { UNIT_BYTES, "KiB", " KiB",   KiB     },
    { UNIT_BYTES, "GB",  NULL,     GiB     },
    { UNIT_BYTES, "MB",  NULL,     MiB     },
    { UNIT_BYTES, "KB",  NULL,     KiB     },
    { UNIT_BYTES, "G",   NULL,     GiB     },
    { UNIT_BYTES, "M",   NULL,     MiB     },
    { UNIT_BYTES, "K",   NULL,     KiB     },
    { UNIT_BYTES, "",    " bytes", 1       },
    { UNIT_MSEC,  "h",   " h",     3600000 },
    { UNIT_MSEC,  "m",   " min",   60000   },
    { UNIT_MSEC,  "s",   " s",     1000    },
    { UNIT_MSEC,  "ms",  " ms",    1       },
    { UNIT_COUNT, "",    "",       1       },
    { UNIT_MILLI, "",    NULL,     1       }, /* printed with decimals */
    /* clang-format on */
};

/* The message for a run that reached a limit: text, the granted value, text. */
static const struct {
    const char *before;
    const char *after;
} sentences[LIMITS] = {
    [LIMIT_wall] = { "execution exceeded the ", " wall-clock limit" },
    [LIMIT_cpu] = { "execution exceeded the ", " limit of processor time" },
    [LIMIT_cpus] = { "execution was slowed to the limit of ", " processors" },
    [LIMIT_memory] = { "execution ran out of memory at the limit of ",
                       ", in which files in /workspace and /tmp count" },
    [LIMIT_processes] = { "execution reached the limit of ", " processes and threads at once" },
    [LIMIT_disk] = { "files reached the limit of ",
                     " in /workspace, /tmp and /home/user together" },
    [LIMIT_inodes] = { "execution reached the limit of ", " files and folders" },
    [LIMIT_disk_read_rate] = { "reading was slowed to the limit of ", " a second" },
    [LIMIT_disk_write_rate] = { "writing was slowed to the limit of ", " a second" },
    [LIMIT_open_files] = { "a process reached the limit of ", " open descriptors" },
    [LIMIT_output] = { "output exceeded the limit of ", " a stream" },
    [LIMIT_artifacts] = { "artifacts exceeded the limit of ", " together" },
    [LIMIT_artifact_files] = { "there were more artifacts than the limit of ", "" },
};

uint64_t limit_get(const struct limits *limits, enum limit_id id)
{
    uint64_t value;
    memcpy(&value, (const char *) limits + limit_rows[id].field, sizeof value);
    return value;
}

void limit_put(struct limits *limits, enum limit_id id, uint64_t value)
{
    memcpy((char *) limits + limit_rows[id].field, &value, sizeof value);
}

void limits_init(struct limits *limits)
{
    for_each(row, limit_rows)
        limit_put(limits, (enum limit_id)(row - limit_rows), row->start);
}

/* Equal, where a dash in `flag` stands for an underscore in `name`. */
static bool flag_is(const char *flag, const char *name)
{
    for (; *name && (*flag == *name || (*flag == '-' && *name == '_')); flag++, name++)
        ;
    return *flag == *name;
}

enum limit_id limit_find(const char *name)
{
    for_each(row, limit_rows)
        if (flag_is(name, row->name) || strcmp(name, row->json_name) == 0)
            return (enum limit_id)(row - limit_rows);
    return LIMITS;
}

/* Only limits that are off by default can be off. */
bool limit_may_be_off(enum limit_id id)
{
    return limit_rows[id].start == 0;
}

bool limit_exceeds(enum limit_id id, uint64_t value, uint64_t bound)
{
    if (limit_may_be_off(id) && (value == 0 || bound == 0))
        return value == 0 && bound != 0;
    return value > bound;
}

static int check_bounds(enum limit_id id, uint64_t value, error *err)
{
    const struct limit_row *row = &limit_rows[id];
    if (value >= row->min && value <= row->max)
        return 0;
    char asked[32], min[32], max[32];
    limit_print(id, value, asked, sizeof asked);
    limit_print(id, row->min, min, sizeof min);
    limit_print(id, row->max, max, sizeof max);
    return fail(err, ERR_LIMIT, "limit %s cannot be %s; ask for %s to %s", row->name, asked, min,
                max);
}

int limit_set(struct limits *limits, enum limit_id id, uint64_t value, error *err)
{
    if (check_bounds(id, value, err) < 0)
        return -1;
    limit_put(limits, id, value);
    return 0;
}

/* Adds a digit; returns false if the number exceeds 64 bits. */
static bool add_digit(uint64_t *value, char digit)
{
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, (uint64_t) (digit - '0'), value);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits; for processors with up to three decimals, as thousandths. Returns the beginning of
 * the suffix, NULL if there is no number or it is too large. */
static const char *read_number(const char *text, bool decimals, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (!is_digit(*text))
        return NULL;
    for (; is_digit(*text); text++)
        if (!add_digit(&value, *text))
            return NULL;
    if (decimals) {
        int places = 0;
        if (*text == '.') {
            text++;
            for (; places < 3 && is_digit(*text); places++, text++)
                if (!add_digit(&value, *text))
                    return NULL;
            if (places == 0)
                return NULL;
        }
        for (; places < 3; places++)
            if (!add_digit(&value, '0'))
                return NULL;
    }
    *ret_value = value;
    return text;
}

/* Examples of values, by unit. */
static const char *const spellings[] = {
    [UNIT_COUNT] = "a whole number such as 64",
    [UNIT_BYTES] = "bytes, or a whole number with K, M or G (MB is MiB, 1024 KiB), such as 256MiB",
    [UNIT_MSEC] = "a whole number with its unit, ms, s, m or h, such as 30s",
    [UNIT_MILLI] = "a number with up to three decimals, such as 0.5",
};

int limit_parse(enum limit_id id, const char *text, uint64_t *ret_value, error *err)
{
    const struct limit_row *row = &limit_rows[id];
    uint64_t value = 0;
    const char *rest = read_number(text, row->unit == UNIT_MILLI, &value);
    if (rest)
        for_each(suffix, suffixes) {
            bool is_size = row->unit == UNIT_BYTES;
            if (suffix->unit != row->unit ||
                (is_size ? strcasecmp(suffix->text, rest) : strcmp(suffix->text, rest)) != 0)
                continue;
            if (__builtin_mul_overflow(value, suffix->factor, &value))
                break;
            *ret_value = value;
            return 0;
        }
    return fail(err, ERR_LIMIT, "limit %s cannot be '%.*s'; write %s", row->name,
                text_head(text, 40), text, spellings[row->unit]);
}

void limit_print(enum limit_id id, uint64_t value, char *text, size_t size)
{
    enum unit unit = limit_rows[id].unit;
    if (unit == UNIT_MILLI) {
        int used =
            snprintf(text, size, "%" PRIu64 ".%03u", value / 1000, (unsigned) (value % 1000));
        if (used < 0 || (size_t) used >= size)
            return;
        while (text[used - 1] == '0')
            text[--used] = '\0';
        if (text[used - 1] == '.')
            text[used - 1] = '\0';
        return;
    }
    for_each(suffix, suffixes) {
        bool fits = value % suffix->factor == 0 && (value != 0 || suffix->factor == 1);
        if (suffix->unit != unit || !suffix->print || !fits)
            continue;
        (void) snprintf(text, size, "%" PRIu64 "%s", value / suffix->factor, suffix->print);
        return;
    }
}

/* NOLINTNEXTLINE(readability-function-size): three numbers and where the text goes */
void limit_sentence(enum limit_id id, uint64_t granted, uint64_t used, uint64_t maximum, char *text,
                    size_t size)
{
    const struct limit_row *row = &limit_rows[id];
    char limit[32], more[32], spent[48] = "", ask[96];
    limit_print(id, granted, limit, sizeof limit);
    if (row->unit == UNIT_BYTES && used > granted) {
        limit_print(id, used < MiB ? used : (used + MiB - 1) / MiB * MiB, more, sizeof more);
        (void) snprintf(spent, sizeof spent, " (used: %s)", more);
    }
    if (limit_exceeds(id, maximum, granted)) {
        /* A value for a request: a number in the row's unit, for processors a decimal. */
        if (row->unit == UNIT_MILLI)
            limit_print(id, maximum, more, sizeof more);
        else
            (void) snprintf(more, sizeof more, "%" PRIu64, maximum);
        (void) snprintf(ask, sizeof ask, "ask for limits.%s up to %s or a wider policy",
                        row->json_name, more);
    } else
        (void) snprintf(ask, sizeof ask, "the policy allows no more; ask for a wider policy");
    (void) snprintf(text, size, "%s%s%s%s; output so far and files in /workspace are kept; %s",
                    sentences[id].before, limit, sentences[id].after, spent, ask);
}
