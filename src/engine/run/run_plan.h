/* run_plan.h - what a run will be: a request, granted by a policy, in a template. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "contract/spawn.h"
#include "engine/catalog/policies.h"
#include "engine/catalog/templates.h"
#include "engine/run/run_request.h"

struct run_spec {
    const struct policy *policy;
    const struct template *template;
    const struct language *language; /* NULL for a command */
    struct limits limits;            /* granted */
    enum policy_network network;     /* granted; and with POLICY_NETWORK_RULES: */
    const struct network_policy *route;
    struct network_policy *narrowed; /* what `way` is, if the request asked for less; or NULL */

    bool code_is_system;   /* code_path is beneath "/", else beneath /workspace */
    const char *code_path; /* NULL for a command */
    struct bytes code_path_text;
    struct bytes compile; /* payload of a START; empty: nothing to compile */
    int set; /* of the zygote that the interpreter is forked from; -1: it is executed */
    bool code_is_in_frame; /* the code goes with EXECUTE, not as a file */
    struct bytes execute;  /* payload of the EXECUTE, for a forked interpreter */
    struct bytes program;  /* payload of the START of the program itself */
};

struct variables {
    struct bytes text; /* NAME=value, each ended by NUL */
    uint16_t count;
};

/* Grants a request. Fails  ERR_NOT_FOUND  for a policy, template or language that is unknown,
 * ERR_POLICY  for a language that the policy forbids, ERR_LIMIT, ERR_TOO_LARGE. */
int run_plan_grant(struct run_spec *plan, const struct run_request *request,
                   const struct policies *policies, const struct templates *templates, error *err);
/* For a program of our own: in the template of `place`, under its policy, which the caller keeps.
 * As run_plan_grant. */
int run_plan_grant_checker(struct run_spec *plan, const struct run_request *request,
                           const struct run_spec *place, error *err);
/* The policy of requests that name none (default_policy_name()); for a key that may not use that,
 * the first that it may. */
void run_plan_default_policy(const struct account *account, const struct policies *policies,
                             const struct templates *templates, char ret_name[POLICY_NAME_SIZE]);

/* For a session: where it stands and under which limits; its contexts name their language
 * themselves. As run_plan_grant. */
int run_plan_grant_place(struct run_spec *plan, const struct run_request *request,
                         const struct policies *policies, const struct templates *templates,
                         error *err);
int run_plan_language(const struct run_spec *plan, const char *name,
                      const struct language **ret_language, error *err);

/* Gives the whole environment; `more` (may be NULL) goes over `request`. The text is the caller's,
 * also on failure. */
int run_plan_environment(const struct run_spec *plan, const struct run_request *request,
                         const struct run_request *more, struct variables *ret_variables,
                         error *err);

/* What a sandbox of this policy has of the network. */
enum spawn_network run_plan_network(const struct run_spec *plan);
struct spawn_route run_plan_route(const struct run_spec *plan);
bool run_plan_intercepts(const struct run_spec *plan); /* its programs need trust_bundle.h */

/* Frees what it takes to begin. Its template is released by the plan's owner. */
void run_plan_done(struct run_spec *plan);
