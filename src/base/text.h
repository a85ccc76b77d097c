/* text.h - checks text that people will see: UTF-8 without control characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Finds the first byte that is not UTF-8 (nor are overlong forms and surrogates), or a control
 * character other than tab and line feed. Returns its offset, `length` if there is none. */
size_t text_find_unclean(const char *text, size_t length);

/* The offset of the first byte that is not UTF-8, or is NUL; `length` if there is none. */
size_t text_find_undecodable(const char *text, size_t length);

/* How many bytes of `text`, at most `max`, end at the end of a character; for "%.*s". */
int text_head(const char *text, int max);

static inline bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Adds a word to a list in `text`: "a, b". What does not fit becomes "…"; then it returns false,
 * and no other word may be added. */
bool text_list(char *text, size_t size, const char *word);

const char *text_last_name(const char *path);   /* after its last slash */
const char *environment_text(const char *name); /* NULL: it is not set, or empty */
