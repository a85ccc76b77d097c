/* oauth_fuzz.c - any text as a set of keys, and any as a token that they should have signed: none
 * is taken, for nobody has signed it. An input is the two with 0x1E between them; without one, a
 * token for keys that are always there. */
#include "oauth/oauth.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char usual[] = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"e\","
                            "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oauth oauth = { .issuer = "https://i", .audience = "https://a" };
    struct oauth_token told;
    error err = { .code = ERR_NONE };
    const uint8_t *end = size > 0 ? memchr(data, 0x1E, size) : NULL;
    const uint8_t *token = end ? end + 1 : data;
    size_t token_size = end ? size - (size_t) (end - data) - 1 : size;
    char *text = malloc(token_size + 1);
    char *keys = malloc(end ? (size_t) (end - data) + 1 : 1);
    assert(text && keys);
    if (token_size > 0)
        memcpy(text, token, token_size);
    text[token_size] = '\0';
    if (end)
        memcpy(keys, data, (size_t) (end - data));
    int read = end ? oauth_keys_read(keys, (size_t) (end - data), &oauth.keys, &err)
                   : oauth_keys_read(usual, sizeof usual - 1, &oauth.keys, &err);
    assert((read == 0) == (oauth.keys.count > 0) && oauth.keys.count <= OAUTH_KEYS_MAX);
    assert(oauth_check(&oauth, text, &told, &err) < 0 && err.code == ERR_UNAUTHORIZED);
    oauth_keys_done(&oauth.keys);
    free(text);
    free(keys);
    return 0;
}
