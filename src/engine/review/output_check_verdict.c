/* output_check_verdict.c - reads the checker's answer. The text that it has read may have taken it
 * over, so the answer must be exact: an unknown rule, place or pattern makes all of it an error. */
#include "engine/review/output_check.h"

#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const secrets[] = {
#define SECRET(name, text) #name,
#include "policy/secret_patterns.def"
};

static bool is_plain(const char *text, size_t max)
{
    size_t length = 0;
    for (; text[length]; length++)
        if (length >= max || text[length] < ' ' || text[length] > '~')
            return false;
    return true;
}

/* Reads digits up to `sign`, which is skipped. */
static bool read_number(char **at, char sign, uint32_t *ret_number)
{
    char *end;
    unsigned long number = strtoul(*at, &end, 10);
    if (**at < '0' || **at > '9' || *end != sign || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t) number;
    *at = end + (sign != '\0');
    return true;
}

/* "stdout", "artifact.3" */
static bool read_place(char *word, const uint32_t counts[2], struct output_check_finding *finding)
{
    char *dot = strchr(word, '.');
    if (dot)
        *dot++ = '\0';
    finding->place = PLACES;
    for (unsigned i = 0; i < PLACES; i++)
        if (strcmp(output_check_place_name((enum output_check_place) i), word) == 0)
            finding->place = (enum output_check_place) i;
    bool has_index = finding->place == PLACE_ARTIFACT || finding->place == PLACE_EXPECTED;
    if (finding->place == PLACES || has_index != (dot != NULL))
        return false;
    return !dot || (read_number(&dot, '\0', &finding->index) &&
                    finding->index < counts[finding->place == PLACE_EXPECTED]);
}

static bool is_secret(const char *name)
{
    for_each(secret, secrets)
        if (strcmp(*secret, name) == 0)
            return true;
    return false;
}

/* "RULE PLACE LINE DETAIL" */
static bool read_finding(char *line, const uint32_t counts[2], struct output_check_finding *finding)
{
    char *place = strchr(line, ' ');
    char *at = place ? strchr(place + 1, ' ') : NULL;
    if (!at)
        return false;
    *place++ = '\0';
    *at++ = '\0';
    *finding = (struct output_check_finding){ .rule = OUTPUT_CHECK_RULES };
    for (unsigned i = 0; i < OUTPUT_CHECK_RULES; i++)
        if (strcmp(output_check_rule_name((enum output_check_rule) i), line) == 0)
            finding->rule = (enum output_check_rule) i;
    if (finding->rule == OUTPUT_CHECK_RULES || !read_place(place, counts, finding) ||
        !read_number(&at, ' ', &finding->line) || !is_plain(at, OUTPUT_CHECK_DETAIL_SIZE - 1) ||
        (finding->rule == OUTPUT_CHECK_secret && !is_secret(at)))
        return false;
    (void) snprintf(finding->detail, sizeof finding->detail, "%s", at);
    return true;
}

/* "end COUNT", or "failed WORDS": the last line, with nothing after it. */
static bool read_end(const char *line, struct output_check_outcome *outcome)
{
    char *behind;
    if (strncmp(line, "failed ", 7) == 0) {
        if (outcome->count > 0 || !is_plain(line + 7, 150))
            return false;
        output_check_give_up(outcome, line + 7);
        return true;
    }
    if (strncmp(line, "end ", 4) != 0 || line[4] < '0' || line[4] > '9' ||
        (line[4] == '0' && line[5] != '\0'))
        return false;
    unsigned long all = strtoul(line + 4, &behind, 10);
    if (*behind != '\0' || all < outcome->count ||
        (all > outcome->count && outcome->count < OUTPUT_CHECK_FINDINGS_MAX))
        return false;
    outcome->unlisted = all - outcome->count;
    outcome->verdict = all == 0 ? OUTPUT_CHECK_PASSED : OUTPUT_CHECK_FAILED;
    return true;
}

bool output_check_read_answer(char *text, const uint32_t counts[2],
                              struct output_check_outcome *outcome)
{
    outcome->count = 0;
    for (char *line = text, *next; *line; line = next) {
        char *end = strchr(line, '\n');
        if (!end)
            return false;
        *end = '\0';
        next = end + 1;
        if (!*next)
            return read_end(line, outcome);
        if (outcome->count >= OUTPUT_CHECK_FINDINGS_MAX ||
            !read_finding(line, counts, &outcome->findings[outcome->count]))
            return false;
        outcome->count++;
    }
    return false;
}
