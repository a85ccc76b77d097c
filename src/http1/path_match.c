/* path_match.c - whether every server, strict or lenient, reads a path as one below another. */
#include "http1/path_match.h"

#include "base/hex.h"

#include <string.h>

/* Decodes one character of a path. -1 for a malformed escape, an escaped separator, and control
 * characters, which some servers drop. */
static int take_path_char(const char **at, const char *end)
{
    unsigned char c = (unsigned char) *(*at)++;
    if (c != '%')
        return c < 0x20 || c == 0x7f ? -1 : c;
    if (end - *at < 2 || hex_digit((*at)[0]) < 0 || hex_digit((*at)[1]) < 0)
        return -1;
    int byte = hex_digit((*at)[0]) * 16 + hex_digit((*at)[1]);
    *at += 2;
    bool hides = byte == '/' || byte == '\\' || byte == '%' || byte < 0x20 || byte == 0x7f;
    return hides ? -1 : byte;
}

/* An overlong form of UTF-8: a lenient server reads "%c0%ae" as a dot. */
static bool is_overlong(int before, int c)
{
    return c == 0xc0 || c == 0xc1 || (before == 0xe0 && c < 0xa0) || (before == 0xf0 && c < 0x90);
}

/* True if no segment is "." or "..", encoded or not, with a parameter (";x") or an encoded query or
 * fragment behind it or not; blanks are ignored, since some servers drop them. */
static bool path_is_plain(struct http_text path)
{
    const char *at = path.at;
    const char *end = path.at + path.size;
    unsigned dots = 0, others = 0;
    for (int before = 0, c; at < end; before = c) {
        bool is_slash = *at == '/';
        c = take_path_char(&at, end);
        if (c < 0 || is_overlong(before, c))
            return false;
        if (is_slash || c == ';' || c == '?' || c == '#') {
            if (others == 0 && dots > 0 && dots <= 2)
                return false;
            dots = others = 0;
        } else if (c == '.')
            dots++;
        else if (c != ' ')
            others++;
    }
    return !(others == 0 && dots > 0 && dots <= 2);
}

bool http_path_is_below(struct http_text path, const char *prefix)
{
    const char *query = memchr(path.at, '?', path.size);
    if (query)
        path.size = (size_t) (query - path.at);
    size_t length = strlen(prefix);
    if (!path_is_plain(path) || path.size < length || memcmp(path.at, prefix, length) != 0)
        return false;
    return length == 0 || prefix[length - 1] == '/' || path.size == length ||
           path.at[length] == '/';
}
