/* sign_test.c - the example of the specification, and lines that are not secrets. */
#include "base/table.h"
#include "base/test.h"
#include "notify/notify.h"

#include <string.h>

/* https://github.com/standard-webhooks/standard-webhooks: the example of its libraries' tests. */
TEST(a_signature_is_what_others_expect)
{
    static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
    static const char body[] = "{\"test\": 2432232314}";
    struct webhook_secrets secrets;
    struct notify_event event = { .id = "msg_p5jXN8AQM9LWM0D4loKWxJek", .size = sizeof body - 1 };
    char text[SIGNED_MAX];
    error err;
    memcpy(event.body, body, sizeof body - 1);
    expect(webhook_secrets_read(secret, sizeof secret - 1, "file", &secrets, &err) == 0, "%s",
           err.text);
    webhook_sign(&secrets, &event, 1614265330, text);
    expect(strcmp(text, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=") == 0, "%s", text);
}

TEST(two_secrets_sign_both)
{
    static const char both[] = "# old\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n\n# new\n"
                               "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    struct webhook_secrets secrets;
    struct notify_event event = { .id = "msg_1", .size = 2, .body = "{}" };
    char text[SIGNED_MAX];
    error err;
    expect(webhook_secrets_read(both, sizeof both - 1, "file", &secrets, &err) == 0, "%s",
           err.text);
    webhook_sign(&secrets, &event, 1, text);
    const char *second = strstr(text, " v1,");
    expect(strncmp(text, "v1,", 3) == 0 && second && strlen(second) == 48, "%s", text);
}

TEST(an_invalid_secret_is_refused_and_not_printed)
{
    static const char three[] = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
                                "whsec_BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
                                "whsec_CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
    static const char *const facts[] = {
        "",
        "\n# nothing\n",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",        /* no prefix */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZI\n",          /* 18 bytes */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw \n", /* a blank */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!\n",
        three,
    };
    for_each(fact, facts) {
        struct webhook_secrets secrets;
        error err = { 0 };
        expect(webhook_secrets_read(*fact, strlen(*fact), "file", &secrets, &err) < 0, "'%s'",
               *fact);
        expect(!strstr(err.text, "MfKQ"), "'%s' shows it", err.text);
    }
}

TESTS(CASE(a_signature_is_what_others_expect), CASE(two_secrets_sign_both),
      CASE(an_invalid_secret_is_refused_and_not_printed))
