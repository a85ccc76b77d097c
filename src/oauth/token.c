/* token.c - one access token: header, claims and signature, each as base64url with a full stop
 * between them (RFC 7519, RFC 9068). No claim is used before the signature is checked. */
#include "base/clock.h"
#include "base/table.h"
#include "oauth/oauth.h"
#include "json/member.h"
#include "json/reader.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TOKEN_MAX = 8192, PART_MAX = TOKEN_MAX, PARTS = 3, SKEW_S = 60 };

static const char scope_prefix[] = "glovebox:";
static const char policy_prefix[] = "policy:";

struct part {
    const char *text;
    size_t size;
};

bool oauth_is_token(const char *text)
{
    const char *first = strchr(text, '.');
    const char *second = first ? strchr(first + 1, '.') : NULL;
    return second && !strchr(second + 1, '.');
}

static void take_apart(const char *text, struct part parts[PARTS])
{
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (struct part){ text, strcspn(text, ".") };
        text += parts[i].size + 1;
    }
}

static int decode(const struct part *part, unsigned char room[PART_MAX], size_t *ret_size)
{
    return part->size > 0 &&
                   sodium_base642bin(room, PART_MAX, part->text, part->size, NULL, ret_size, NULL,
                                     sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0
               ? 0
               : -1;
}

static int read_object(const struct part *part, struct json_object **ret_object, error *err)
{
    unsigned char room[PART_MAX];
    size_t size;
    error cause;
    auto_json object = NULL;
    if (decode(part, room, &size) < 0 ||
        json_read_exact((const char *) room, size, &object, &cause) < 0 ||
        !json_object_is_type(object, json_type_object))
        return fail(err, ERR_UNAUTHORIZED, "the token is malformed: it needs JSON in base64url");
    *ret_object = take_json(&object);
    return 0;
}

static bool is_access_token(struct json_object *header)
{
    static const char *const types[] = { "at+jwt", "application/at+jwt", "JWT" };
    const char *type = member_text(header, "typ");
    if (!json_member(header, "typ"))
        return true;
    for_each(name, types)
        if (type && strcasecmp(type, *name) == 0)
            return true;
    return false;
}

static int check_signature(const struct oauth *oauth, const struct part parts[PARTS],
                           struct json_object *header, error *err)
{
    unsigned char signature[PART_MAX];
    const char *algorithm = member_text(header, "alg");
    struct oauth_signed said = { algorithm,     member_text(header, "kid"),
                                 parts[0].text, parts[0].size + 1 + parts[1].size,
                                 signature,     0 };
    if (!algorithm || !is_access_token(header) || (json_member(header, "kid") && !said.id))
        return fail(err, ERR_UNAUTHORIZED, "the token must have the type at+jwt");
    if (json_object_object_get_ex(header, "crit", NULL))
        return fail(err, ERR_UNAUTHORIZED, "the token has unsupported extensions (crit)");
    if (decode(&parts[2], signature, &said.signature_size) < 0)
        return fail(err, ERR_UNAUTHORIZED, "the token has no signature");
    return oauth_verify(&oauth->keys, &said, err);
}

static bool is_for(struct json_object *claims, const char *audience)
{
    struct json_object *value = json_member(claims, "aud");
    const char *text = member_text(claims, "aud");
    if (text)
        return strcmp(text, audience) == 0;
    size_t count =
        json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *one = json_object_array_get_idx(value, i);
        if (json_object_is_type(one, json_type_string) &&
            json_object_get_string_len(one) == (int) strlen(audience) &&
            strcmp(json_object_get_string(one), audience) == 0)
            return true;
    }
    return false;
}

/* Seconds since 1970. False: the claim is there and is no number of seconds. */
static bool read_moment(struct json_object *claims, const char *name, int64_t *ret_s)
{
    struct json_object *value = json_member(claims, name);
    if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
        return json_object_object_get_ex(claims, name, NULL) == 0;
    double seconds = json_object_get_double(value);
    if (!(seconds >= 0 && seconds < 1e11))
        return false;
    *ret_s = (int64_t) seconds;
    return true;
}

static int check_times(struct json_object *claims, int64_t *ret_expires_s, error *err)
{
    int64_t now_s = wall_clock_ms() / 1000, not_before_s = 0, issued_s = 0;
    *ret_expires_s = 0;
    if (!read_moment(claims, "exp", ret_expires_s) || !read_moment(claims, "nbf", &not_before_s) ||
        !read_moment(claims, "iat", &issued_s) || *ret_expires_s == 0)
        return fail(err, ERR_UNAUTHORIZED, "the token has no time of expiry (exp)");
    if (*ret_expires_s <= now_s)
        return fail(err, ERR_UNAUTHORIZED, "the token has expired; get a new one");
    if (not_before_s > now_s + SKEW_S || issued_s > now_s + SKEW_S)
        return fail(err, ERR_UNAUTHORIZED, "the token is not valid yet (nbf); check the clocks");
    return 0;
}

