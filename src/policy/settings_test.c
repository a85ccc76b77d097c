/* settings_test.c - the table of settings, and the differences of two states. */
#include "policy/settings.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(every_setting_starts_with_a_value_that_it_takes)
{
    static struct settings settings;
    error err;
    settings_init(&settings);
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        const struct setting_row *row = &setting_rows[id];
        expect(settings_set(&settings, id, row->start, "default", &err) == 0, "%s: %s", row->key,
               err.text);
        expect(strcmp(settings.list[id].origin, "default") == 0, "%s has no value", row->key);
        expect(setting_find(row->key) == id, "%s is not found", row->key);
    }
    expect(setting_find("slot") == SETTINGS && setting_find("") == SETTINGS, "others are found");
}

TEST(differences_are_listed_by_when_they_take_effect)
{
    static struct settings before, after;
    char text[200];
    error err;
    settings_init(&before);
    after = before;
    require(settings_set(&after, SETTING_queue, "512", "a", &err) == 0 &&
                settings_set(&after, SETTING_slots, "8", "g.yaml:2:8", &err) == 0 &&
                settings_set(&after, SETTING_listen, "127.0.0.1:1", "a", &err) == 0,
            "%s", err.text);
    expect(settings_differ(&before, &after, true, text, sizeof text) == 1, "%s", text);
    expect(strcmp(text, "queue 32 -> 512") == 0, "%s", text);
    expect(settings_differ(&before, &after, false, text, sizeof text) == 2, "%s", text);
    expect(strcmp(text, "listen unset -> 127.0.0.1:1, slots 256 -> 8") == 0, "%s", text);
    expect(strcmp(after.list[SETTING_slots].origin, "g.yaml:2:8") == 0, "%s",
           after.list[SETTING_slots].origin);
    expect(after.list[SETTING_slots].number == 8, "%d", (int) after.list[SETTING_slots].number);
}

TEST(names_and_origins_that_match_nothing_are_refused)
{
    static const struct {
        enum setting_id id;
        const char *value;
        bool is_taken;
    } facts[] = {
        { SETTING_public_hosts, "sandbox.example.com, other_1.example", true },
        { SETTING_public_hosts, "*", false },
        { SETTING_public_hosts, "a.example,*.b.example", false },
        { SETTING_public_hosts, "https://a.example", false },
        { SETTING_public_hosts, "a.example:443", false },
        { SETTING_allowed_origins, "https://a.example,http://b.example:8080", true },
        { SETTING_allowed_origins, "chrome-extension://abcdef", true },
        { SETTING_allowed_origins, "https://[::1]:8080", true },
        { SETTING_allowed_origins, "a.example", false },
        { SETTING_allowed_origins, "a.example,https://b.example", false },
        { SETTING_allowed_origins, "https://a.example/", false },
        { SETTING_allowed_origins, "https://*.example", false },
        { SETTING_allowed_origins, "https://", false },
        { SETTING_allowed_origins, "null", false },
        { SETTING_allowed_origins, "*", false },
    };
    static struct settings settings;
    settings_init(&settings);
    for_each(fact, facts) {
        error err = { 0 };
        int result = settings_set(&settings, fact->id, fact->value, "g.yaml:1:1", &err);
        expect((result == 0) == fact->is_taken, "'%s': %s", fact->value, err.text);
        expect(fact->is_taken || strstr(err.text, "must be as "), "%s", err.text);
    }
}

TEST(oauth_is_set_wholly_or_not_at_all)
{
    static const struct {
        const char *issuer, *audience, *keys;
        bool is_taken;
    } facts[] = {
        { "", "", "", true },
        { "https://a.example", "https://b.example/mcp", "/keys", true },
        { "https://a.example", "", "/keys", false },
        { "", "https://b.example/mcp", "", false },
        { "https://a.example", "https://b.example/mcp", "", false },
        { "https://a.example", "https://b.example/mcp", "keys", false },
        { "http://a.example", "https://b.example/mcp", "/keys", false },
        { "http://127.0.0.1.example", "https://b.example/mcp", "/keys", false },
        { "http://127.0.0.1:8080", "https://b.example/mcp", "/keys", true },
        { "https://a.example?x", "https://b.example/mcp", "/keys", false },
        { "https://a.example", "https://b.example/mcp\"", "/keys", false },
    };
    static struct settings settings;
    settings_init(&settings);
    for_each(fact, facts) {
        error err = { 0 };
        require(settings_set(&settings, SETTING_oauth_issuer, fact->issuer, "a", &err) == 0 &&
                    settings_set(&settings, SETTING_oauth_audience, fact->audience, "a", &err) ==
                        0 &&
                    settings_set(&settings, SETTING_oauth_keys, fact->keys, "a", &err) == 0,
                "%s", err.text);
        expect((settings_check(&settings, &err) == 0) == fact->is_taken, "%s %s %s: %s",
               fact->issuer, fact->audience, fact->keys, err.text);
    }
}

TEST(the_page_of_approvals_names_the_approval)
{
    static const struct {
        const char *url;
        bool is_taken;
    } facts[] = {
        { "https://console.example.com/{id}", true },
        { "http://127.0.0.1:80/{id}", true },
        { "https://console.example.com/", false },
        { "http://console.example.com/{id}", false },
        { "https://console.example.com/ {id}", false },
    };
    static struct settings settings;
    settings_init(&settings);
    for_each(fact, facts) {
        error err = { 0 };
        require(settings_set(&settings, SETTING_approval_url, fact->url, "a", &err) == 0, "%s",
                err.text);
        expect((settings_check(&settings, &err) == 0) == fact->is_taken, "%s", fact->url);
    }
}

TEST(none_is_no_address)
{
    static struct settings settings;
    error err = { 0 };
    settings_init(&settings);
    expect(settings_set(&settings, SETTING_listen, "none", "a", &err) == 0 &&
               !settings_text(&settings, SETTING_listen),
           "%s", settings.list[SETTING_listen].text);
}

TESTS(CASE(every_setting_starts_with_a_value_that_it_takes),
      CASE(differences_are_listed_by_when_they_take_effect),
      CASE(names_and_origins_that_match_nothing_are_refused),
      CASE(oauth_is_set_wholly_or_not_at_all), CASE(the_page_of_approvals_names_the_approval),
      CASE(none_is_no_address))
