/* build.h - builds a template: from Debian packages, or from copies of the host's own.
 *
 * The steps are in build.c, in order. An incomplete build never has the template's name. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What to build. */
struct build_request {
    struct json_object *recipe;  /* from recipe_read() */
    const char *state;           /* the state directory */
    const char *lock;            /* path of the file that pins the recipe's wheels; may be NULL */
    const char *npm_lock;        /* the same for its packages of npm */
    struct json_object *project; /* {"name","text"} of a project's file, see requirements.h; may be
                                    NULL */
    bool is_offline;             /* wheels come only from the cache */
    const char *base;            /* "debian" or "host-copy"; NULL: that of the recipe */
    /* Called when a step begins, and again with details; may be NULL. */
    void (*progress)(void *context, unsigned step, unsigned steps, const char *name,
                     const char *detail);
    void *context;
};

/* A template under construction. */
struct build {
    const struct build_request *request;
    const char *name, *base;
    int store;
    int place;                         /* the working directory, locked */
    int root;                          /* PLACE/root */
    char place_name[NAME_MAX];         /* below the store */
    char root_path[PATH_MAX];          /* for the programs that need a path */
    struct json_object *packages;      /* [{"name","version"}], Debian's */
    struct json_object *distributions; /* the same for Python */
    struct json_object *approved;      /* rows of approved_read() */
    struct json_object *wheels;        /* {file: sha256} of listed wheels; NULL: none */
    struct json_object *npm;           /* [{"name","version"}] of npm, listed or needed; or NULL */
    const struct walls_bind *binds; /* further mounts for commands in the new root; may be NULL */
    uint64_t bytes, files;
    char digest[72]; /* "sha256:" and 64 digits */
    unsigned step;
};

/* Gives  *ret_manifest of the new template, which the caller puts.
 * Fails  ERR_UNAVAILABLE  a tool, the network or space is missing: the text says what to do
 *        ERR_TIMEOUT      interrupted */
int template_build(const struct build_request *request, struct json_object **ret_manifest,
                   error *err);

/* The steps, by file. */
int unpack_debian(struct build *build, error *err);    /* debian.c */
int unpack_host_copy(struct build *build, error *err); /* host_copy.c */
int strip_tree(struct build *build,
               error *err); /* finalise.c: removes what must not or need not be in it */
int furnish_tree(struct build *build, error *err);   /* finalise.c: /etc files and mount points */
int hand_over_tree(struct build *build, error *err); /* finalise.c: to the user of builds */
int settle_tree(struct build *build, error *err);    /* finalise.c: owners, modes, times */
int prepare_tree(struct build *build,
                 error *err);                     /* prepare.c: .pyc files, the recipe's commands */
int digest_tree(struct build *build, error *err); /* digest.c */
int check_archives(struct build *build, error *err); /* install.c: are they the approved ones? */
int fetch_wheels(struct build *build, error *err);   /* listed.c: packages that the recipe lists */
int unpack_wheels(struct build *build, error *err);
int fetch_npm(struct build *build, error *err);
int unpack_npm(struct build *build, error *err);
int add_approved(struct build *build, error *err);   /* install.c: approved packages */
int check_approved(struct build *build, error *err); /* install.c: versions of Debian packages */

int try_imports(struct build *build, error *err); /* prepare.c: modules of zygotes, and of npm */

/* build.c: writes manifest and digest, and publishes the template. */
int build_publish(struct build *build, struct json_object **ret_manifest, error *err);

/* Gives the sha256 of a file in hexadecimal. */
enum { DIGEST_SIZE = 65 };
int digest_file(int directory, const char *name, char text[DIGEST_SIZE], error *err);

/* Runs Python code in the new root, confined. `more` are its arguments, ended by NULL. Gives
 * *ret_text, its stdout, unless `ret_text` is NULL. */
int build_run_python(struct build *build, const char *code, const char *const *more,
                     char **ret_text, error *err);

/* Runs a command in the new root, confined. */
int build_run(struct build *build, const char *const *words, error *err);

/* Passes details of the current step to build_request.progress. */
void build_says(void *context, const char *detail); /* context: the struct build */

/* Gives the recipe's array or object of this name. */
struct json_object *build_key(const struct build *build, const char *key);
