/* url_signature.c - a keyed hash over everything that a pass allows. */
#include "doors/http/url_signature.h"

#include "doors/http/authenticate.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

_Static_assert((int) PASS_SIZE == 2 * crypto_auth_BYTES + 1, "a signature in hex");

/* The key lasts as long as the daemon, like the sessions. */
static const unsigned char *signing_key(void)
{
    static unsigned char key[crypto_auth_KEYBYTES];
    static bool is_made;
    if (!is_made)
        crypto_auth_keygen(key);
    is_made = true;
    return key;
}

/* Each part follows its length, so that different parts never give the same text. */
static void add_part(struct bytes *text, const void *part, size_t size)
{
    bytes_print(text, "%zu:", size);
    bytes_add(text, part, size);
}

void pass_sign(const struct pass *pass, char ret_signature[PASS_SIZE])
{
    unsigned char code[crypto_auth_BYTES];
    const char *const words[] = { pass->key, pass->session, pass->transfer, pass->mode };
    auto_bytes text = { 0 };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_part(&text, words[i], strlen(words[i]));
    add_part(&text, pass->path ? pass->path->data : NULL, pass->path ? pass->path->size : 0);
    bytes_print(&text, "%" PRIu64, pass->expires);
    if (text.failed)
        randombytes_buf(code, sizeof code); /* matches no signature */
    else
        (void) crypto_auth(code, (const unsigned char *) text.data, text.size, signing_key());
    (void) sodium_bin2hex(ret_signature, PASS_SIZE, code, sizeof code);
}

bool pass_fits(const struct pass *pass, const char *signature)
{
    char expected[PASS_SIZE];
    pass_sign(pass, expected);
    return signature && strlen(signature) == PASS_SIZE - 1 &&
           sodium_memcmp(signature, expected, PASS_SIZE - 1) == 0;
}

int pass_use(struct exchange *exchange, const struct pass *pass, error *err)
{
    if (service_identify_signer(exchange->service, pass->key, pass->session, &exchange->caller,
                                err) < 0)
        return -1;
    return identity_check_share(exchange, err);
}
