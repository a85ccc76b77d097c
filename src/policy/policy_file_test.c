/* policy_file_test.c - the values that keys of a policy file accept. */
#include "policy/policy.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"

#include <fcntl.h>
#include <string.h>

#define HEAD "name: a\ntemplate: t\nlanguages: [python]\n"

static const struct {
    const char *text;
    const char *place_and_cause; /* NULL: valid */
} strict_keys[] = {
    { HEAD, NULL },
    { HEAD "network: none\nprecheck: {}\napproval:\nenv: {}\nlimits: {}\n", NULL },
    { "name: a\ntemplate: t\nlanguages: []\n", "f:3:12: languages is a list" },
    { "name: a\ntemplate: t\nlanguages: [python, Bash]\n", "f:3:21: 'Bash' is no language" },
    { "name: a\ntemplate: t\nlanguages: [bash, bash]\n", "f:3:19: 'bash' is listed twice" },
    { "name: a\ntemplate: t\nlanguages: [sh, bash]\n", "f:3:17: 'bash' is listed twice" },
    { "name: a\ntemplate: t\nlanguages: [[bash]]\n", "f:3:13: a list or a mapping where" },
    { "name: a\ntemplate: t\nlanguages: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]\n",
      "f:3:12: more than 16 languages" },
    { "name: A\n", "f:1:7: 'A' is no name" },
    { "name: {a: b}\n", "f:1:7: a list or a mapping where" },
    { "[name]\n", "f:1:1: no mapping" },
    { "text\n", "f:1:1: no mapping" },
    { "[a]: b\n", "f:1:1: unknown key ''" },
    { "? [name]\n: a\n", "f:1:3: unknown key" },
    { HEAD "limits: 5s\n", "f:4:9: no mapping" },
    { HEAD "limits: {[wall]: 5s}\n", "f:4:10: a key is a word" },
    { HEAD "limits: {wall_ms: 5}\n", "f:4:10: no limit is named 'wall_ms'" },
    { HEAD "limits: {wall: [5s]}\n", "f:4:16: a list or a mapping where" },
    { HEAD "limits: {wall: 5 s}\n", "f:4:16: limit wall cannot be '5 s'" },
    { HEAD "limits: {wall: '5s'}\n", NULL },
    { HEAD "limits: {wall: ''}\n", "f:4:16: limit wall cannot be ''" },
    { HEAD "limits: {wall: }\n", "f:4:" },
    { HEAD "network: loopback\n", NULL },
    { HEAD "network: {endpoints: {a: {url: https://x.org/v1, rate: 5, headers: [X-Key]}}}\n",
      NULL },
    { HEAD "network: {endpoints: {a: {url: https://x.org, idle: 30s}}}\n", NULL },
    { HEAD "network: {endpoints: {a: {url: https://x.org, idle: 2h}}}\n",
      "f:4:53: no time from 1s to 1h" },
    { HEAD "network: {endpoints: {a: {url: https://x.org, idle: 10ms}}}\n",
      "f:4:53: no time from 1s" },
    { HEAD "network: {endpoints: {a: {url: https://x.org, idle: [1s]}}}\n",
      "f:4:53: no time from 1s" },
    { HEAD "network: {endpoints: {a: {url: ftp://x.org}}}\n", "f:4:32: url names one host" },
    { HEAD "network: {endpoints: {a: {url: https://10.1}}}\n", "f:4:32: url names one host" },
    { HEAD "network: {endpoints: {a: {url: https://u@x.org}}}\n", "f:4:32: url names one host" },
    { HEAD "network: {endpoints: {a: {url: https://x.org/../v1}}}\n", "f:4:32: url names one" },
    { HEAD "network: {endpoints: {a: {url: https://x.org:0}}}\n", "f:4:32: url names one host" },
    { HEAD "network: {endpoints: {A: {url: https://x.org}}}\n", "f:4:23: a name of an endpoint" },
    { HEAD "network: {endpoints: {a: {methods: [GET]}}}\n", "f:4:26: it lacks its url" },
    { HEAD "network: {endpoints: {a: {link: x}}}\n", "f:4:27: unknown key; keys are url, " },
    { HEAD "network: {endpoints: {a: {url: https://x.org, headers: ['a: b']}}}\n",
      "f:4:57: no name of a header" },
    { HEAD "network: {endpoints: {}}\n", "f:4:22: endpoints is a mapping" },
    { HEAD "network: {allow: [a.endpoint]}\n", "f:4:19: names of endpoints belong under" },
    { HEAD "sessions: {max: 4, idle: 10m, age: 24h, memory: 1GiB, checkpoints: 16, "
           "checkpoints_size: 2GiB}\n",
      NULL },
    { HEAD "sessions: {checkpoints: 0}\n", NULL },
    { HEAD "sessions: {checkpoints: 17}\n", "f:4:25: sessions.checkpoints cannot be '17'" },
    { HEAD "sessions: {checkpoints_size: 4}\n", "f:4:30: sessions.checkpoints_size cannot be '4'" },
    { HEAD "sessions: {max: 0}\n", "f:4:17: sessions.max cannot be '0'" },
    { HEAD "sessions: {idle: 10}\n", "f:4:18: sessions.idle cannot be '10'" },
    { HEAD "sessions: {max: 1, max: 2}\n", "f:4:" },
    { HEAD "sessions: {number: 1}\n",
      "f:4:12: sessions has max, idle, age, memory, checkpoints, checkpoints_size" },
    { HEAD "sessions: 4\n", "f:4:11: sessions is a mapping" },
    { HEAD "network: all\n", "f:4:10: network has a wrong value" },
    { HEAD "network: [none]\n", "f:4:10: network has a wrong value" },
    { HEAD "network:\n", "f:4:" },
    { HEAD "approval: never\n", "f:4:11: approval is a mapping" },
    { HEAD "approval: {when: [always, network, over_limits, precheck_warning], by: terminal}\n",
      NULL },
    { HEAD "approval: {when: [always], scopes: [once, time], by: out_of_band, expires: 1h}\n",
      NULL },
    { HEAD "approval: {expires: 1h}\n", "f:4:11: approval does not say when" },
    { HEAD "approval: {when: always}\n", "f:4:18: no list; write [always, network]" },
    { HEAD "approval: {when: [precheck]}\n", "f:4:19: 'precheck' is none of always" },
    { HEAD "approval: {when: [always], scopes: [all]}\n", "f:4:37: 'all' is none of once" },
    { HEAD "approval: {when: [always], by: me}\n", "f:4:32: by is terminal or out_of_band" },
    { HEAD "approval: {when: [always], expires: 500ms}\n", "f:4:37: expires is a time" },
    { HEAD "approval: {whom: [always]}\n", "f:4:12: approval has when, by, scopes, expires" },
    { HEAD "precheck: []\n", "f:4:11: precheck is a mapping" },
    { HEAD "precheck: {modules: {allow: [os.path, numpy], others: deny}, endless: ask}\n", NULL },
    { HEAD "precheck: {modul: {}}\n",
      "f:4:12: precheck has no 'modul'; it has modules, allocation, " },
    { HEAD "precheck: {module: deny}\n", "f:4:12: precheck has no 'module'" },
    { HEAD "precheck: {endless: maybe}\n", "f:4:21: a decision is one word" },
    { HEAD "precheck: {endless: }\n", "f:4:" },
    { HEAD "precheck: {endless: ask, endless: ask}\n", "f:4:26: 'endless' is there twice" },
    { HEAD "precheck: {modules: [os]}\n", "f:4:21: modules is a mapping" },
    { HEAD "precheck: {modules: {deny: os}}\n", "f:4:28: a list of modules" },
    { HEAD "precheck: {modules: {deny: [os], ask: [os]}}\n", "f:4:40: 'os' is listed twice" },
    { HEAD "precheck: {modules: {deny: ['a\"b']}}\n", "f:4:29: no name of a module" },
    { HEAD "precheck: {modules: {rest: deny}}\n", "f:4:22: modules has allow, warn, ask, deny" },
    { HEAD "env: [A]\n", "f:4:6: env is a mapping" },
    { HEAD "env: {A: 1, A: 2}\n", "f:4:13: 'A' is there twice" },
    { HEAD "env: {A: [1]}\n", "f:4:10: a list or a mapping where" },
    { HEAD "env: {A: }\n", "f:4:" },
    { HEAD "env: {A: ''}\n", NULL },
    { HEAD "env: {1A: x}\n", "f:4:7: '1A' is no name of a variable" },
    { HEAD "env: {a: 1,b: 1,c: 1,d: 1,e: 1,f: 1,g: 1,h: 1,i: 1,j: 1,k: 1,l: 1,m: 1,n: 1,o: 1,"
           "p: 1,q: 1}\n",
      "f:4:87: more than 16 variables" },
    { HEAD "<<: {name: b}\n", "f:4:1: unknown key '<<'" },
    { HEAD "extends: a\n", "f:4:10: a circle" },
    { HEAD "extends: b\n", "f:4:10: there is no policy 'b'" },
};

