/* endpoint_url.h - the one upstream of an endpoint, as policies and the secrets file name it. Pure;
 * any thread. */
#pragma once

#include "base/host_name.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENDPOINT_PATH_SIZE = 64 };

struct endpoint_url {
    bool is_tls;
    char host[HOST_NAME_SIZE]; /* canonical: a name, "127.0.0.1" or "[::1]" */
    uint16_t port;
    char path[ENDPOINT_PATH_SIZE]; /* comes before that of a request: "" or "/v1", no slash at its
                                      end */
};

/* Writes the host of an upstream in its one form: a name as host_name_canonical() does, an address
 * as inet_ntop(3), IPv6 in brackets. Refused (-1) are other spellings of an IPv4 address, scopes,
 * IPv4 within IPv6, and 0.0.0.0 and ::, where no host can be reached. */
int endpoint_host_canonical(const char *text, size_t size, char ret_host[HOST_NAME_SIZE]);

/* Reads "https://api.example.org:8443/v1". No user, query or fragment. Returns -1 if it is none. */
int endpoint_url_read(const char *text, struct endpoint_url *ret_url);
