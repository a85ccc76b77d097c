/* key.c - the key file has one line of hex, the secret; everything else is derived from it. */
#include "ledger/key.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/read_at.h"
#include "ledger/chain.h"
#include "ledger/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEED_SIZE = 32, SEED_TEXT_SIZE = 2 * SEED_SIZE + 1, ED25519_NOTE = 1 };

/* SubjectPublicKeyInfo of an Ed25519 key, without its last 32 bytes: RFC 8410, section 4. */
static const unsigned char pem_head[] = { 0x30, 0x2A, 0x30, 0x05, 0x06, 0x03,
                                          0x2B, 0x65, 0x70, 0x03, 0x21, 0x00 };
static const char pem_begin[] = "-----BEGIN PUBLIC KEY-----\n";
static const char pem_end[] = "\n-----END PUBLIC KEY-----\n";

void public_key_fill(struct public_key *key, const char *name)
{
    unsigned char hash[32];
    sha256_text_of(key->bytes, sizeof key->bytes, key->id);
    (void) snprintf(key->label, sizeof key->label, "key %.16s", key->id);
    if (name)
        (void) snprintf(key->name, sizeof key->name, "%s", name);
    else
        (void) snprintf(key->name, sizeof key->name, "glovebox/%.16s", key->id);

    unsigned char mark[2] = { '\n', ED25519_NOTE };
    struct sha256 state;
    sha256_begin(&state);
    sha256_add(&state, key->name, strlen(key->name));
    sha256_add(&state, mark, sizeof mark);
    sha256_add(&state, key->bytes, sizeof key->bytes);
    sha256_end(&state, hash);
    memcpy(key->note_hash, hash, sizeof key->note_hash);
}

void public_key_print(const struct public_key *key, char ret_text[KEY_TEXT_SIZE])
{
    unsigned char typed[1 + PUBLIC_KEY_SIZE] = { ED25519_NOTE };
    char base64[64], hash[9];
    memcpy(typed + 1, key->bytes, PUBLIC_KEY_SIZE);
    (void) sodium_bin2base64(base64, sizeof base64, typed, sizeof typed,
                             sodium_base64_VARIANT_ORIGINAL);
    (void) sodium_bin2hex(hash, sizeof hash, key->note_hash, sizeof key->note_hash);
    (void) snprintf(ret_text, KEY_TEXT_SIZE, "%s+%s+%s", key->name, hash, base64);
}

void public_key_print_pem(const struct public_key *key, char ret_text[KEY_TEXT_SIZE])
{
    unsigned char whole[sizeof pem_head + PUBLIC_KEY_SIZE];
    char base64[64];
    memcpy(whole, pem_head, sizeof pem_head);
    memcpy(whole + sizeof pem_head, key->bytes, PUBLIC_KEY_SIZE);
    (void) sodium_bin2base64(base64, sizeof base64, whole, sizeof whole,
                             sodium_base64_VARIANT_ORIGINAL);
    (void) snprintf(ret_text, KEY_TEXT_SIZE, "%s%s%s", pem_begin, base64, pem_end);
}

/* Is this a valid name of a key in a signed note? */
static bool is_name(const char *name)
{
    static const char prefix[] = "glovebox/";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && strlen(name) == KEY_NAME_SIZE - 1 &&
           strspn(name + sizeof prefix - 1, "0123456789abcdef") == KEY_NAME_SIZE - sizeof prefix;
}

/* Both formats have the key in base64 after a fixed number of bytes. Printing the key must give the
 * same text again, so that no byte can be changed without notice. */
int public_key_read(const char *text, struct public_key *ret_key, error *err)
{
    unsigned char decoded[64];
    size_t size = 0;
    bool is_pem = strncmp(text, pem_begin, sizeof pem_begin - 1) == 0;
    const char *end = strchr(text, '+'); /* the first two separate; base64 may have more */
    const char *plus = end ? strchr(end + 1, '+') : NULL;
    char name[KEY_NAME_SIZE] = "";
    const char *base64 = is_pem ? text + sizeof pem_begin - 1 : plus ? plus + 1 : text;
    (void) sodium_base642bin(decoded, sizeof decoded, base64, strlen(base64), NULL, &size,
                             &(const char *){ NULL }, sodium_base64_VARIANT_ORIGINAL);
    size_t head = is_pem ? sizeof pem_head : 1;
    struct public_key key = { .is_bare = is_pem };
    if (!is_pem && end && end - text < KEY_NAME_SIZE)
        (void) snprintf(name, sizeof name, "%.*s", (int) (end - text), text);
    if (size == head + PUBLIC_KEY_SIZE && (is_pem || is_name(name))) {
        memcpy(key.bytes, decoded + head, PUBLIC_KEY_SIZE);
        public_key_fill(&key, is_pem ? NULL : name);
        char again[KEY_TEXT_SIZE] = "";
        (is_pem ? public_key_print_pem : public_key_print)(&key, again);
        size_t length = strlen(again);
        if (strncmp(text, again, length) == 0 &&
            (text[length] == '\0' || strcmp(text + length, "\n") == 0)) {
            *ret_key = key;
            return 0;
        }
    }
    return fail(err, ERR_BAD_REQUEST,
                "this is no public key of glovebox; it is one line NAME+HASH+BASE64, or PEM "
                "(glovebox log key prints both)");
}

