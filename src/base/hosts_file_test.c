/* hosts_file_test.c - addresses that an operator has given: numbers, localhost, lines of
 * /etc/hosts. */
#include "base/endpoint_url.h"
#include "base/hosts_file.h"
#include "base/table.h"
#include "base/test.h"

#include <arpa/inet.h>
#include <string.h>

static const char hosts[] = "# 10.0.0.1 commented\n"
                            "127.0.1.1\tvm vm.example.org # 10.0.0.2 behind\n"
                            "10.9.8.7  DB.example.org.\r\n"
                            "fd00::7 db.example.org\n"
                            "10.0.0.3\n"
                            "not-a-number broken\n"
                            "fe80::1%eth0 scoped\n"
                            "127.1 short\n"
                            "10.0.0.4 localhost\n"
                            "93.184.216.34 last";

static const struct {
    const char *host, *addresses;
} cases[] = {
    { "127.0.0.1", "::ffff:127.0.0.1 " },
    { "[::1]", "::1 " }, /* as endpoint_url_read() writes it */
    { "10.1.2.3", "::ffff:10.1.2.3 " },
    { "localhost", "::ffff:127.0.0.1 ::1 " },
    { "vm", "::ffff:127.0.1.1 " },
    { "vm.example.org", "::ffff:127.0.1.1 " },
    { "db.example.org", "::ffff:10.9.8.7 fd00::7 " },
    { "last", "::ffff:93.184.216.34 " },
    { "example.org", "" },
    { "v", "" },
    { "commented", "" },
    { "behind", "" },
    { "broken", "" },
    { "scoped", "" },
    { "short", "" },
    { "sub.localhost", "" },
};

TEST(stated_addresses_are_found)
{
    for_each(row, cases) {
        struct in6_addr found[4];
        char text[256] = "";
        size_t used = 0;
        unsigned count = hosts_file_addresses(hosts, row->host, found, COUNT_OF(found));
        for (unsigned i = 0; i < count; i++) {
            (void) inet_ntop(AF_INET6, &found[i], text + used, (socklen_t) (sizeof text - used));
            used += strlen(text + used);
            text[used++] = ' ';
            text[used] = '\0';
        }
        expect(strcmp(text, row->addresses) == 0, "%s has '%s'", row->host, text);
    }
    struct in6_addr one;
    expect(hosts_file_addresses(hosts, "localhost", &one, 1) == 1, "more than there is room for");
    expect(hosts_file_addresses("", "vm", &one, 1) == 0, "an address out of nothing");
}

static const struct {
    const char *url, *host;
    unsigned port;
} urls[] = {
    { "http://127.0.0.1:11434", "127.0.0.1", 11434 },
    { "http://[::1]:8080/v1", "[::1]", 8080 },
    { "http://[0:0::1]", "[::1]", 80 },
    { "https://10.1.2.3", "10.1.2.3", 443 },
    { "http://LOCALHOST:1", "localhost", 1 },
    { "http://0.0.0.0:1", NULL, 0 },
    { "http://[::]:1", NULL, 0 },
    { "http://127.1:1", NULL, 0 },
    { "http://2130706433", NULL, 0 },
    { "http://0x7f.0.0.1", NULL, 0 },
    { "http://127.0.0.1.", NULL, 0 },
    { "http://::1", NULL, 0 },
    { "http://[127.0.0.1]", NULL, 0 },
    { "http://[::ffff:127.0.0.1]", NULL, 0 },
    { "http://[fe80::1%25eth0]", NULL, 0 },
    { "http://[::1]x:80", NULL, 0 },
    { "http://[::1", NULL, 0 },
    { "http://[]", NULL, 0 },
    { "http://[::1]:", NULL, 0 },
    { "http://", NULL, 0 },
};

TEST(an_upstream_may_be_an_address_in_one_spelling)
{
    for_each(row, urls) {
        struct endpoint_url url = { 0 };
        int done = endpoint_url_read(row->url, &url);
        expect((done == 0) == (row->host != NULL), "%s gave %d", row->url, done);
        expect(!row->host || (strcmp(url.host, row->host) == 0 && url.port == row->port),
               "%s was read as %s, %u", row->url, url.host, url.port);
    }
}

TESTS(CASE(stated_addresses_are_found), CASE(an_upstream_may_be_an_address_in_one_spelling))
