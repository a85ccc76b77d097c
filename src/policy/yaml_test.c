/* yaml_test.c - valid files, and the line named for invalid ones. */
#include "policy/yaml.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(a_file_becomes_a_table_of_nodes_with_places)
{
    static const char text[] = "name: data\n"
                               "languages: [python, 'ba\\sh']\n"
                               "limits:\n"
                               "  wall: 30s\n"
                               "  empty:\n"
                               "  quoted: \"\"\n";
    struct yaml yaml;
    error err = { 0 };
    require(yaml_init(&yaml, "x.yaml", text, strlen(text), &err) == 0, "%s", err.text);
    const struct yaml_node *root = &yaml.nodes[0];
    expect(root->kind == YAML_MAPPING && root->children == 6, "%zu children", root->children);
    const struct yaml_node *name = yaml_first(&yaml, root);
    expect(strcmp(name->text, "name") == 0 && name->line == 1 && name->column == 1, "name");
    const struct yaml_node *data = yaml_next(&yaml, name);
    expect(strcmp(data->text, "data") == 0 && data->column == 7 && data->length == 4, "data");
    const struct yaml_node *languages = yaml_next(&yaml, yaml_next(&yaml, data));
    expect(languages->kind == YAML_SEQUENCE && languages->children == 2 && languages->line == 2,
           "languages");
    const struct yaml_node *bash = yaml_next(&yaml, yaml_first(&yaml, languages));
    expect(strcmp(bash->text, "ba\\sh") == 0 && !yaml_next(&yaml, bash), "'%s'", bash->text);
    const struct yaml_node *limits = yaml_next(&yaml, yaml_next(&yaml, languages));
    expect(limits->kind == YAML_MAPPING && limits->children == 6 && !yaml_next(&yaml, limits),
           "limits");
    const struct yaml_node *empty = yaml_first(&yaml, limits);
    for (int i = 0; i < 3; i++)
        empty = yaml_next(&yaml, empty);
    expect(empty->empty && empty->length == 0, "a value that is not written");
    const struct yaml_node *quoted = yaml_next(&yaml, yaml_next(&yaml, empty));
    expect(!quoted->empty && quoted->length == 0, "a text without characters");
    expect(!yaml_first(&yaml, quoted), "a text has no children");

    expect(yaml_fail(&yaml, bash, &err, "cause %d; fix", 1) == -1, "yaml_fail gives -1");
    expect(strcmp(err.text, "x.yaml:2:21: cause 1; fix") == 0, "'%s'", err.text);
    expect(yaml_under(&yaml, data, &err) == -1 && err.code == ERR_BAD_REQUEST, "yaml_under");
    expect(strcmp(err.text, "x.yaml:1:7: x.yaml:2:21: cause 1; fix") == 0, "'%s'", err.text);
    yaml_done(&yaml);
    yaml_done(&yaml);
}

TEST(a_text_is_read_as_it_is_written)
{
    static const struct {
        const char *file, *text;
    } facts[] = {
        { "plain", "plain" },
        { "plain with blanks  # and a comment\n", "plain with blanks" },
        { "'it''s'", "it's" },
        { "''''", "'" },
        { "''", "" },
        { "\"\"", "" },
        { "\"a\\\"b\\\\c\\td\\ne\\/\"", "a\"b\\c\td\ne/" },
        { "'\\n'", "\\n" },
        { "\"it's\"", "it's" },
        { "gr\xc3\xbc\xc3\x9f \xf0\x9f\xa7\xa4", "gr\xc3\xbc\xc3\x9f \xf0\x9f\xa7\xa4" },
        { "---\nafter a marker\n...\n", "after a marker" },
        { "|\n  one\n    two\n\n  three \\ 'x'\n\n", "one\n  two\n\nthree \\ 'x'\n" },
        { "|\n\n  one", "\none\n" },
        { "|\n  one\n# a comment\n", "one\n" },
    };
    for_each(fact, facts) {
        struct yaml yaml;
        error err = { 0 };
        int result = yaml_init(&yaml, "f", fact->file, strlen(fact->file), &err);
        expect(result == 0, "%s: %s", fact->file, err.text);
        if (result < 0)
            continue;
        expect(strcmp(yaml.nodes[0].text, fact->text) == 0 &&
                   yaml.nodes[0].length == strlen(fact->text),
               "%s is read as '%s'", fact->file, yaml.nodes[0].text);
        yaml_done(&yaml);
    }
}

