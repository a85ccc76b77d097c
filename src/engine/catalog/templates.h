/* templates.h - the templates of STATE/templates, as their manifests describe them.
 *
 * One that is removed, or that another has taken the place of, is retired: nothing new begins in
 * it, and it stays as long as a run or a session stands on it. */
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
    const char *file;                        /* how the code is called: "main.py" */
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
    uint32_t index; /* as the spawner counts; SPAWN_TEMPLATES_MAX: it is gone there */
    bool is_retired;
    deadline rests_until; /* a retired one: how long what was granted before may still begin */
    unsigned users;       /* plans of runs and sessions */
    const char *digest;
    const char *description;
    size_t language_count;
    struct language languages[TEMPLATE_LANGUAGES_MAX];
    size_t variable_count;
    const char *variables[TEMPLATE_VARIABLES_MAX]; /* names */
    const char *values[TEMPLATE_VARIABLES_MAX];
    size_t set_count;
    struct import_set sets[TEMPLATE_SETS_MAX]; /* index = as the spawner counts */
    struct json_object *manifest;              /* owns the texts */
    struct import_counts *imports;             /* of its programs; may be NULL */
    int held;                                  /* its directory, locked: it is in use */
    int trusted;                               /* its file of certificates, -1 for none */
};

/* Told of each that has been added or retired, and once of each that cannot be read: then `cause`
 * says why, and `index` is -1. May drop one that was added: then the one before serves on. */
typedef void template_changed(void *context, int index, const char *name, const error *cause);

struct template_fault {
    char name[POLICY_NAME_SIZE]; /* "": this place is free */
    bool is_found;               /* by the look that goes on */
    error cause;
};

/* By index; NULL where there is none. */
struct templates {
    const char *folder; /* borrowed */
    struct template *list[SPAWN_TEMPLATES_MAX];
    struct template_fault faults[TEMPLATE_FAULTS_MAX]; /* those of the folder that cannot be read */
    template_changed *changed; /* set by the caller, with its context, before it is opened */
    void *context;
    uint64_t changes; /* templates added and retired since they were opened */
};

/* Reads every template of the folder, `first` (may be NULL) before the others. One that cannot be
 * read is left out, and told.
 * Fails  ERR_UNAVAILABLE  with file, cause and fix of the last, if none is left. */
int templates_open(struct templates *templates, const char *folder, const char *first, error *err);
void templates_done(struct templates *templates);

/* Looks at the folder again. */
void templates_look(struct templates *templates);

/* Makes the place of a retired template free; it goes with its last user. */
void templates_drop(struct templates *templates, uint32_t index);

/* What a plan says of its template holds until the plan releases it (NULL: nothing to release). */
const struct template *template_use(const struct template *template);
void template_release(const struct template *template);

/* The index of a template that is served, -1 if none has that name. */
int templates_find(const struct templates *templates, const char *name);

/* Why a template of that name cannot be read, NULL if it can, or is not there. */
const struct template_fault *templates_fault(const struct templates *templates, const char *name);
static inline bool template_is_served(const struct template *template)
{
    return template && !template->is_retired;
}

/* Sealed memory with the modules of its zygotes, as spawn.h has them. Fails  ERR_UNAVAILABLE  too
 * many. */
int template_modules(const struct template *template, error *err);
const struct language *template_language(const struct template *template, const char *name);
