/* run_request.h - a caller's request for a run, checked for its form. (run_plan.h has whether a
 * policy grants it.)
 *
 * The texts point into the JSON value, which the request owns. */
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
    const char *path; /* below /workspace */
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
    const char *run;        /* id for the run, from run_choose_id(); NULL: any; borrowed */
    const char *request_id; /* for logs; NULL: none; borrowed until runs_submit() returns */
    const struct client_claim *claim; /* of the caller; NULL: none; borrowed likewise */
    struct account *account;          /* of the caller: set by the door, not by request_read() */
    struct json_object *json;
    const char *language; /* NULL: not given; likewise for each text */
    const char *policy;
    const char *approval; /* id of the approval that it names */
    const char *template;
    const char *filename; /* below /workspace: the code is stored there */
    struct payload code;
    bool has_code;
    struct payload stdin_content;
    bool has_stdin;
    bool is_cell;    /* the value of the last expression is wanted */
    bool check_only; /* check the code and run nothing */
    bool is_cold;    /* a fresh interpreter: own address layout, own hash seed */
    size_t argument_count, command_count, variable_count, file_count;
    const char *arguments[AGENT_ARGUMENTS_MAX];
    const char *command[AGENT_ARGUMENTS_MAX]; /* in place of code */
    struct request_variable variables[AGENT_ARGUMENTS_MAX];
    struct request_file *files;
    struct limits_asked limits;
    struct network_wish *network; /* NULL: not given */
    struct json_object *expect;   /* of its output, checked; points into `json`; NULL: nothing */
    struct expect_needs expect_needs;
};

/* Takes the JSON value, also on failure. Gives  *ret_request, freed with request_free(). Fails
 * ERR_BAD_REQUEST  in one line: cause; fix; an unknown key is named. ERR_LIMIT for a limit. */
int request_read(struct json_object *json, struct run_request **ret_request, error *err);

/* Makes a request without reading keys: it is empty and owns the value, which its texts point into.
 * Takes the value, also on failure; NULL then. */
struct run_request *request_open(struct json_object *json, error *err);
void request_free(struct run_request *request);

/* Reads one key of a run, for other requests that have it too; NULL: "not given". */
int request_read_key(struct run_request *request, const char *name, struct json_object *value,
                     error *err);

/* Checks a path below /workspace: relative, no empty, "." or ".." part, no control character. */
int request_check_path(const char *path, size_t size, error *err);

/* Checks the paths of inputs: none is given twice, and none is below another that is a file. */
int request_check_places(const struct run_request *request, error *err);
