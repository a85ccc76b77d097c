/* settings_file_test.c - valid settings files, and the messages for invalid ones. */
#include "cli/common/settings_file.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static int read(struct settings *settings, const char *text, error *err)
{
    settings_init(settings);
    return settings_read(settings, "g.yaml", text, strlen(text), err);
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
        { "log_keep: 10G\n", "g.yaml:1:11: log_keep must be 0 to 4611686018427387904, not '10G'" },
        { "log_sync: always\n", "g.yaml:1:11: log_sync must be one of group, each, not 'always'" },
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

TESTS(CASE(a_file_is_taken_whole_or_refused_with_its_place))
