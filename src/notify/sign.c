/* sign.c - Standard Webhooks 1.0: HMAC-SHA256 over "id.timestamp.body", as "v1,BASE64". */
#include "notify/notify.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = "whsec_";
enum { SECRET_MIN = 24 };

static int add_line(const char *line, size_t size, struct webhook_secrets *secrets)
{
    size_t head = sizeof prefix - 1, got = 0;
    if (size <= head || memcmp(line, prefix, head) != 0 || secrets->count == SECRETS_MAX)
        return -1;
    unsigned char *room = secrets->list[secrets->count].bytes;
    const char *end = NULL;
    if (sodium_base642bin(room, SECRET_MAX, line + head, size - head, NULL, &got, &end,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        end != line + size || got < SECRET_MIN)
        return -1;
    secrets->list[secrets->count++].size = got;
    return 0;
}

int webhook_secrets_read(const char *text, size_t size, const char *path,
                         struct webhook_secrets *ret_secrets, error *err)
{
    struct webhook_secrets secrets = { 0 };
    unsigned number = 0;
    for (size_t at = 0; at < size;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', size - at);
        size_t length = end ? (size_t) (end - line) : size - at;
        at += length + 1;
        number++;
        if (length == 0 || line[0] == '#')
            continue;
        if (add_line(line, length, &secrets) < 0) {
            sodium_memzero(&secrets, sizeof secrets);
            return fail(err, ERR_BAD_REQUEST,
                        "%s:%u: is no secret; write at most %d lines whsec_BASE64 of %d to %d "
                        "bytes: (echo -n whsec_; openssl rand -base64 32) > FILE",
                        path, number, SECRETS_MAX, SECRET_MIN, SECRET_MAX);
        }
    }
    if (secrets.count == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "%s holds no secret; (echo -n whsec_; openssl rand -base64 32) > FILE", path);
    *ret_secrets = secrets;
    sodium_memzero(&secrets, sizeof secrets);
    return 0;
}

void webhook_sign(const struct webhook_secrets *secrets, const struct notify_event *event,
                  int64_t time_s, char ret_text[SIGNED_MAX])
{
    char head[NOTIFY_ID_SIZE + 32];
    int head_size = snprintf(head, sizeof head, "%s.%" PRId64 ".", event->id, time_s);
    size_t used = 0;
    for (unsigned i = 0; i < secrets->count; i++) {
        unsigned char hash[crypto_auth_hmacsha256_BYTES];
        char base64[64];
        crypto_auth_hmacsha256_state state;
        const unsigned char *secret = secrets->list[i].bytes;
        size_t size = secrets->list[i].size;
        (void) crypto_auth_hmacsha256_init(&state, secret, size);
        (void) crypto_auth_hmacsha256_update(&state, (const unsigned char *) head,
                                             (unsigned) head_size);
        (void) crypto_auth_hmacsha256_update(&state, (const unsigned char *) event->body,
                                             event->size);
        (void) crypto_auth_hmacsha256_final(&state, hash);
        sodium_memzero(&state, sizeof state);
        (void) sodium_bin2base64(base64, sizeof base64, hash, sizeof hash,
                                 sodium_base64_VARIANT_ORIGINAL);
        int more =
            snprintf(ret_text + used, SIGNED_MAX - used, "%sv1,%s", i > 0 ? " " : "", base64);
        used += (size_t) more;
    }
}
