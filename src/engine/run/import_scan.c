/* import_scan.c - the first set is the lightest; another one is chosen if the code imports one of
 * its modules, or a library that imports them. */
#include "engine/run/import_scan.h"

#include "base/table.h"
#include "engine/catalog/import_counts.h"

#include <stdbool.h>
#include <string.h>

/* Libraries that import numpy or pandas themselves. */
static const char *const built_upon[] = { "seaborn",  "scipy",      "sklearn", "statsmodels",
                                          "openpyxl", "matplotlib", "PIL",     "skimage",
                                          "networkx", "xarray" };

static bool is_word(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_';
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t';
}

/* Compares the parts of two names before the first dot. */
static bool same_top(const char *module, const char *name, size_t length)
{
    size_t top = strcspn(module, ".");
    return top == length && memcmp(module, name, length) == 0;
}

static bool set_serves(const struct import_set *set, const char *name, size_t length)
{
    if (set->module_count == 0)
        return false;
    for (size_t i = 0; i < set->module_count; i++)
        if (same_top(set->modules[i], name, length))
            return true;
    for_each(library, built_upon)
        if (strlen(*library) == length && memcmp(*library, name, length) == 0)
            return true;
    return false;
}

static int set_of_name(const struct template *template, const char *name, size_t length)
{
    for (size_t i = 0; i < template->set_count; i++)
        if (set_serves(&template->sets[i], name, length))
            return (int) i;
    return 0;
}

/* Called with each imported name. */
struct visitor {
    void (*visit)(struct visitor *visitor, const char *name, size_t length);
    const struct template *template;
    int best;
};

/* The names of one import statement: "import a.b as c, d" or "from a import b". */
static void visit_line(struct visitor *visitor, const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    bool is_from = end - at > 5 && memcmp(at, "from", 4) == 0 && is_blank(at[4]);
    bool is_import = end - at > 7 && memcmp(at, "import", 6) == 0 && is_blank(at[6]);
    if (!is_from && !is_import)
        return;
    at += is_from ? 4 : 6;
    while (at < end) {
        while (at < end && (is_blank(*at) || *at == ','))
            at++;
        const char *name = at;
        while (at < end && is_word(*at))
            at++;
        visitor->visit(visitor, name, (size_t) (at - name));
        if (is_from)
            break;
        while (at < end && *at != ',') /* ".b as c" */
            at++;
    }
}

static void visit_code(struct visitor *visitor, const char *code, size_t size)
{
    const char *end = code + size;
    for (const char *line = code; line < end;) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));
        if (!stop)
            stop = end;
        /* Semicolons separate statements on one line. */
        for (const char *at = line; at < stop;) {
            const char *part = memchr(at, ';', (size_t) (stop - at));
            visit_line(visitor, at, part ? part : stop);
            at = part ? part + 1 : stop;
        }
        line = stop + 1;
    }
}

static void choose(struct visitor *visitor, const char *name, size_t length)
{
    int set = set_of_name(visitor->template, name, length);
    if (set > visitor->best)
        visitor->best = set;
}

int imports_choose(const struct template *template, const char *code, size_t size)
{
    struct visitor visitor = { .visit = choose, .template = template };
    if (template->set_count == 0)
        return -1;
    visit_code(&visitor, code, size);
    return visitor.best;
}

static void count(struct visitor *visitor, const char *name, size_t length)
{
    import_counts_add(visitor->template->imports, name, length);
}

void imports_count(const struct template *template, const struct policy *policy, const char *code,
                   size_t size)
{
    struct visitor visitor = { .visit = count, .template = template };
    if (!template->imports || policy->expect.on_fault == ON_FAULT_WITHHOLD)
        return;
    import_counts_program(template->imports);
    visit_code(&visitor, code, size);
}
