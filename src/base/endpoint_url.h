/* endpoint_url.h - the one upstream of an endpoint, as policies and the secrets file name it. Pure;
 * any thread. */
#pragma once

#include "base/host_name.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENDPOINT_PATH_SIZE = 64 };

struct endpoint_url {
    bool is_tls;
    char host[HOST_NAME_SIZE]; /* canonical */
    uint16_t port;
    char path[ENDPOINT_PATH_SIZE]; /* comes before that of a request: "" or "/v1", no slash at its
                                      end */
};

/* Reads "https://api.example.org:8443/v1". No user, query or fragment, and no address for a host.
 * Returns -1 if it is none. */
int endpoint_url_read(const char *text, struct endpoint_url *ret_url);
