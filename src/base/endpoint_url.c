/* endpoint_url.c - see endpoint_url.h. */
#include "base/endpoint_url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char path_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/+@:=,";

static int read_port(const char *text, size_t size, uint16_t *ret_port)
{
    unsigned long port = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || size > 5)
            return -1;
        port = port * 10 + (unsigned long) (text[i] - '0');
    }
    if (port == 0 || port > 65535)
        return -1;
    *ret_port = (uint16_t) port;
    return 0;
}

static int read_path(const char *text, char *ret_path)
{
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == '/')
        size--;
    if (size >= ENDPOINT_PATH_SIZE || strspn(text, path_characters) < size || strstr(text, "/.") ||
        strstr(text, "//"))
        return -1;
    memcpy(ret_path, text, size);
    ret_path[size] = '\0';
    return 0;
}

static int write_address(const char *text, size_t size, char ret_host[HOST_NAME_SIZE])
{
    char word[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    bool is_six = text[0] == '[' && text[size - 1] == ']';
    text += is_six;
    size -= is_six ? 2 : 0;
    if (size >= sizeof word)
        return -1;
    memcpy(word, text, size);
    word[size] = '\0';
    if (!is_six) {
        if (inet_pton(AF_INET, word, &four) != 1 || four.s_addr == INADDR_ANY)
            return -1;
        memcpy(ret_host, word, size + 1);
        return 0;
    }
    if (inet_pton(AF_INET6, word, &six) != 1 || IN6_IS_ADDR_UNSPECIFIED(&six) ||
        IN6_IS_ADDR_V4MAPPED(&six) || !inet_ntop(AF_INET6, &six, word, sizeof word))
        return -1;
    (void) snprintf(ret_host, HOST_NAME_SIZE, "[%s]", word);
    return 0;
}

int endpoint_host_canonical(const char *text, size_t size, char ret_host[HOST_NAME_SIZE])
{
    return host_name_is_literal(text, size) ? write_address(text, size, ret_host)
                                            : host_name_canonical(text, size, ret_host);
}

int endpoint_url_read(const char *text, struct endpoint_url *ret_url)
{
    struct endpoint_url url = { .port = 80 };
    if (strncmp(text, "https://", 8) == 0) {
        url.is_tls = true;
        url.port = 443;
        text += 8;
    } else if (strncmp(text, "http://", 7) == 0)
        text += 7;
    else
        return -1;
    size_t authority = strcspn(text, "/");
    size_t host = text[0] == '[' ? strcspn(text, "]/") : strcspn(text, ":/");
    host += text[host] == ']';
    if (endpoint_host_canonical(text, host, url.host) < 0)
        return -1;
    if (host < authority &&
        (text[host] != ':' || read_port(text + host + 1, authority - host - 1, &url.port) < 0))
        return -1;
    if (read_path(text + authority, url.path) < 0)
        return -1;
    *ret_url = url;
    return 0;
}
