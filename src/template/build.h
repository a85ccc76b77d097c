/* build.h - builds a template: from Debian packages, or from copies of the host's own.
 *
 * The steps are in build.c, in order. What is half built is never seen under the template's name.
 */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What to build, and whom to tell about it. */
struct build_request {
    struct json_object *recipe;  /* from recipe_read() */
    const char *state;           /* the state directory */
    const char *lock;            /* path of the file that pins the recipe's wheels; may be NULL */
    const char *npm_lock;        /* the same of its packages of npm */
    struct json_object *project; /* {"name","text"} of a project's file, see requirements.h; may be
                                    NULL */
    bool is_offline;             /* wheels come from the cache alone */
    const char *base;            /* "debian" or "host-copy"; NULL = as the recipe says */
    /* Called when a step begins, and again with what it is doing now; may be NULL. */
    void (*progress)(void *context, unsigned step, unsigned steps, const char *name,
                     const char *detail);
    void *context;
};

/* A template under construction. */
struct build {
    const struct build_request *request;
    const char *name, *base;
    int store;
    int place;                         /* the directory it is built in, locked */
    int root;                          /* PLACE/root */
    char place_name[NAME_MAX];         /* below the store */
    char root_path[PATH_MAX];          /* for the programs that need a path */
    struct json_object *packages;      /* [{"name","version"}], Debian's */
    struct json_object *distributions; /* the same of Python's */
    struct json_object *approved;      /* rows of approved_read() */
    struct json_object *wheels;        /* {file: sha256} of what the recipe lists; NULL: nothing */
    struct json_object *npm;           /* [{"name","version"}] of npm, listed or needed; or NULL */
    const struct walls_bind *binds; /* what a command in the new root sees besides; may be NULL */
    uint64_t bytes, files;
    char digest[72]; /* "sha256:" and 64 digits */
    unsigned step;
};

/* Gives  *ret_manifest of the new template, which the caller puts back.
 * Fails  ERR_UNAVAILABLE  a tool, the network or room is missing: the text says what to do
 *        ERR_TIMEOUT      interrupted */
int template_build(const struct build_request *request, struct json_object **ret_manifest,
                   error *err);

/* The parts, each in a file of its own. */
int unpack_debian(struct build *build, error *err);    /* debian.c */
int unpack_host_copy(struct build *build, error *err); /* host_copy.c */
int strip_tree(struct build *build,
               error *err); /* finalise.c: what must not or need not be in it */
int furnish_tree(struct build *build, error *err);   /* finalise.c: /etc files and mount points */
int hand_over_tree(struct build *build, error *err); /* finalise.c: to whom builds run as */
int settle_tree(struct build *build, error *err);    /* finalise.c: owners, modes, times */
int prepare_tree(struct build *build,
                 error *err);                     /* prepare.c: .pyc files, the recipe's commands */
int digest_tree(struct build *build, error *err); /* digest.c */
int check_archives(struct build *build, error *err); /* install.c: are they what was approved? */
int fetch_wheels(struct build *build, error *err);   /* listed.c: what the recipe lists */
int unpack_wheels(struct build *build, error *err);
int fetch_npm(struct build *build, error *err);
int unpack_npm(struct build *build, error *err);
int add_approved(struct build *build, error *err);   /* install.c: what people have approved */
int check_approved(struct build *build, error *err); /* install.c: Debian's have their versions */

int try_imports(struct build *build, error *err); /* prepare.c: what zygotes will load, and npm's */

/* build.c: writes manifest and digest, and puts the template where others find it. */
int build_publish(struct build *build, struct json_object **ret_manifest, error *err);

/* Gives the sha256 of a file in hexadecimal. */
enum { DIGEST_SIZE = 65 };
int digest_file(int directory, const char *name, char text[DIGEST_SIZE], error *err);

/* Runs Python code in the new root, alone; with `ret_text` its stdout is given. `more` are its
 * arguments, ended by NULL. */
int build_run_python(struct build *build, const char *code, const char *const *more,
                     char **ret_text, error *err);

/* Runs a command in the new root, alone. */
int build_run(struct build *build, const char *const *words, error *err);

/* Tells the caller what a step is doing now. */
void build_says(void *context, const char *detail); /* context: the struct build */

/* Gives the recipe's array or object of this name. */
struct json_object *build_key(const struct build *build, const char *key);
