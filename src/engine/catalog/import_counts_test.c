/* import_counts_test.c - only names of the template's libraries are counted. */
#include "base/test.h"
#include "engine/catalog/import_counts.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "engine/catalog/templates.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SITE "root/usr/local/lib/python3.11/dist-packages/"

/* In the order in which they are made. */
static const struct {
    const char *path;
    bool is_folder;
} entries[] = {
    { "root", true },
    { "root/usr", true },
    { "root/usr/lib", true },
    { "root/usr/lib/python3", true },
    { "root/usr/lib/python3/dist-packages", true },
    { "root/usr/lib/python3/dist-packages/numpy", true },
    { "root/usr/lib/python3/dist-packages/numpy-2.dist-info", true },
    { "root/usr/local", true },
    { "root/usr/local/lib", true },
    { "root/usr/local/lib/python3.11", true },
    { "root/usr/local/lib/python3.11/dist-packages", true },
    { SITE "six.py", false },
    { SITE "_private.py", false },
    { SITE "yaml.cpython-311-x86_64-linux-gnu.so", false },
    { SITE "a-b.py", false },
    { SITE "notes.txt", false },
    { SITE "numpy.pth", false },
};

static int make_template(char *folder)
{
    expect(mkdtemp(folder) != NULL, "make a folder");
    int template = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for_each(entry, entries)
        expect((entry->is_folder ? mkdirat(template, entry->path, 0755)
                                 : mknodat(template, entry->path, S_IFREG | 0644, 0)) == 0,
               "make %s", entry->path);
    expect(symlinkat("/etc", template, SITE "out") == 0, "make a link");
    return template;
}

static void remove_template(int template, const char *folder)
{
    (void) unlinkat(template, SITE "out", 0);
    for (size_t i = COUNT_OF(entries); i-- > 0;)
        (void) unlinkat(template, entries[i].path, entries[i].is_folder ? AT_REMOVEDIR : 0);
    (void) close(template);
    expect(rmdir(folder) == 0, "remove %s", folder);
}

static void add(struct import_counts *counts, const char *name)
{
    import_counts_add(counts, name, strlen(name));
}

TEST(names_of_the_template_are_counted_once_for_a_program)
{
    char folder[] = "/tmp/import-counts-XXXXXX";
    int directory = make_template(folder);
    static struct template template = { .name = "tiny" };
    struct templates templates = { .list = { &template } };
    auto_bytes out = { 0 };
    template.imports = import_counts_open(directory);
    expect(template.imports != NULL, "libraries were not found");
    import_counts_program(template.imports);
    static const char *const names[] = { "numpy",   "numpy",   "six",     "yaml",   "_private",
                                         "a",       "a-b",     "notes",   "secret", "",
                                         "python3", "numpy-2", "out\"} 1" };
    for_each(name, names)
        add(template.imports, *name);
    import_counts_program(template.imports);
    add(template.imports, "numpy");
    import_counts_enable(false);
    import_counts_program(template.imports);
    add(template.imports, "numpy");
    import_counts_enable(true);
    import_counts_write(&templates, &out);
    const char *text = bytes_text(&out);
    static const char *const lines[] = {
        "\nglovebox_template_programs_total{template=\"tiny\"} 2\n",
        "\nglovebox_template_imports_total{template=\"tiny\",module=\"numpy\"} 2\n",
        "\nglovebox_template_imports_total{template=\"tiny\",module=\"six\"} 1\n",
        "\nglovebox_template_imports_total{template=\"tiny\",module=\"yaml\"} 1\n"
    };
    size_t rows = 0;
    for_each(line, lines)
        expect(strstr(text, *line) != NULL, "no line %s in\n%s", *line, text);
    for (const char *at = text; (at = strstr(at, "module=")); at++)
        rows++;
    expect(rows == 3, "%zu rows in\n%s", rows, text);
    import_counts_free(template.imports);
    remove_template(directory, folder);
}

TEST(a_template_without_libraries_counts_nothing)
{
    char folder[] = "/tmp/import-counts-XXXXXX";
    expect(mkdtemp(folder) != NULL, "make a folder");
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct import_counts *counts = import_counts_open(directory);
    expect(counts == NULL, "something was found");
    import_counts_program(counts);
    add(counts, "numpy");
    (void) close(directory);
    (void) rmdir(folder);
}

TESTS(CASE(names_of_the_template_are_counted_once_for_a_program),
      CASE(a_template_without_libraries_counts_nothing))
