/* templates.h - the templates of STATE/templates, as their manifests describe them.
 *
 * A template that is removed or replaced is retired: nothing new begins in it, and it remains while
 * a run or a session uses it. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "contract/spawn.h"
#include "model/template_bounds.h"
#include "policy/policy.h"

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

enum { TEMPLATE_FAULTS_MAX = 16 };
_Static_assert((int) TEMPLATE_SETS_MAX == (int) SPAWN_SETS_MAX &&
                   (int) TEMPLATE_MODULES_MAX == (int) SPAWN_MODULES_MAX,
               "the spawner takes as many");

struct language {
    const char *name;
    const char *file;                        /* the name of the file for the code: "main.py" */
    size_t compile_count, command_count;     /* compile_count 0: nothing to compile */
    const char *compile[TEMPLATE_WORDS_MAX]; /* "{file}" stands for the code's path */
    const char *command[TEMPLATE_WORDS_MAX];
};

/* A zygote of the template: what it has imported. */
struct import_set {
    const char *name;
    size_t module_count;
    const char *modules[TEMPLATE_WORDS_MAX];
};

struct template
{
    const char *name;
    uint32_t index; /* in the spawner's numbers; SPAWN_TEMPLATES_MAX: the spawner has dropped it */
    bool is_retired;
    deadline rests_until; /* if retired: until when earlier grants may still begin */
    unsigned users;       /* plans of runs and sessions that use it */
    const char *digest;
    const char *description;
    size_t language_count;
    struct language languages[TEMPLATE_LANGUAGES_MAX];
    size_t variable_count;
    const char *variables[TEMPLATE_VARIABLES_MAX]; /* names */
    const char *values[TEMPLATE_VARIABLES_MAX];
    size_t set_count;
    struct import_set sets[TEMPLATE_SETS_MAX]; /* index: in the spawner's numbers */
    struct json_object *manifest;              /* owns the texts */
    struct import_counts *imports;             /* imports of its programs; may be NULL */
    int held;                                  /* its directory, locked while it is in use */
    int trusted;                               /* its file of certificates, -1: none */
};

/* Called for each template that was added or retired, and once for each that cannot be read: then
 * `cause` says why, and `index` is -1. May drop one that was added: then the one before is
 * served. */
typedef void template_changed(void *context, int index, const char *name, const error *cause);

struct template_fault {
    char name[POLICY_NAME_SIZE]; /* "": a free entry */
    bool is_found;               /* seen in the current look at the folder */
    error cause;
};

/* Indexed by number; NULL: none. */
struct templates {
    const char *folder; /* borrowed */
    struct template *list[SPAWN_TEMPLATES_MAX];
    struct template_fault faults[TEMPLATE_FAULTS_MAX]; /* templates that cannot be read */
    template_changed *changed; /* set by the caller before it is opened, with its context */
    void *context;
    uint64_t changes; /* templates added and retired since they were opened */
};

/* Reads every template of the folder, `first` (may be NULL) before the others. One that cannot be
 * read is left out and reported to `changed`. Fails  ERR_UNAVAILABLE  with file, cause and fix of
 * the last one, if all fail. */
int templates_open(struct templates *templates, const char *folder, const char *first, error *err);
void templates_done(struct templates *templates);

/* Reads the folder again. */
void templates_look(struct templates *templates);

/* Frees the index of a retired template; the object is freed with its last user. */
void templates_drop(struct templates *templates, uint32_t index);

/* Takes a reference for a plan, which releases it (NULL: nothing to release). */
const struct template *template_use(const struct template *template);
void template_release(const struct template *template);

/* The index of the template that is served under this name, -1: none. */
int templates_find(const struct templates *templates, const char *name);

/* Why the template of that name cannot be read; NULL if it can, or does not exist. */
const struct template_fault *templates_fault(const struct templates *templates, const char *name);
static inline bool template_is_served(const struct template *template)
{
    return template && !template->is_retired;
}

/* Sealed memory with the modules of its zygotes, in the form of spawn.h. Fails  ERR_UNAVAILABLE
 * there are too many. */
int template_modules(const struct template *template, error *err);
const struct language *template_language(const struct template *template, const char *name);
