/* session.h - shared by the verbs of `glovebox session`. */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/daemon_request.h"
#include "cli/tty/inline_images.h"

#include <glovebox.h>
#include <json.h>

#include <stdbool.h>
#include <stddef.h>

enum { SESSION_LISTS_MAX = 64, SESSION_NAME_SIZE = 64 };

struct session_arguments {
    const char *daemon, *policy, *template_name, *folder, *code, *in, *checkpoint, *process,
        *expect, *state;
    uint64_t idle_ms, lifetime_ms;
    size_t limit_count, variable_count, label_count;
    glb_limit limits[SESSION_LISTS_MAX];
    const char *variables[SESSION_LISTS_MAX + 1], *labels[SESSION_LISTS_MAX + 1];
    bool json, all, is_folder, is_recursive, files_only, no_wait;

    glb_client *client;
    char **words;                    /* words after the verb */
    char session[SESSION_NAME_SIZE]; /* full id of words[0], if the verb takes one session */
    int count;
};

/* Finds the session that a word means: its id, or the beginning of the id of just one session that
 * is alive. Fails ERR_NOT_FOUND. */
int session_named(const struct session_arguments *arguments, const char *word,
                  char name[SESSION_NAME_SIZE], error *err);

/* Sets *err to the failure of the library's last call, `code`. Returns -1; 0: it did not fail. */
int library_failed(int32_t code, error *err);

/* Ends a verb whose call returned `code`: prints the answer with --json, else the id in it if that
 * is wanted, and frees it. Returns as library_failed(). */
int session_answered(const struct session_arguments *arguments, int32_t code, char *json,
                     bool is_id_wanted, error *err);

/* Prints a list, an item a line, or as an array with --json. */
void session_print_list(const struct session_arguments *arguments, json_object *list,
                        void (*print)(json_object *one));

/* One cell. Its output goes to the terminal, or nowhere with --json.
 * Gives  cell->outcome, freed with glb_outcome_free() */
struct cell {
    const char *code;
    size_t size;
    const char *expectation; /* expectation of the output; NULL: none */
    struct images *images;   /* NULL: print only the type of pictures */
    glb_outcome *outcome;
    bool is_given_up; /* the user has stopped waiting for a decision */
};
/* Runs a cell. If a person must decide first, it waits, as `glovebox run` does. */
int cell_run(const struct session_arguments *arguments, const char *session, struct cell *cell,
             error *err);
int cell_exit_status(const struct cell *cell);

/* Starts a session by the arguments; its JSON is freed with glb_text_free(). */
int session_begin(const struct session_arguments *arguments, char **ret_json, error *err);

/* The verbs return the exit status, or -1 with *err. */
int session_new(struct session_arguments *arguments, error *err);
int session_list(struct session_arguments *arguments, error *err);
int session_show(struct session_arguments *arguments, error *err);
int session_pause(struct session_arguments *arguments, error *err);
int session_resume(struct session_arguments *arguments, error *err);
int session_kill(struct session_arguments *arguments, error *err);
int session_branch(struct session_arguments *arguments, error *err);
int session_checkpoint(struct session_arguments *arguments, error *err);
int session_checkpoints(struct session_arguments *arguments, error *err);
int session_checkpoint_remove(struct session_arguments *arguments, error *err);
int session_rollback(struct session_arguments *arguments, error *err);
int session_run(struct session_arguments *arguments, error *err);
int session_exec(struct session_arguments *arguments, error *err);
int session_processes(struct session_arguments *arguments, error *err);
int session_attach(struct session_arguments *arguments, error *err);
int session_shell(struct session_arguments *arguments, error *err);
int session_copy(struct session_arguments *arguments, error *err);
int session_files(struct session_arguments *arguments, error *err);
