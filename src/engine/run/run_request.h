/* run_request.h - what a caller asks of a run, checked for form; whether a policy grants it is
 * run_plan.h's.
 *
 * The texts are borrowed from the JSON value, which the request owns. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"
#include "policy/expect.h"
#include "policy/network_narrow.h"
#include "policy/policy.h"
#include "json/payload.h"

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

enum { REQUEST_FILES_MAX = 1024, REQUEST_CODE_MAX = 10 * 1024 * 1024 };

struct request_file {
    const char *path; /* beneath /workspace */
    struct payload content;
    bool has_content;
    bool read_only;
};

struct request_variable {
    const char *name, *value;
};

struct account;
struct client_claim;

struct run_request {
    const char
        *run; /* the id that it shall have, of run_choose_id(); NULL: any. Borrowed likewise */
    const char
        *request_id; /* of the door, for logs; NULL: none; borrowed until runs_submit() returns */
    const struct client_claim *claim; /* of the caller; NULL: none; borrowed likewise */
    struct account *account;          /* of the caller: set by the door, not by request_read() */
    struct json_object *json;
    const char *language; /* NULL: not given; so for each text */
    const char *policy;
    const char *approval; /* id of the one that it names */
    const char *template;
    const char *filename; /* beneath /workspace: the code is kept there */
    struct payload code;
    bool has_code;
    struct payload stdin_content;
    bool has_stdin;
    bool is_cell;    /* the value of the last expression is wanted */
    bool check_only; /* look at the code and run nothing */
    bool is_cold;    /* a fresh interpreter: own address layout, own hash seed */
    size_t argument_count, command_count, variable_count, file_count;
    const char *arguments[AGENT_ARGUMENTS_MAX];
    const char *command[AGENT_ARGUMENTS_MAX]; /* instead of code */
    struct request_variable variables[AGENT_ARGUMENTS_MAX];
    struct request_file *files;
    struct limits_asked limits;
    struct network_wish *network; /* NULL: not given */
    struct json_object *expect;   /* of its output, checked; lies in `json`; NULL: nothing */
    struct expect_needs expect_needs;
};

/* Takes the JSON value, also when it fails.
 * Gives  *ret_request, freed with request_free().
 * Fails  ERR_BAD_REQUEST  in a line: cause; fix. An unknown key is named. ERR_LIMIT for a limit. */
int request_read(struct json_object *json, struct run_request **ret_request, error *err);

/* The same without its keys: an empty request that owns the value, in which the texts lie. Takes
 * the value, also when it fails; NULL then. */
struct run_request *request_open(struct json_object *json, error *err);
void request_free(struct run_request *request);

/* Reads the value of one key of a run, for requests that share it; NULL is "not given". */
int request_read_key(struct run_request *request, const char *name, struct json_object *value,
                     error *err);

/* Checks a path beneath /workspace: relative, no empty, "." or ".." part, no control character. */
int request_check_path(const char *path, size_t size, error *err);

/* Each input has a place of its own: no path is given twice, none lies in one that is a file. */
int request_check_places(const struct run_request *request, error *err);
