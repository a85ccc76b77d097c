/* key.c - the text of a key, and the names of its scopes. */
#include "keys/key.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX = 4, SECRET_TEXT = 43 };

static const char *const names[SCOPES] = {
#define SCOPE(name, word, text) word,
#include "keys/scopes.def"
};

const char *scope_name(enum scope_bit bit)
{
    return names[bit];
}

static uint32_t scope_of(const char *word, size_t length)
{
    for (unsigned bit = 0; bit < SCOPES; bit++)
        if (strlen(names[bit]) == length && strncmp(names[bit], word, length) == 0)
            return 1U << bit;
    return 0;
}

int scopes_read(const char *text, uint32_t *ret_scopes, error *err)
{
    uint32_t scopes = 0;
    for (const char *word = text;;) {
        size_t length = strcspn(word, ",");
        uint32_t scope = scope_of(word, length);
        if (scope == 0) {
            char all[96];
            scopes_print(SCOPE_EVERY, all, sizeof all);
            return fail(err, ERR_BAD_REQUEST, "no scope is named '%.*s'; there are: %s",
                        length > 40 ? 40 : (int) length, word, all);
        }
        scopes |= scope;
        if (word[length] == '\0')
            break;
        word += length + 1;
    }
    *ret_scopes = scopes;
    return 0;
}

void scopes_print(uint32_t scopes, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned bit = 0; bit < SCOPES && used < size; bit++)
        if (scopes & 1U << bit)
            used += (size_t) snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "",
                                      names[bit]);
}

bool key_allows_policy(const struct api_key *key, const char *policy)
{
    size_t wanted = strlen(policy);
    if (key->policies[0] == '\0')
        return true;
    for (const char *word = key->policies;;) {
        size_t length = strcspn(word, ",");
        if (length == wanted && strncmp(word, policy, length) == 0)
            return true;
        if (word[length] == '\0')
            return false;
        word += length + 1;
    }
}

void key_print(const char *id, const unsigned char secret[API_KEY_SECRET_SIZE],
               char ret_text[API_KEY_TEXT_SIZE])
{
    (void) snprintf(ret_text, API_KEY_TEXT_SIZE, "glb_%s_", id);
    size_t used = PREFIX + API_KEY_ID_SIZE;
    (void) sodium_bin2base64(ret_text + used, API_KEY_TEXT_SIZE - used, secret, API_KEY_SECRET_SIZE,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

bool key_parse(const char *text, char ret_id[API_KEY_ID_SIZE],
               unsigned char ret_secret[API_KEY_SECRET_SIZE])
{
    enum { ID = API_KEY_ID_SIZE - 1 };
    if (strlen(text) != API_KEY_TEXT_SIZE - 1 || strncmp(text, "glb_", PREFIX) != 0 ||
        strspn(text + PREFIX, "0123456789abcdef") != ID || text[PREFIX + ID] != '_')
        return false;
    size_t size = 0;
    const char *secret = text + PREFIX + ID + 1;
    if (sodium_base642bin(ret_secret, API_KEY_SECRET_SIZE, secret, SECRET_TEXT, NULL, &size, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        size != API_KEY_SECRET_SIZE)
        return false;
    memcpy(ret_id, text + PREFIX, ID);
    ret_id[ID] = '\0';
    return true;
}
