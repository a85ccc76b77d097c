/* host_name.c - see host_name.h; RFC 952, RFC 1123 section 2.1. */
#include "base/host_name.h"

#include <arpa/inet.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "10", "010", "0xA": if the last label is a number, resolvers may read the name as an address. */
static bool label_is_number(const char *label, size_t length)
{
    if (length > 1 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X'))
        return true;
    for (size_t i = 0; i < length; i++)
        if (!is_digit(label[i]))
            return false;
    return length > 0;
}

static bool label_is_sound(const char *label, size_t length)
{
    if (length == 0 || length > 63 || label[0] == '-' || label[length - 1] == '-')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_digit(label[i]) && !is_letter(label[i]) && label[i] != '-')
            return false;
    return true;
}

int host_name_canonical(const char *text, size_t size, char ret_name[HOST_NAME_SIZE])
{
    if (size > 0 && text[size - 1] == '.')
        size--;
    if (size == 0 || size >= HOST_NAME_SIZE)
        return -1;
    size_t begin = 0;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '.')
            continue;
        if (!label_is_sound(text + begin, i - begin))
            return -1;
        if (i == size && label_is_number(text + begin, i - begin))
            return -1;
        begin = i + 1;
    }
    for (size_t i = 0; i < size; i++)
        ret_name[i] = (char) (text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    ret_name[size] = '\0';
    return 0;
}

bool host_name_is_literal(const char *text, size_t size)
{
    char copy[64];
    struct in_addr four;
    struct in6_addr six;
    if (size > 1 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    const char *zone = memchr(text, '%', size);
    if (zone)
        size = (size_t) (zone - text);
    if (size == 0 || size >= sizeof copy || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (size > 1 && copy[size - 1] == '.')
        copy[size - 1] = '\0';
    return inet_pton(AF_INET6, copy, &six) == 1 || inet_aton(copy, &four) != 0;
}

bool host_name_matches(const char *name, const char *host, bool any_below)
{
    size_t length = strlen(name), tail = strlen(host);
    if (!any_below)
        return length == tail && memcmp(name, host, length) == 0;
    return length > tail + 1 && name[length - tail - 1] == '.' &&
           memcmp(name + length - tail, host, tail) == 0;
}
