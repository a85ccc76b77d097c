/* expect_pattern.c - one pass over a regular expression: what is not listed here is refused, so
 * that it means the same in JSON Schema (ECMA-262) and in the checker, which uses Python's re. The
 * time that it takes to match is bounded by the processor time of the checker's sandbox. */
#include "policy/expect.h"

#include <string.h>

enum { GROUPS_MAX = 20, REPEAT_MAX = 1000 };

struct scan {
    const char *text;
    size_t size, at;
    unsigned groups; /* open groups */
    bool may_repeat; /* a quantifier may follow */
    const char *mistake;
};

static bool wrong(struct scan *scan, const char *mistake)
{
    scan->mistake = mistake;
    return false;
}

/* Reads an escape after its backslash: a character class, control character, code or literal. */
static bool take_escape(struct scan *scan, bool is_in_class)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    size_t digits = 0;
    if (++scan->at >= scan->size)
        return wrong(scan, "ends in a backslash");
    char letter = scan->text[scan->at++];
    if (letter == 'x')
        digits = 2;
    else if (letter == 'u')
        digits = 4;
    if (digits > 0) {
        if (scan->size - scan->at < digits || strspn(scan->text + scan->at, hex) < digits)
            return wrong(scan, "has a code without its digits");
        scan->at += digits;
        return true;
    }
    if (letter && strchr("dDwWsStnrfv", letter))
        return true;
    if (letter == 'b' || letter == 'B') {
        scan->may_repeat = false;
        return is_in_class ? wrong(scan, "has \\b in a class") : true;
    }
    if (letter && strchr("^$\\.*+?()[]{}|/-", letter))
        return true;
    return wrong(scan, "has an escape that not every reader has; look-behind, \\p and references "
                       "back are not understood");
}

static bool take_class(struct scan *scan)
{
    scan->at++;
    if (scan->at < scan->size && scan->text[scan->at] == '^')
        scan->at++;
    if (scan->at < scan->size && scan->text[scan->at] == ']')
        return wrong(scan, "has a class with nothing in it");
    while (scan->at < scan->size && scan->text[scan->at] != ']') {
        if (scan->text[scan->at] == '[')
            return wrong(scan, "has [ in a class; write \\[");
        if (scan->size - scan->at > 1 && strchr("&-~|", scan->text[scan->at]) &&
            scan->text[scan->at] == scan->text[scan->at + 1])
            return wrong(scan, "has a sign twice in a class, which some read as an operation");
        if (scan->text[scan->at] != '\\')
            scan->at++;
        else if (!take_escape(scan, true))
            return false;
    }
    if (scan->at >= scan->size)
        return wrong(scan, "has a class without its end");
    scan->at++;
    return true;
}

static bool take_number(struct scan *scan, unsigned *ret_number)
{
    size_t before = scan->at;
    *ret_number = 0;
    for (; scan->at < scan->size; scan->at++) {
        char digit = scan->text[scan->at];
        if (digit < '0' || digit > '9' || *ret_number > REPEAT_MAX)
            break;
        *ret_number = *ret_number * 10 + (unsigned) (digit - '0');
    }
    return scan->at > before;
}

/* "{2}", "{2,}", "{2,5}" */
static bool take_count(struct scan *scan)
{
    unsigned min, max;
    scan->at++;
    if (!take_number(scan, &min))
        return wrong(scan, "has { without a number; write \\{");
    max = min;
    if (scan->at < scan->size && scan->text[scan->at] == ',') {
        scan->at++;
        if (!take_number(scan, &max))
            max = REPEAT_MAX;
    }
    if (min > REPEAT_MAX || max > REPEAT_MAX || max < min)
        return wrong(scan, "repeats something more than 1000 times, or from more to less");
    if (scan->at >= scan->size || scan->text[scan->at] != '}')
        return wrong(scan, "has { without }");
    scan->at++;
    return true;
}

static bool take_quantifier(struct scan *scan)
{
    if (!scan->may_repeat)
        return wrong(scan, "repeats what cannot be repeated");
    scan->may_repeat = false;
    if (scan->text[scan->at] != '{')
        scan->at++;
    else if (!take_count(scan))
        return false;
    if (scan->at < scan->size && scan->text[scan->at] == '?')
        scan->at++; /* non-greedy */
    return true;
}

static bool take_group(struct scan *scan)
{
    scan->at++;
    scan->may_repeat = false;
    if (scan->at < scan->size && scan->text[scan->at] == '?') {
        if (scan->size - scan->at < 2 || scan->text[scan->at + 1] != ':')
            return wrong(scan, "has a group that only some readers have; only ( and (?: are known");
        scan->at += 2;
    }
    return ++scan->groups <= GROUPS_MAX ? true : wrong(scan, "has groups too deep in each other");
}

static bool take_one(struct scan *scan)
{
    switch (scan->text[scan->at]) {
    case '*':
    case '+':
    case '?':
    case '{':
        return take_quantifier(scan);
    case '(':
        return take_group(scan);
    case ')':
        if (scan->groups == 0)
            return wrong(scan, "has ) without (");
        scan->groups--;
        break;
    case '[':
        scan->may_repeat = true;
        return take_class(scan);
    case '\\':
        scan->may_repeat = true;
        return take_escape(scan, false);
    case ']':
    case '}':
        return wrong(scan, "has ] or } without its beginning; write \\] or \\}");
    case '^':
    case '$':
    case '|':
        scan->may_repeat = false;
        scan->at++;
        return true;
    default:
        break;
    }
    scan->may_repeat = true;
    scan->at++;
    return true;
}

int expectation_check_pattern(const char *pattern, size_t size, error *err)
{
    struct scan scan = { .text = pattern, .size = size };
    if (size > EXPECT_PATTERN_MAX)
        return fail(err, ERR_BAD_REQUEST, "the pattern has %zu bytes; %d are allowed", size,
                    EXPECT_PATTERN_MAX);
    if (memchr(pattern, '\0', size))
        return fail(err, ERR_BAD_REQUEST, "the pattern has a NUL byte");
    while (scan.at < size && take_one(&scan))
        ;
    if (!scan.mistake && scan.groups > 0)
        scan.mistake = "has ( without )";
    if (scan.mistake)
        return fail(err, ERR_BAD_REQUEST, "the pattern %s, at byte %zu", scan.mistake, scan.at);
    return 0;
}
