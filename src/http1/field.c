/* field.c - see field.h. */
#include "http1/field.h"

#include "base/table.h"

#include <string.h>
#include <strings.h>

bool http_is_token(struct http_text text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        bool is_alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alphanumeric && !memchr(others, c, sizeof others - 1))
            return false;
    }
    return text.size > 0;
}

bool http_text_is(struct http_text text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.at, word, text.size) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct http_text http_text_trim(struct http_text text)
{
    while (text.size > 0 && is_blank(text.at[0])) {
        text.at++;
        text.size--;
    }
    while (text.size > 0 && is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

int http_field_read(const char *line, size_t size, struct http_field *ret_field)
{
    const char *colon = memchr(line, ':', size);
    if (!colon)
        return -1;
    struct http_text name = { line, (size_t) (colon - line) };
    struct http_text value = http_text_trim((struct http_text){ colon + 1, size - name.size - 1 });
    if (!http_is_token(name)) /* a folded line begins with a blank, which is not part of a token */
        return -1;
    for (size_t i = 0; i < value.size; i++)
        if (((unsigned char) value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return -1;
    *ret_field = (struct http_field){ name, value };
    return 0;
}

bool http_field_is(const struct http_field *field, const char *name)
{
    size_t size = strlen(name);
    if (field->name.size != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        bool is_dash = field->name.at[i] == '_' || field->name.at[i] == '-';
        bool wants_dash = name[i] == '_' || name[i] == '-';
        if (is_dash != wants_dash ||
            (!is_dash && strncasecmp(field->name.at + i, name + i, 1) != 0))
            return false;
    }
    return true;
}

bool http_field_is_hop_by_hop(const struct http_field *field)
{
    static const char *const names[] = { "connection",
                                         "keep-alive",
                                         "proxy-authenticate",
                                         "proxy-authorization",
                                         "proxy-connection",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade" };
    for_each(name, names)
        if (http_field_is(field, *name))
            return true;
    return false;
}

int http_length_read(struct http_text value, uint64_t *ret_length)
{
    uint64_t length = 0;
    if (value.size == 0 || value.size > 18)
        return -1;
    for (size_t i = 0; i < value.size; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -1;
        length = length * 10 + (uint64_t) (value.at[i] - '0');
    }
    *ret_length = length;
    return 0;
}

int http_status_read(const char *line, size_t size)
{
    uint64_t status;
    if (size < 12 || (memcmp(line, "HTTP/1.1 ", 9) != 0 && memcmp(line, "HTTP/1.0 ", 9) != 0) ||
        http_length_read((struct http_text){ line + 9, 3 }, &status) < 0)
        return -1;
    return status >= 100 && status <= 599 ? (int) status : -1;
}
