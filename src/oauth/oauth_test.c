/* oauth_test.c - the settings for tokens, and texts that are not tokens. */
#include "base/table.h"
#include "base/test.h"
#include "oauth/oauth.h"

#include <string.h>

#define ISSUER   "https://login.example.com"
#define AUDIENCE "https://sandbox.example.com/mcp"

TEST(texts_that_are_no_tokens_are_refused)
{
    static const char *const texts[] = {
        "", ".", "..", "...", "a.b.c", "e30.e30.", ".e30.e30", "e30=.e30.e30", "e30.e30.e30.e30"
    };
    struct oauth oauth = { .issuer = ISSUER, .audience = AUDIENCE };
    for_each(text, texts) {
        struct oauth_token told;
        error err;
        expect(oauth_check(&oauth, *text, &told, &err) < 0 && err.code == ERR_UNAUTHORIZED, "%s",
               *text);
    }
}

TESTS(CASE(texts_that_are_no_tokens_are_refused))
