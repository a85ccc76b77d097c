/* text.c - see text.h. */
#include "base/text.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* Is it a control character, C0 or C1? Tab and line feed do not count. */
static bool is_control(uint32_t point)
{
    return (point < 0x20 && point != '\t' && point != '\n') || (point >= 0x7f && point < 0xa0);
}

size_t text_find_unclean(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        const unsigned char *here = (const unsigned char *) text + at;
        int size = utf8_character(here, length - at);
        if (size <= 0 || is_control(utf8_code_point(here, size)))
            return at;
        at += (size_t) size;
    }
    return length;
}

size_t text_find_undecodable(const char *text, size_t length)
{
    return utf8_valid_size(text, strnlen(text, length));
}

int text_head(const char *text, int max)
{
    size_t length = strnlen(text, (size_t) max + 1);
    if (length <= (size_t) max)
        return (int) length;
    /* A character has at most three bytes after its first. */
    int head = max;
    while (head > 0 && max - head < 3 && (text[head] & 0xc0) == 0x80)
        head--;
    return head;
}

bool text_list(char *text, size_t size, const char *word)
{
    static const char rest[] = ", …";
    size_t used = strlen(text);
    const char *comma = used > 0 ? ", " : "";
    if (used + strlen(comma) + strlen(word) + sizeof rest > size) {
        (void) snprintf(text + used, size - used, "%s", used > 0 ? rest : rest + 2);
        return false;
    }
    (void) snprintf(text + used, size - used, "%s%s", comma, word);
    return true;
}

const char *text_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *environment_text(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): no thread sets variables */
    return value && *value ? value : NULL;
}