TEST(each_key_is_strict)
{
    for_each(fact, strict_keys) {
        static struct policy policy;
        error err = { 0 };
        struct policy_source source = { fact->text, strlen(fact->text), "f", "" };
        int result = policy_parse(&source, &policy, &err);
        expect((result == 0) == !fact->place_and_cause, "'%s' gave %d: %s", fact->text, result,
               err.text);
        if (fact->place_and_cause)
            expect(strncmp(err.text, fact->place_and_cause, strlen(fact->place_and_cause)) == 0,
                   "'%s' is refused with '%s'", fact->text, err.text);
    }
}

TEST(a_text_has_a_bound)
{
    static char text[POLICY_FILE_MAX + 64];
    static struct policy policy;
    error err = { 0 };
    memset(text, 'd', sizeof text);
    static const char head[] = HEAD "description: ";
    memcpy(text, head, sizeof head - 1);

    struct policy_source source = { text, sizeof head - 1 + POLICY_DESCRIPTION_SIZE - 1, "f", "" };
    expect(policy_parse(&source, &policy, &err) == 0, "255 bytes: %s", err.text);
    source.length++;
    expect(policy_parse(&source, &policy, &err) < 0 &&
               strncmp(err.text, "f:4:14: longer than 255 bytes", 29) == 0,
           "256 bytes: %s", err.text);
    source.length = sizeof text;
    expect(policy_parse(&source, &policy, &err) < 0 && strstr(err.text, "larger than 64 KiB"),
           "more than a file may have: %s", err.text);

    char file[] = "/tmp/policy-XXXXXX";
    auto_fd fd = mkostemp(file, O_CLOEXEC);
    require(fd >= 0 && write(fd, text, sizeof text) == (ssize_t) sizeof text, "write %s", file);
    expect(policy_read(file, "", &policy, &err) < 0 && strstr(err.text, "larger than 64 KiB"),
           "a large file: %s", err.text);
    (void) unlink(file);
}

TEST(a_variable_is_a_word_and_a_text)
{
    static const struct {
        const char *name, *value;
        int result;
    } facts[] = {
        { "A", "", 0 },
        { "_x9", "two\nlines\tand \xc3\xbc", 0 },
        { "LDFLAGS", "-lm", 0 },
        { "", "x", -1 },
        { "9A", "x", -1 },
        { "A=B", "x", -1 },
        { "A B", "x", -1 },
        { "\xc3\x84", "x", -1 },
        { "LD_PRELOAD", "x", -1 },
        { "LD_LIBRARY_PATH", "x", -1 },
        { "LD_", "x", -1 },
        { "GLIBC_TUNABLES", "x", -1 },
        { "A", "\x1b[0m", -1 },
        { "A", "\xff", -1 },
    };
    for_each(fact, facts) {
        error err = { 0 };
        int result = policy_check_variable(fact->name, fact->value, &err);
        expect(result == fact->result, "'%s' gave %d: %s", fact->name, result, err.text);
    }
}

TESTS(CASE(each_key_is_strict), CASE(a_text_has_a_bound), CASE(a_variable_is_a_word_and_a_text))
