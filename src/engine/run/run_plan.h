/* run_plan.h - the plan of a run: a request, granted by a policy, in a template. */
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
    struct network_policy *narrowed; /* by the request: `route` points to it; else NULL */

    bool code_is_system;   /* code_path is below "/", else below /workspace */
    const char *code_path; /* NULL for a command */
    struct bytes code_path_text;
    struct bytes compile;  /* payload of a START; empty: nothing to compile */
    int set;               /* the zygote to fork the interpreter from; -1: it is executed */
    bool code_is_in_frame; /* the code is in EXECUTE, not in a file */
    struct bytes execute;  /* payload of the EXECUTE, for a forked interpreter */
    struct bytes program;  /* payload of the START of the program itself */
};

struct variables {
    struct bytes text; /* NAME=value, each ended by NUL */
    uint16_t count;
};

/* Grants a request. Fails  ERR_NOT_FOUND  unknown policy, template or language; ERR_POLICY  the
 * policy forbids the language; ERR_LIMIT, ERR_TOO_LARGE. */
int run_plan_grant(struct run_spec *plan, const struct run_request *request,
                   const struct policies *policies, const struct templates *templates, error *err);
/* For one of our own programs: in the template of `place`, under its policy, which the caller
 * keeps. Fails as run_plan_grant(). */
int run_plan_grant_checker(struct run_spec *plan, const struct run_request *request,
                           const struct run_spec *place, error *err);
/* The policy of requests that name none (default_policy_name()); if the key may not use it, the
 * first that it may use. */
void run_plan_default_policy(const struct account *account, const struct policies *policies,
                             const struct templates *templates, char ret_name[POLICY_NAME_SIZE]);

/* For a session: its template and limits; its contexts choose their language themselves. Fails as
 * run_plan_grant(). */
int run_plan_grant_place(struct run_spec *plan, const struct run_request *request,
                         const struct policies *policies, const struct templates *templates,
                         error *err);
int run_plan_language(const struct run_spec *plan, const char *name,
                      const struct language **ret_language, error *err);

/* Gives the whole environment; `more` (may be NULL) overrides `request`. The caller frees the text,
 * also on failure. */
int run_plan_environment(const struct run_spec *plan, const struct run_request *request,
                         const struct run_request *more, struct variables *ret_variables,
                         error *err);

/* What network a sandbox of this plan has. */
enum spawn_network run_plan_network(const struct run_spec *plan);
struct spawn_route run_plan_route(const struct run_spec *plan);
bool run_plan_intercepts(const struct run_spec *plan); /* TLS: its programs need trust_bundle.h */

/* Frees what was needed to begin. The plan's owner releases its template. */
void run_plan_done(struct run_spec *plan);
