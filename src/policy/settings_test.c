/* settings_test.c - files that are taken, and what is said about those that are not. */
#include "policy/settings.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static int read(struct settings *settings, const char *text, error *err)
{
    settings_init(settings);
    return settings_read(settings, "g.yaml", text, strlen(text), err);
}

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

TEST(a_file_is_taken_whole_or_refused_with_its_place)
{
    static const struct {
        const char *text, *says;
    } facts[] = {
        { "slots: 8\nlisten: 127.0.0.1:7070\n", NULL },
        { "log_level: debug # more\nno_keys: true\n", NULL },
        { "slot: 8\n",
          "g.yaml:1:1: nothing is called 'slot' here; glovebox config show lists what is" },
        { "\nslots: 0\n", "g.yaml:2:8: slots must be 1 to 4096, not '0'" },
        { "slots: 8x\n", "g.yaml:1:8: slots must be 1 to 4096, not '8x'" },
        { "slots: -1\n", "g.yaml:1:8: slots must be 1 to 4096, not '-1'" },
        { "slots: [1]\n", "g.yaml:1:8: 'slots' takes one value" },
        { "log_level: loud\n",
          "g.yaml:1:12: log_level must be one of error, warning, notice, info, debug, not 'loud'" },
        { "no_keys: yes\n", "g.yaml:1:10: no_keys must be one of false, true, not 'yes'" },
        { "- slots\n",
          "g.yaml:1:1: the file holds no settings; write \"name: value\" on each line" },
    };
    for_each(fact, facts) {
        static struct settings settings;
        error err = { 0 };
        int result = read(&settings, fact->text, &err);
        expect(fact->says ? result < 0 && strcmp(err.text, fact->says) == 0 : result == 0,
               "'%s' gave %d: %s", fact->text, result, err.text);
    }
}

TEST(what_differs_is_said_by_when_it_counts)
{
    static struct settings before, after;
    char text[200];
    error err;
    settings_init(&before);
    require(read(&after, "queue: 512\nslots: 8\nlisten: 127.0.0.1:1\n", &err) == 0, "%s", err.text);
    expect(settings_differ(&before, &after, true, text, sizeof text) == 1, "%s", text);
    expect(strcmp(text, "queue 32 -> 512") == 0, "%s", text);
    expect(settings_differ(&before, &after, false, text, sizeof text) == 2, "%s", text);
    expect(strcmp(text, "listen unset -> 127.0.0.1:1, slots 256 -> 8") == 0, "%s", text);
    expect(strcmp(after.list[SETTING_slots].origin, "g.yaml:2:8") == 0, "%s",
           after.list[SETTING_slots].origin);
    expect(after.list[SETTING_slots].number == 8, "%d", (int) after.list[SETTING_slots].number);
}

TESTS(CASE(every_setting_starts_with_a_value_that_it_takes),
      CASE(a_file_is_taken_whole_or_refused_with_its_place),
      CASE(what_differs_is_said_by_when_it_counts))
