/* templates.h - the templates that this daemon was started with, as their manifests describe them.
 */
#pragma once

#include "base/error.h"
#include "contract/agent.h"
#include "contract/spawn.h"

#include <json.h>
#include <stddef.h>

enum {
    TEMPLATE_LANGUAGES_MAX = 16,
    TEMPLATE_WORDS_MAX = 32,
    TEMPLATE_VARIABLES_MAX = 64,
    TEMPLATE_SETS_MAX = 4
};

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
    int held;                                  /* its directory, locked: it is in use */
    int trusted;                               /* its file of certificates, -1 for none */
};

/* Index = order on the command line, as the spawner counts. */
struct templates {
    size_t count;
    struct template list[SPAWN_TEMPLATES_MAX];
};

/* Adds the template NAME=DIRECTORY. Fails  ERR_UNAVAILABLE  with file, cause and fix. */
int templates_add(struct templates *templates, const char *argument, error *err);
void templates_done(struct templates *templates);

/* The index of a template, -1 if none has that name. */
int templates_find(const struct templates *templates, const char *name);
const struct language *template_language(const struct template *template, const char *name);
