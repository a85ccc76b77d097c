/* jwks_test.c - which public keys may check signatures. */
#include "base/table.h"
#include "base/test.h"
#include "oauth/oauth.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

/* Returns how many keys are taken of a set with one RSA key. Its modulus has `bits` bits, all 1
 * except for those of the last byte. */
static size_t rsa_keys(unsigned bits, const char *exponent)
{
    char modulus[TEXT_MAX / 2], json[TEXT_MAX];
    struct oauth_keys keys;
    error err;
    size_t size = bits / 6; /* digits of base64url */
    memset(modulus, '_', size);
    modulus[size] = '\0';
    (void) snprintf(json, sizeof json, "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}]}",
                    modulus, exponent);
    int result = oauth_keys_read(json, strlen(json), &keys, &err);
    size_t count = keys.count;
    expect((result == 0) == (count > 0), "%u bits, '%s': %s", bits, exponent, err.text);
    oauth_keys_done(&keys);
    return count;
}

TEST(rsa_keys_with_an_invalid_exponent_are_skipped)
{
    static const struct {
        const char *exponent; /* base64url */
        size_t keys;
    } rows[] = {
        { "AQAB", 1 }, { "Aw", 1 },   { "AQ", 0 },   { "AAAB", 0 }, { "AA", 0 },
        { "Ag", 0 },   { "AQAA", 0 }, { "AQAC", 0 }, { "AAAD", 1 }, { "", 0 },
    };
    for_each(row, rows)
        expect(rsa_keys(2064, row->exponent) == row->keys, "'%s'", row->exponent);
}

TEST(rsa_keys_of_too_few_or_too_many_bits_are_skipped)
{
    expect(rsa_keys(2064, "AQAB") == 1 && rsa_keys(4080, "AQAB") == 1, "usual sizes");
    expect(rsa_keys(1008, "AQAB") == 0 && rsa_keys(2040, "AQAB") == 0, "too few");
    expect(rsa_keys(8256, "AQAB") == 0, "too many");
}

TESTS(CASE(rsa_keys_with_an_invalid_exponent_are_skipped),
      CASE(rsa_keys_of_too_few_or_too_many_bits_are_skipped))
