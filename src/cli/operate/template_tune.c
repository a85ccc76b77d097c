/* template_tune.c - see template_tune.h. The counts come from the daemon's metrics, the zygotes
 * from the manifest of the template. */
#include "cli/operate/template_tune.h"

#include "base/cleanup.h"
#include "cli/daemon_request.h"
#include "cli/operate/template_view.h"
#include "model/template_bounds.h"
#include "template/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 5000,
    ANSWER_MAX = 16 << 20,
    MODULES_MAX = 1024,
    PROGRAMS_LEAST = 20, /* fewer prove nothing */
    SHARE_LEAST = 5,     /* per cent; less is not worth the start and the memory */
    PRINTED_MAX = 20
};

struct module {
    char name[64];
    uint64_t programs;
    const char *set; /* set that imports it; NULL: none */
};

struct counts {
    uint64_t programs;
    size_t count;
    struct module list[MODULES_MAX];
};

static int by_programs(const void *left, const void *right)
{
    const struct module *a = left, *b = right;
    if (a->programs != b->programs)
        return a->programs < b->programs ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* glovebox_template_imports_total{template="python",module="pandas"} 3 */
static void read_line(const char *line, const char *name, struct counts *counts)
{
    char template[64] = "", end[2];
    struct module module = { .set = NULL };
    const char *value = strrchr(line, ' ');
    module.programs = value ? strtoull(value + 1, NULL, 10) : 0;
    if (sscanf(line, "glovebox_template_programs_total{template=\"%63[^\"]\"", template) == 1)
        counts->programs = strcmp(template, name) == 0 ? module.programs : counts->programs;
    else if (sscanf(line,
                    "glovebox_template_imports_total{template=\"%63[^\"]\","
                    "module=\"%63[A-Za-z0-9_]%1[\"]",
                    template, module.name, end) == 3 &&
             strcmp(template, name) == 0 && counts->count < MODULES_MAX)
        counts->list[counts->count++] = module;
}

static int ask_counts(const struct template_tuning *asked, struct counts *counts, error *err)
{
    const struct question question = { asked->daemon, "/metrics", "text/plain", NULL, ANSWER_MS };
    static struct http http;
    auto_text text = NULL;
    size_t size;
    if (ask_open(&question, &http, err) < 0)
        return -1;
    int result = http_read_all(&http, ANSWER_MAX, &text, &size, err);
    http_done(&http);
    if (result != 0)
        return result < 0 ? -1 : fail(err, ERR_UNAVAILABLE, "the daemon's answer broke off");
    char *rest = text;
    for (const char *line; (line = strsep(&rest, "\n"));)
        read_line(line, asked->name, counts);
    qsort(counts->list, counts->count, sizeof *counts->list, by_programs);
    return 0;
}

/* Returns the set that imports a module or one of its submodules ("matplotlib.pyplot"). */
static const char *set_of(struct json_object *zygotes, const char *module)
{
    size_t length = strlen(module);
    json_object_object_foreach(zygotes, set, modules)
    {
        for (size_t i = 0; i < json_object_array_length(modules); i++) {
            const char *word = json_object_get_string(json_object_array_get_idx(modules, i));
            if (strncmp(word, module, length) == 0 && (word[length] == '\0' || word[length] == '.'))
                return set;
        }
    }
    return NULL;
}

static bool is_proposed(const struct counts *counts, const struct module *module)
{
    return !module->set && counts->programs >= PROGRAMS_LEAST &&
           module->programs * 100 >= counts->programs * SHARE_LEAST;
}

/* Adds the proposed modules to the last set, as far as there is room: a program that imports one of
 * the modules of a set gets the interpreter of that set. Returns how many were added. */
static size_t propose(const struct counts *counts, struct json_object *zygotes)
{
    struct json_object *last = NULL;
    size_t added = 0;
    json_object_object_foreach(zygotes, set, modules)
    {
        (void) set;
        last = json_object_array_length(modules) > 0 ? modules : last;
    }
    for (size_t i = 0; i < counts->count; i++) {
        if (!is_proposed(counts, &counts->list[i]))
            continue;
        if (!last && json_object_object_length(zygotes) == TEMPLATE_SETS_MAX)
            break;
        if (!last)
            (void) json_object_object_add(zygotes, "common", last = json_object_new_array());
        if (json_object_array_length(last) == TEMPLATE_WORDS_MAX)
            break;
        (void) json_object_array_add(last, json_object_new_string(counts->list[i].name));
        added++;
    }
    return added;
}

static void print_text(const char *name, const struct counts *counts, size_t added,
                       struct json_object *zygotes)
{
    (void) printf("template %s: %" PRIu64 " Python programs and cells since the service began\n",
                  name, counts->programs);
    for (size_t i = 0; i < counts->count && i < PRINTED_MAX; i++) {
        const struct module *module = &counts->list[i];
        (void) printf("  %-28s %8" PRIu64 " %4" PRIu64 " %%  %s\n", module->name, module->programs,
                      module->programs * 100 / (counts->programs ? counts->programs : 1),
                      module->set                   ? module->set
                      : is_proposed(counts, module) ? "proposed"
                                                    : "-");
    }
    if (counts->programs < PROGRAMS_LEAST)
        (void) printf("That is too few for a proposal: ask again after %d.\n", PROGRAMS_LEAST);
    else if (added == 0)
        (void) puts("Its zygotes import what its programs do: nothing to change.");
    else
        (void) printf("Put this in its recipe and build it again:\nzygotes: %s\n",
                      json_object_to_json_string_ext(zygotes, JSON_C_TO_STRING_SPACED));
}

static void print_json(const char *name, const struct counts *counts, struct json_object *zygotes)
{
    auto_json answer = json_object_new_object();
    struct json_object *rows = json_object_new_array();
    for (size_t i = 0; i < counts->count; i++) {
        const struct module *module = &counts->list[i];
        struct json_object *row = json_object_new_object();
        member_set_text(row, "module", module->name);
        (void) json_object_object_add(row, "programs", json_object_new_uint64(module->programs));
        member_set_text(row, "set", module->set);
        (void) json_object_array_add(rows, row);
    }
    member_set_text(answer, "template", name);
    (void) json_object_object_add(answer, "programs", json_object_new_uint64(counts->programs));
    (void) json_object_object_add(answer, "modules", rows);
    (void) json_object_object_add(answer, "zygotes", json_object_get(zygotes));
    template_print_json(answer);
}

int template_tune(const struct template_tuning *asked, error *err)
{
    static struct counts counts;
    auto_json manifest = NULL;
    struct json_object *zygotes = NULL;
    auto_fd store = store_open(asked->state, false, err);
    if (store < 0 || store_manifest(store, asked->name, &manifest, err) < 0)
        return -1;
    if (!json_object_object_get_ex(manifest, "zygotes", &zygotes) ||
        json_object_object_length(zygotes) == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "template '%s' has no zygotes: its programs start interpreters of their own",
                    asked->name);
    if (ask_counts(asked, &counts, err) < 0)
        return -1;
    for (size_t i = 0; i < counts.count; i++)
        counts.list[i].set = set_of(zygotes, counts.list[i].name);
    size_t added = propose(&counts, zygotes);
    if (asked->json)
        print_json(asked->name, &counts, zygotes);
    else
        print_text(asked->name, &counts, added, zygotes);
    return 0;
}
