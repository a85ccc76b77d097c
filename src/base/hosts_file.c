/* hosts_file.c - see hosts_file.h. Lines that are not understood are skipped. */
#include "base/hosts_file.h"

#include "base/host_name.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 1 << 20 /* bytes; the rest is not read */ };

static const char blanks[] = " \t\r";

char *hosts_file_read(void)
{
    char *text = calloc(1, HOSTS_MAX + 1);
    FILE *file = text ? fopen("/etc/hosts", "re") : NULL;
    if (file) {
        (void) !fread(text, 1, HOSTS_MAX, file);
        (void) fclose(file);
    }
    return text;
}

/* "127.0.0.1", "::1" or "[::1]". */
static bool read_address(const char *text, size_t size, struct in6_addr *ret_address)
{
    char word[INET6_ADDRSTRLEN + 8];
    bool is_bracketed = size > 2 && text[0] == '[';
    if (size >= INET6_ADDRSTRLEN)
        return false;
    bool is_six = memchr(text, ':', size) != NULL;
    (void) snprintf(word, sizeof word, "%s%.*s",
                    is_six ? "" : "::ffff:", (int) size - (is_bracketed ? 2 : 0),
                    text + is_bracketed);
    return inet_pton(AF_INET6, word, ret_address) == 1;
}

static bool has_name(const char *names, size_t size, const char *host)
{
    for (size_t at = 0; at < size;) {
        char name[HOST_NAME_SIZE];
        at += strspn(names + at, blanks);
        size_t length = strcspn(names + at, " \t\r\n#");
        if (at + length > size || length == 0)
            return false;
        if (host_name_canonical(names + at, length, name) == 0 && strcmp(name, host) == 0)
            return true;
        at += length;
    }
    return false;
}

unsigned hosts_file_addresses(const char *hosts, const char *host, struct in6_addr *ret_addresses,
                              unsigned max)
{
    static const char own[] = "127.0.0.1 localhost\n::1 localhost\n";
    unsigned count = 0;
    if (host_name_is_literal(host, strlen(host)))
        return max > 0 && read_address(host, strlen(host), ret_addresses) ? 1 : 0;
    if (strcmp(host, "localhost") == 0)
        hosts = own;
    for (const char *line = hosts; *line && count < max; line += *line == '\n') {
        size_t size = strcspn(line, "#\n"), from = strspn(line, blanks);
        size_t address = strcspn(line + from, " \t\r\n#");
        if (from + address < size && has_name(line + from + address, size - from - address, host) &&
            read_address(line + from, address, &ret_addresses[count]))
            count++;
        line += strcspn(line, "\n");
    }
    return count;
}
