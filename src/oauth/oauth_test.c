/* oauth_test.c - the settings of tokens, and texts that are none. */
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

TEST(settings_are_all_there_or_none)
{
    static const char *const rows[][4] = {
        { "", "", "", "good" },
        { ISSUER, AUDIENCE, "/keys", "good" },
        { ISSUER, "", "/keys", "" },
        { "", AUDIENCE, "", "" },
        { ISSUER, AUDIENCE, "", "" },
        { ISSUER, AUDIENCE, "keys", "" },
        { "http://login.example.com", AUDIENCE, "/keys", "" },
        { "http://127.0.0.1:8080", AUDIENCE, "/keys", "good" },
        { ISSUER "?x", AUDIENCE, "/keys", "" },
        { ISSUER, AUDIENCE "\"", "/keys", "" },
    };
    for_each(row, rows) {
        error err;
        bool is_good = oauth_check_settings((*row)[0], (*row)[1], (*row)[2], &err) == 0;
        expect(is_good == ((*row)[3][0] != '\0'), "%s %s %s", (*row)[0], (*row)[1], (*row)[2]);
    }
}

TESTS(CASE(texts_that_are_no_tokens_are_refused), CASE(settings_are_all_there_or_none))