static int write_file(int folder, const char *name, const char *text, mode_t mode, error *err)
{
    char temporary[32];
    (void) snprintf(temporary, sizeof temporary, ".%s.new", name);
    (void) unlinkat(folder, temporary, 0);
    auto_fd file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    size_t size = strlen(text);
    if (file < 0 || write(file, text, size) != (ssize_t) size || fdatasync(file) < 0 ||
        renameat(folder, temporary, folder, name) < 0)
        return fail_os(err, "write the log's file '%s'", name);
    return 0;
}

static int make_key(int folder, const char *name, error *err)
{
    unsigned char seed[SEED_SIZE];
    char text[SEED_TEXT_SIZE + 1];
    randombytes_buf(seed, sizeof seed);
    (void) sodium_bin2hex(text, SEED_TEXT_SIZE, seed, sizeof seed);
    text[SEED_TEXT_SIZE - 1] = '\n';
    text[SEED_TEXT_SIZE] = '\0';
    int result = write_file(folder, name, text, 0600, err);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    return result;
}

static int read_seed(int file, unsigned char seed[SEED_SIZE], error *err)
{
    char text[SEED_TEXT_SIZE + 1] = "";
    size_t size = 0;
    struct stat status;
    if (fstat(file, &status) < 0)
        return fail_os(err, "look at the signing key");
    if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return fail(err, ERR_UNAVAILABLE,
                    "the signing key has mode %03o and belongs to user %u; it must be 600 and of "
                    "user %u",
                    status.st_mode & 0777U, status.st_uid, geteuid());
    ssize_t got = read(file, text, sizeof text - 1);
    int result = got == SEED_TEXT_SIZE && text[SEED_TEXT_SIZE - 1] == '\n'
                     ? sodium_hex2bin(seed, SEED_SIZE, text, SEED_TEXT_SIZE - 1, NULL, &size, NULL)
                     : -1;
    sodium_memzero(text, sizeof text);
    if (result < 0 || size != SEED_SIZE)
        return fail(err, ERR_UNAVAILABLE,
                    "the signing key is damaged; put it back from a copy, or move the folder of "
                    "the log away and begin a new one");
    return 0;
}

/* The log's origin from key.pub; if that is lost, from key.chain. */
static void find_name(int folder, const struct public_key *key, char ret_name[KEY_NAME_SIZE])
{
    char text[KEY_TEXT_SIZE + 1];
    struct public_key known;
    error unused;
    ret_name[0] = '\0';
    if (read_text_at(folder, "key.pub", text, sizeof text) > 0 &&
        public_key_read(text, &known, &unused) == 0) {
        memcpy(ret_name, known.name, KEY_NAME_SIZE);
        return;
    }
    auto_free struct key_chain *chain = malloc(sizeof *chain);
    int number = chain && key_chain_read(folder, chain, &unused) == 0
                     ? key_chain_number(chain, key->id)
                     : -1;
    if (number >= 0)
        memcpy(ret_name, key_chain_key(chain, (size_t) number)->name, KEY_NAME_SIZE);
}

static int load(int folder, int file, struct signing_key *ret_key, error *err)
{
    unsigned char seed[SEED_SIZE];
    char name[KEY_NAME_SIZE];
    if (read_seed(file, seed, err) < 0)
        return -1;
    (void) crypto_sign_seed_keypair(ret_key->public.bytes, ret_key->secret, seed);
    sodium_memzero(seed, sizeof seed);
    ret_key->public.is_bare = false;
    public_key_fill(&ret_key->public, NULL);
    find_name(folder, &ret_key->public, name);
    if (name[0])
        public_key_fill(&ret_key->public, name);
    return 0;
}

static int write_public(int folder, const struct public_key *key, error *err)
{
    char text[KEY_TEXT_SIZE + 1];
    public_key_print(key, text);
    memcpy(text + strlen(text), "\n", 2);
    return write_file(folder, "key.pub", text, 0644, err);
}

int key_open(int folder, struct signing_key *ret_key, error *err)
{
    auto_fd file = openat(folder, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_new = file < 0 && errno == ENOENT;
    if (is_new) {
        if (make_key(folder, "key", err) < 0)
            return -1;
        file = openat(folder, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (file < 0)
        return fail_os(err, "open the signing key");
    if (load(folder, file, ret_key, err) < 0)
        return -1;
    return !is_new && faccessat(folder, "key.pub", F_OK, 0) == 0
               ? 0
               : write_public(folder, &ret_key->public, err);
}

static const char next_name[] = "key.next";

int key_make_next(int folder, struct signing_key *ret_key, error *err)
{
    int found = make_key(folder, next_name, err) < 0 ? -1 : key_find_next(folder, ret_key, err);
    return found < 0 ? -1 : 0;
}

int key_find_next(int folder, struct signing_key *ret_key, error *err)
{
    auto_fd file = openat(folder, next_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return errno == ENOENT ? 0 : fail_os(err, "open the next signing key");
    return load(folder, file, ret_key, err) < 0 ? -1 : 1;
}

int key_take_next(int folder, const struct public_key *key, error *err)
{
    if (renameat(folder, next_name, folder, "key") < 0 || fsync(folder) < 0)
        return fail_os(err, "put the next signing key in its place");
    return write_public(folder, key, err);
}

void key_drop_next(int folder)
{
    (void) unlinkat(folder, next_name, 0);
}

void key_forget(struct signing_key *key)
{
    sodium_memzero(key, sizeof *key);
}
