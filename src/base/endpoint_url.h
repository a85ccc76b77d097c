/* endpoint_url.h - the URL of an endpoint's upstream. Pure functions; any thread. */
#pragma once

#include "base/host_name.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENDPOINT_PATH_SIZE = 64 };

struct endpoint_url {
    bool is_tls;
    char host[HOST_NAME_SIZE]; /* canonical: a name, "127.0.0.1" or "[::1]" */
    uint16_t port;
    char
        path[ENDPOINT_PATH_SIZE]; /* precedes that of a request: "" or "/v1", no slash at its end */
};

/* Writes the host of an upstream in canonical form: a name as host_name_canonical() does, an
 * address as inet_ntop(3), IPv6 in brackets. Refuses (-1) other spellings of an IPv4 address,
 * scopes, IPv4 within IPv6, and 0.0.0.0 and ::, which are not addresses of a host. */
int endpoint_host_canonical(const char *text, size_t size, char ret_host[HOST_NAME_SIZE]);

/* Reads "https://api.example.org:8443/v1". -1: no such URL, or one with user, query or fragment. */
int endpoint_url_read(const char *text, struct endpoint_url *ret_url);
