/* entry_scanner_test.c - which entries are complete, in each language. */
#include "cli/tty/entry_scanner.h"

#include "base/table.h"
#include "base/test.h"

struct fact {
    const char *entry;
    bool is_whole;
};

static void check(const char *language, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect(entry_is_whole(language, facts[i].entry) == facts[i].is_whole, "%s: '%s' is %s",
               language ? language : "none", facts[i].entry,
               facts[i].is_whole ? "whole" : "not whole");
}

TEST(python_goes_on_in_brackets_texts_and_blocks)
{
    static const struct fact facts[] = {
        { "1 + 1\n", true },
        { "f(1,\n", false },
        { "f(1,\n2)\n", true },
        { "'''a\n\n\n", false }, /* a string may contain empty lines */
        { "'a\n", true },        /* a syntax error, which the interpreter reports */
        { "x = 1 + \\\n", false },
        { "# (\n", true },
        { "for x in y:\n", false },
        { "for x in y:\n    print(x)\n", false },
        { "for x in y:\n    print(x)\n\n", true },
        { "@wraps\n", false },
        { "%%bash\necho a\n", false },
        { "%%bash\necho a\n\n", true },
    };
    check("python", facts, COUNT_OF(facts));
    check(NULL, facts, COUNT_OF(facts));
}

TEST(a_shell_goes_on_in_blocks_quotes_and_here_documents)
{
    static const struct fact facts[] = {
        { "echo a\n", true },
        { "for x in a b; do\n", false },
        { "for x in a b; do\necho $x\n", false },
        { "for x in a b; do\necho $x\ndone\n", true },
        { "for x in a; do echo $x; done\n", true },
        { "if true\n", false },
        { "if true; then echo if; fi\n", true },
        { "while read x; do echo $x; done | cat\n", true },
        { "case $x in\na) echo 1;;\n", false },
        { "case $x in\na) echo 1;;\nesac\n", true },
        { "f() {\n", false },
        { "f() {\ncase $1 in\na) echo 1;;\nesac\n", false },
        { "f() {\ncase $1 in\na) echo 1;;\nesac\n}\n", true },
        { "echo done for it if\n", true }, /* words, but no commands */
        { "echo 'a\n", false },
        { "echo 'it\\'\n", true }, /* a backslash is an ordinary character there */
        { "echo \"a\\\"\n", false },
        { "echo a \\\n", false },
        { "echo a \\\nb\n", true },
        { "ls |\n", false },
        { "true &&\n", false },
        { "true ||\n", false },
        { "sleep 1 &\n", true },
        { "echo ${#x} $# # (\n", true },
        { "echo $(ls\n", false },
        { "cat <<EOF\n", false },
        { "cat <<EOF\nit's (\n", false },
        { "cat <<EOF\nit's (\nEOF\n", true },
        { "cat <<-'EOF' | wc\n\ta\n\tEOF\n", true },
        { "cat <<A <<B\n1\nA\n2\n", false },
        { "cat <<A <<B\n1\nA\n2\nB\n", true },
        { "cat <<<word\n", true },
        { "echo $((1<<x))\n", true },
        { "echo :)\n", true },
        { "if true\n\n", false },
        { "if true\n\n\n", true }, /* three empty lines leave the block */
    };
    check("bash", facts, COUNT_OF(facts));
}

TEST(javascript_goes_on_in_brackets_templates_and_behind_operators)
{
    static const struct fact facts[] = {
        { "1 + 1\n", true },
        { "1 +\n", false },
        { "i++\n", true },
        { "function f() {\n", false },
        { "function f() {\n  return 1\n}\n", true },
        { "[1, 2].map(x =>\n", false },
        { "const f = x =>\n", false },
        { "`a\n", false },
        { "`a\n${1}`\n", true },
        { "'a\n", true },
        { "// {\n", true },
        { "/* {\n", false },
        { "/* { */ 1\n", true },
        { "'a'.replace(/\\(/g, '')\n", true },
        { "if (true)\n", false },
        { "if (true)\n  x = 1\n", true },
        { "f(if_(1))\n", true },
        { "do { } while (x)\n", true },
        { "if (a) { } else\n", false },
        { "x.\n", false },
        { "x = orelse\n", true },
    };
    check("javascript", facts, COUNT_OF(facts));
}

TEST(r_goes_on_in_brackets_and_behind_operators)
{
    static const struct fact facts[] = {
        { "1 + 1\n", true },
        { "x <-\n", false },
        { "x |>\n", false },
        { "x %>%\n", false },
        { "x %>% head\n", true },
        { "f <- function(x)\n", false },
        { "f <- function(x) {\n", false },
        { "f <- function(x) {\n  x\n}\n", true },
        { "sapply(x, \\(y) {\n", false },
        { "sapply(x, \\(y) {\n y })\n", true },
        { "if (TRUE)\n", false },
        { "if (TRUE) 1\n", true },
        { "for (i in 1:3)\n", false },
        { "'a\n", false },
        { "'it\\'s'\n", true },
        { "c(1, # ) \n", false },
        { "data$if\n", true },
    };
    check("r", facts, COUNT_OF(facts));
}

TEST(an_entry_of_another_language_is_a_line)
{
    static const struct fact facts[] = { { "f(\n", true } };
    check("ctx_1", facts, COUNT_OF(facts));
}

TEST(a_language_has_its_usual_names)
{
    static const struct fact facts[] = { { "f(\n", false }, { "f()\n", true } };
    static const char *const names[] = { "py", "node", "js", "R" };
    for_each(name, names)
        check(*name, facts, COUNT_OF(facts));
}

TESTS(CASE(python_goes_on_in_brackets_texts_and_blocks),
      CASE(a_shell_goes_on_in_blocks_quotes_and_here_documents),
      CASE(javascript_goes_on_in_brackets_templates_and_behind_operators),
      CASE(r_goes_on_in_brackets_and_behind_operators),
      CASE(an_entry_of_another_language_is_a_line), CASE(a_language_has_its_usual_names))
