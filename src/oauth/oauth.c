/* oauth.c - the trusted issuer, the file of its keys, and the id of a caller within gloveboxd. */
#include "oauth/oauth.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/read_at.h"
#include "base/text.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 256 * 1024, LOOK_EVERY_MS = 1000, NANOSECONDS = 1000000000, HASH_SIZE = 32 };

bool oauth_is_configured(const struct oauth *oauth)
{
    return oauth->issuer[0] != '\0';
}

void oauth_done(struct oauth *oauth)
{
    oauth_keys_done(&oauth->keys);
    *oauth = (struct oauth){ .looked_ms = 0 };
}

void oauth_configure(struct oauth *oauth, const char *issuer, const char *audience,
                     const char *path)
{
    if (strcmp(oauth->issuer, issuer) == 0 && strcmp(oauth->audience, audience) == 0 &&
        strcmp(oauth->path, path) == 0)
        return;
    oauth_done(oauth);
    (void) snprintf(oauth->issuer, sizeof oauth->issuer, "%s", issuer);
    (void) snprintf(oauth->audience, sizeof oauth->audience, "%s", audience);
    (void) snprintf(oauth->path, sizeof oauth->path, "%s", path);
}

static int read_file(int fd, size_t size, struct oauth_keys *keys, error *err)
{
    char *text = malloc(size + 1);
    if (!text)
        return fail(err, ERR_SYSTEM, "no memory for keys");
    int result = read_at(fd, text, size, 0) == (ssize_t) size
                     ? oauth_keys_read(text, size, keys, err)
                     : fail(err, ERR_SYSTEM, "it cannot be read");
    free(text);
    return result;
}

/* A file that cannot be used leaves the keys that were read before in use. */
static int read_again(struct oauth *oauth, int fd, const struct stat *info, error *err)
{
    struct oauth_keys fresh;
    if (!S_ISREG(info->st_mode) || info->st_size > FILE_MAX)
        return fail(err, ERR_SYSTEM, "it is no file of at most %d bytes", FILE_MAX);
    if (read_file(fd, (size_t) info->st_size, &fresh, err) < 0)
        return -1;
    oauth_keys_done(&oauth->keys);
    oauth->keys = fresh;
    return 0;
}

static int look(struct oauth *oauth, error *err)
{
    struct stat info;
    auto_fd fd = open(oauth->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) < 0)
        return fail_os(err, "open it");
    int64_t changed_ns = (int64_t) info.st_mtim.tv_sec * NANOSECONDS + info.st_mtim.tv_nsec;
    if (oauth->looked_ms != 0 && oauth->failure.code == ERR_NONE &&
        oauth->changed_ns == changed_ns && oauth->inode == info.st_ino &&
        oauth->size == (uint64_t) info.st_size)
        return 0;
    if (read_again(oauth, fd, &info, err) < 0)
        return -1;
    oauth->changed_ns = changed_ns;
    oauth->inode = info.st_ino;
    oauth->size = (uint64_t) info.st_size;
    return 0;
}

bool oauth_look(struct oauth *oauth)
{
    if (!oauth_is_configured(oauth) ||
        (oauth->looked_ms != 0 && now_ms() - oauth->looked_ms < LOOK_EVERY_MS))
        return false;
    error cause = { .code = ERR_NONE };
    if (look(oauth, &cause) < 0)
        (void) under(&cause, "file of keys '%s'", oauth->path);
    bool is_new = cause.code != ERR_NONE && strcmp(cause.text, oauth->failure.text) != 0;
    oauth->failure = cause;
    oauth->looked_ms = now_ms();
    return is_new;
}

static int take_keys(struct oauth *oauth, error *err)
{
    (void) oauth_look(oauth);
    if (oauth->keys.count > 0)
        return 0;
    return fail(err, ERR_UNAUTHORIZED, "no token can be checked: the %.180s", oauth->failure.text);
}

/* Derived from issuer and subject, so that different callers differ. Tokens of one subject with
 * other scopes or policies are other callers of the same tenant: an account has one set of scopes,
 * and a request that is under way must keep its own. */
static void name_caller(const struct oauth *oauth, const struct oauth_token *token,
                        struct api_key *key)
{
    crypto_generichash_state state;
    unsigned char hash[HASH_SIZE];
    char hex[2 * HASH_SIZE + 1];
    (void) crypto_generichash_init(&state, NULL, 0, sizeof hash);
    (void) crypto_generichash_update(&state, (const void *) oauth->issuer,
                                     strlen(oauth->issuer) + 1);
    (void) crypto_generichash_update(&state, (const void *) token->subject,
                                     strlen(token->subject) + 1);
    crypto_generichash_state with_scopes = state;
    (void) crypto_generichash_final(&state, hash, sizeof hash);
    (void) sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    (void) snprintf(key->tenant, sizeof key->tenant, "oauth-%.48s", hex);
    (void) crypto_generichash_update(&with_scopes, (const void *) &token->scopes,
                                     sizeof token->scopes);
    (void) crypto_generichash_update(&with_scopes, (const void *) token->policies,
                                     strlen(token->policies));
    (void) crypto_generichash_final(&with_scopes, hash, sizeof hash);
    (void) sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    (void) snprintf(key->id, sizeof key->id, "o%.15s", hex); /* API keys' ids begin with a digit */
}

int oauth_identify(struct oauth *oauth, const char *text, struct api_key *ret_key, error *err)
{
    struct oauth_token token;
    if (!oauth_is_configured(oauth))
        return fail(err, ERR_UNAUTHORIZED,
                    "tokens are not accepted here: no oauth_issuer is set; use an API key");
    if (take_keys(oauth, err) < 0 || oauth_check(oauth, text, &token, err) < 0)
        return -1;
    *ret_key = (struct api_key){ .scopes = token.scopes, .expires_s = token.expires_s };
    if (text_find_unclean(token.subject, strlen(token.subject)) == strlen(token.subject) &&
        !strpbrk(token.subject, "\t\n"))
        (void) snprintf(ret_key->name, sizeof ret_key->name, "%.*s",
                        text_head(token.subject, (int) sizeof ret_key->name - 1), token.subject);
    memcpy(ret_key->policies, token.policies, sizeof ret_key->policies);
    name_caller(oauth, &token, ret_key);
    return 0;
}
