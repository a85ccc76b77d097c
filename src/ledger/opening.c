/* opening.c - see opening.h. */
#include "ledger/opening.h"

#include "base/cleanup.h"
#include "ledger/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "opening.key";

_Static_assert(crypto_secretbox_KEYBYTES == OPENING_KEY_SIZE &&
                   (int) SHA256_SIZE == (int) OPENING_KEY_SIZE,
               "one size of keys and hashes");

/* --- the secret ------------------------------------------------------------------------------- */

/* Makes the file by link(2): two daemons that start at the same time use the same secret. */
static int make_secret(int folder, error *err)
{
    struct opening_key secret;
    char path[64];
    auto_fd file = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    randombytes_buf(&secret, sizeof secret);
    bool is_written =
        file >= 0 && write(file, &secret, sizeof secret) == sizeof secret && fdatasync(file) == 0;
    sodium_memzero(&secret, sizeof secret);
    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!is_written ||
        (linkat(AT_FDCWD, path, folder, file_name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST) ||
        fsync(folder) < 0)
        return fail_os(err, "write '%s'", file_name);
    return 0;
}

int opening_secret_read(int folder, struct opening_key *ret_secret, error *err)
{
    struct stat status;
    auto_fd file = openat(folder, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 && errno == ENOENT) {
        if (make_secret(folder, err) < 0)
            return -1;
        file = openat(folder, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (file < 0 || fstat(file, &status) < 0)
        return fail_os(err, "open '%s'", file_name);
    if ((status.st_mode & 077) != 0 || status.st_size != OPENING_KEY_SIZE ||
        read(file, ret_secret, sizeof *ret_secret) != sizeof *ret_secret)
        return fail(err, ERR_UNAVAILABLE,
                    "'%s' must be %d bytes with mode 600; put it back from a copy, or remove it: "
                    "then commitments of before cannot be opened any more",
                    file_name, OPENING_KEY_SIZE);
    return 0;
}

/* --- commitments ------------------------------------------------------------------------------ */

static void derive(const struct opening_key *key, const char *group, const char *name,
                   struct opening_key *ret)
{
    crypto_generichash_state state;
    (void) crypto_generichash_init(&state, key->bytes, sizeof key->bytes, sizeof ret->bytes);
    (void) crypto_generichash_update(&state, (const unsigned char *) group, strlen(group));
    if (name) {
        (void) crypto_generichash_update(&state, (const unsigned char *) "/", 1);
        (void) crypto_generichash_update(&state, (const unsigned char *) name, strlen(name));
    }
    (void) crypto_generichash_final(&state, ret->bytes, sizeof ret->bytes);
}

void opening_nonce(const struct opening_key *secret, const char *execution,
                   struct opening_key *ret_nonce)
{
    derive(secret, execution, NULL, ret_nonce);
}

void opening_item(const struct opening_key *nonce, const char *group, const char *name,
                  struct opening_key *ret_key)
{
    derive(nonce, group, name, ret_key);
}

void opening_mask(const struct opening_key *item, const char *hex, char ret_hex[OPENING_HEX_SIZE])
{
    unsigned char hash[SHA256_SIZE] = { 0 };
    struct opening_key mask;
    size_t size = 0;
    (void) sodium_hex2bin(hash, sizeof hash, hex, strlen(hex), NULL, &size, NULL);
    derive(item, "commitment", NULL, &mask);
    for (size_t i = 0; i < sizeof hash; i++)
        hash[i] ^= mask.bytes[i];
    (void) sodium_bin2hex(ret_hex, OPENING_HEX_SIZE, hash, sizeof hash);
}

/* --- sealed texts ----------------------------------------------------------------------------- */

enum { BOX_SIZE = SEALED_SIZE + crypto_secretbox_MACBYTES, LENGTH_SIZE = 4 };

/* Each key is used once, so the nonce of the cipher can be constant. */
static const unsigned char no_nonce[crypto_secretbox_NONCEBYTES];

int opening_seal(const struct opening_key *nonce, const struct bytes *text, struct bytes *out,
                 error *err)
{
    struct opening_key key;
    auto_bytes plain = { 0 };
    if (text->size > SEALED_SIZE - LENGTH_SIZE)
        return fail(err, ERR_TOO_LARGE, "%zu bytes to seal; %d are sealed", text->size,
                    SEALED_SIZE - LENGTH_SIZE);
    unsigned char *box = (unsigned char *) bytes_reserve(&plain, BOX_SIZE);
    char *base64 =
        bytes_reserve(out, sodium_base64_ENCODED_LEN(BOX_SIZE, sodium_base64_VARIANT_ORIGINAL));
    if (!box || !base64)
        return fail(err, ERR_SYSTEM, "no memory to seal a receipt");
    memset(box, 0, BOX_SIZE);
    for (unsigned i = 0; i < LENGTH_SIZE; i++)
        box[i] = (unsigned char) (text->size >> 8 * i);
    if (text->size > 0)
        memcpy(box + LENGTH_SIZE, text->data, text->size);
    opening_item(nonce, "sealed", NULL, &key);
    (void) crypto_secretbox_easy(box, box, SEALED_SIZE, no_nonce, key.bytes);
    size_t room = sodium_base64_ENCODED_LEN(BOX_SIZE, sodium_base64_VARIANT_ORIGINAL);
    (void) sodium_bin2base64(base64, room, box, BOX_SIZE, sodium_base64_VARIANT_ORIGINAL);
    out->size += strlen(base64);
    return 0;
}

int opening_unseal(const struct opening_key *nonce, const char *sealed, struct bytes *out,
                   error *err)
{
    struct opening_key key;
    auto_bytes plain = { 0 };
    size_t size = 0, length = 0;
    unsigned char *box = (unsigned char *) bytes_reserve(&plain, BOX_SIZE);
    if (!box)
        return fail(err, ERR_SYSTEM, "no memory to open a receipt");
    opening_item(nonce, "sealed", NULL, &key);
    bool is_good = sodium_base642bin(box, BOX_SIZE, sealed, strlen(sealed), NULL, &size, NULL,
                                     sodium_base64_VARIANT_ORIGINAL) == 0 &&
                   size == BOX_SIZE &&
                   crypto_secretbox_open_easy(box, box, BOX_SIZE, no_nonce, key.bytes) == 0;
    for (unsigned i = 0; is_good && i < LENGTH_SIZE; i++)
        length |= (size_t) box[i] << 8 * i;
    if (!is_good || length > SEALED_SIZE - LENGTH_SIZE)
        return fail(err, ERR_POLICY, "it was sealed with another key, or changed since");
    bytes_add(out, box + LENGTH_SIZE, length);
    return out->failed ? fail(err, ERR_SYSTEM, "no memory to open a receipt") : 0;
}
