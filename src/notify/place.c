/* place.c - see notify.h. libcurl parses the URL, since libcurl also connects to it. */
#include "notify/notify.h"

#include "policy/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the URL; "" if it is missing. */
static void take_part(CURLU *url, CURLUPart part, unsigned flags, char *ret_text, size_t size)
{
    char *text = NULL;
    ret_text[0] = '\0';
    if (curl_url_get(url, part, &text, flags) == CURLUE_OK)
        (void) snprintf(ret_text, size, "%s", text);
    curl_free(text);
}

static void add_known(struct place *place, const char *text)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, text, &four) == 1)
        address_map(&four, &place->known[place->known_count++]);
    else if (inet_pton(AF_INET6, text, &six) == 1)
        place->known[place->known_count++] = six;
}

/* Addresses that the URL itself gives, also for "localhost" (RFC 6761, section 6.3). */
static void find_known(struct place *place)
{
    char bare[HOST_NAME_SIZE];
    size_t size = strlen(place->host);
    bool has_brackets = place->host[0] == '[' && size > 2;
    (void) snprintf(bare, sizeof bare, "%.*s", (int) (has_brackets ? size - 2 : size),
                    place->host + (has_brackets ? 1 : 0));
    if (strcmp(bare, "localhost") == 0) {
        add_known(place, "127.0.0.1");
        add_known(place, "::1");
    } else
        add_known(place, bare);
}

static bool is_this_host(const struct place *place)
{
    for (unsigned i = 0; i < place->known_count; i++) {
        const struct in6_addr *address = &place->known[i];
        bool is_loopback = IN6_IS_ADDR_V4MAPPED(address) ? address->s6_addr[12] == 127
                                                         : IN6_IS_ADDR_LOOPBACK(address);
        if (!is_loopback)
            return false;
    }
    return place->known_count > 0;
}

static int check(CURLU *url, const char *what, struct place *place, error *err)
{
    char scheme[16], port[16], user[8], fragment[8];
    take_part(url, CURLUPART_SCHEME, 0, scheme, sizeof scheme);
    take_part(url, CURLUPART_HOST, 0, place->host, sizeof place->host);
    take_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, port, sizeof port);
    take_part(url, CURLUPART_USER, 0, user, sizeof user);
    take_part(url, CURLUPART_FRAGMENT, 0, fragment, sizeof fragment);
    place->port = (uint16_t) strtoul(port, NULL, 10);
    bool is_plain = strcmp(scheme, "http") == 0;
    if ((!is_plain && strcmp(scheme, "https") != 0) || place->host[0] == '\0' || place->port == 0)
        return fail(err, ERR_BAD_REQUEST, "%s takes an https:// URL", what);
    if (user[0] || fragment[0])
        return fail(err, ERR_BAD_REQUEST, "%s takes a URL without user and fragment", what);
    find_known(place);
    if (is_plain && !is_this_host(place))
        return fail(err, ERR_BAD_REQUEST,
                    "%s would send to %s unencrypted; use https:// (http:// only for this host)",
                    what, place->host);
    return 0;
}

int place_read(const char *what, const char *text, struct place *ret_place, error *err)
{
    struct place place = { 0 };
    if (strlen(text) >= sizeof place.url)
        return fail(err, ERR_BAD_REQUEST, "%s is longer than %zu bytes", what,
                    sizeof place.url - 1);
    (void) snprintf(place.url, sizeof place.url, "%s", text);
    CURLU *url = curl_url();
    int result = -1;
    if (!url)
        (void) fail(err, ERR_SYSTEM, "no memory for a URL");
    else if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK)
        (void) fail(err, ERR_BAD_REQUEST, "%s takes an https:// URL", what);
    else
        result = check(url, what, &place, err);
    curl_url_cleanup(url);
    if (result == 0)
        *ret_place = place;
    return result;
}