TEST(what_could_mean_more_than_it_shows_is_refused)
{
    static const struct {
        const char *text;
        const char *place_and_cause;
    } facts[] = {
        { "", "f:1:1: the file is empty" },
        { "# nothing\n", "f:1:1: the file is empty" },
        { "a: &x 1\n", "f:1:4: an anchor" },
        { "a: *x\n", "f:1:4: an alias" },
        { "a: &x [1]\nb: *x\n", "f:1:4: an anchor" },
        { "a: !!int 1\n", "f:1:4: a tag" },
        { "a: !<tag:x> {}\n", "f:1:4: a tag" },
        { "a: 1\n---\nb: 2\n", "f:3:1: a second document" },
        { "[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]", "f:1:25: nested too deeply" },
        { "a: \"\\0\"\n", "f:1:4: an escape" },
        { "a: \"\\x1b[2J\"\n", "f:1:4: an escape" },
        { "a: 1\nb: \xff\n", "f:2:4: not UTF-8" },
        { "a: \xc3\xbc \x01\n", "f:1:6: not UTF-8" },
        { "a: 1\r\n", "f:1:5: a carriage return" },
        { "a: [1\nb: 2\n", "f:" },
        { "a: b: c\n", "f:1:" },
        { "\ta: 1\n", "f:" },
        { "a: 'open\n", "f:" },
        { "a: 1\n b: 2\n", "f:" },
        { "{a: 1}}\n", "f:" },
        { "%YAML 9.9\n---\na: 1\n", "f:" },
        { "{a: 1}", NULL },
        { "a: >\n  b\n", "f:2:1: a folded block" },
        { "a: |-\n  b\n", "f:2:1: a block with an indicator" },
        { "a: |2\n   b\n", "f:2:1: a block with an indicator" },
        { "a: b\n  c\n", "f:1:4: a text over several lines" },
        { "a: 'b\n  c'\n", "f:1:4: a text over several lines" },
        { "a: \"\\u00fc\"\n", "f:1:4: an escape" },
        { "['''''''''''''''''''''''''''''''''''''''']", NULL },
    };
    for_each(fact, facts) {
        struct yaml yaml;
        error err = { 0 };
        int result = yaml_init(&yaml, "f", fact->text, strlen(fact->text), &err);
        if (result == 0)
            yaml_done(&yaml);
        expect((result == 0) == !fact->place_and_cause, "'%s' gave %d", fact->text, result);
        if (fact->place_and_cause)
            expect(strncmp(err.text, fact->place_and_cause, strlen(fact->place_and_cause)) == 0 &&
                       err.code == ERR_BAD_REQUEST,
                   "'%s' is refused with '%s'", fact->text, err.text);
    }
}

TEST(size_is_bounded)
{
    static char text[65536];
    struct yaml yaml;
    error err = { 0 };

    memset(text, '[', sizeof text);
    expect(yaml_init(&yaml, "f", text, sizeof text, &err) < 0, "an abyss of brackets");
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "- ", 2);
    expect(yaml_init(&yaml, "f", text, sizeof text, &err) < 0, "an abyss of dashes");
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "? ", 2);
    expect(yaml_init(&yaml, "f", text, sizeof text, &err) < 0, "an abyss of keys");
    text[0] = '[';
    for (size_t i = 1; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "a,", 2);
    expect(yaml_init(&yaml, "f", text, sizeof text, &err) < 0 && strstr(err.text, "2048"),
           "many nodes: '%s'", err.text);
    memset(text, 'a', sizeof text);
    expect(yaml_init(&yaml, "f", text, sizeof text, &err) == 0 &&
               yaml.nodes[0].length == sizeof text,
           "one long word: '%s'", err.text);
    yaml_done(&yaml);

    char label[400];
    memset(label, 'l', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    expect(yaml_init(&yaml, label, "", 0, &err) < 0 && strstr(err.text, "lll:1:1: the file"),
           "a long label leaves room for the cause: '%s'", err.text);
}

TESTS(CASE(a_file_becomes_a_table_of_nodes_with_places), CASE(a_text_is_read_as_it_is_written),
      CASE(what_could_mean_more_than_it_shows_is_refused), CASE(size_is_bounded))