/* Adds a policy that the token is limited to. A name that does not fit must not lift the limit. */
static int add_policy(const char *name, size_t size, struct oauth_token *token)
{
    size_t used = strlen(token->policies);
    if (size == 0 || memchr(name, ',', size) || used + size + 2 > sizeof token->policies)
        return -1;
    (void) snprintf(token->policies + used, sizeof token->policies - used, "%s%.*s",
                    used > 0 ? "," : "", (int) size, name);
    return 0;
}

static int add_scope(const char *word, size_t size, struct oauth_token *token)
{
    size_t prefix = sizeof scope_prefix - 1, policy = sizeof policy_prefix - 1;
    if (size <= prefix || strncmp(word, scope_prefix, prefix) != 0)
        return 0;
    word += prefix;
    size -= prefix;
    if (size >= policy && strncmp(word, policy_prefix, policy) == 0)
        return add_policy(word + policy, size - policy, token);
    for (enum scope_bit bit = 0; bit < SCOPES; bit++)
        if ((OAUTH_SCOPES & (1U << bit)) && strlen(scope_name(bit)) == size &&
            strncmp(word, scope_name(bit), size) == 0)
            token->scopes |= 1U << bit;
    return 0;
}

static int add_scopes(struct json_object *value, struct oauth_token *token)
{
    int result = 0;
    if (json_object_is_type(value, json_type_string)) {
        const char *text = json_object_get_string(value);
        for (size_t size; *text && result == 0; text += size + (text[size] == ' ')) {
            size = strcspn(text, " ");
            result = add_scope(text, size, token);
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && result == 0; i++) {
            struct json_object *one = json_object_array_get_idx(value, i);
            if (json_object_is_type(one, json_type_string))
                result = add_scope(json_object_get_string(one), strlen(json_object_get_string(one)),
                                   token);
        }
    }
    return result;
}

static int check_claims(const struct oauth *oauth, struct json_object *claims,
                        struct oauth_token *token, error *err)
{
    const char *issuer = member_text(claims, "iss");
    const char *subject = member_text(claims, "sub");
    if (!issuer || strcmp(issuer, oauth->issuer) != 0)
        return fail(err, ERR_UNAUTHORIZED, "the token is of another issuer");
    if (!is_for(claims, oauth->audience))
        return fail(err, ERR_UNAUTHORIZED,
                    "the token is for another service; ask for one for %.120s", oauth->audience);
    if (check_times(claims, &token->expires_s, err) < 0)
        return -1;
    if (!subject || !subject[0] || strlen(subject) >= sizeof token->subject)
        return fail(err, ERR_UNAUTHORIZED, "the token has no subject (sub)");
    memcpy(token->subject, subject, strlen(subject) + 1);
    if (add_scopes(json_member(claims, "scope"), token) < 0 ||
        add_scopes(json_member(claims, "scp"), token) < 0)
        return fail(err, ERR_UNAUTHORIZED,
                    "the token's scopes glovebox:policy:… name no policy, or have more than %zu "
                    "bytes of names",
                    sizeof token->policies - 1);
    return 0;
}

int oauth_check(struct oauth *oauth, const char *text, struct oauth_token *ret_token, error *err)
{
    struct part parts[PARTS];
    auto_json header = NULL;
    auto_json claims = NULL;
    *ret_token = (struct oauth_token){ .scopes = 0 };
    if (strlen(text) > TOKEN_MAX || !oauth_is_token(text))
        return fail(err, ERR_UNAUTHORIZED, "the token is malformed, or longer than %d bytes",
                    TOKEN_MAX);
    take_apart(text, parts);
    int result = read_object(&parts[0], &header, err);
    if (result == 0)
        result = check_signature(oauth, parts, header, err);
    if (result == 0)
        result = read_object(&parts[1], &claims, err);
    if (result == 0)
        result = check_claims(oauth, claims, ret_token, err);
    return result;
}

void oauth_scopes_print(uint32_t scopes, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (enum scope_bit bit = 0; bit < SCOPES; bit++)
        if ((scopes & OAUTH_SCOPES & (1U << bit)) && at < size)
            at += (size_t) snprintf(text + at, size - at, "%s%s%s", at > 0 ? " " : "", scope_prefix,
                                    scope_name(bit));
}
