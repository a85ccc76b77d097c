/* policy.h - what a run may do, as plain values; read from YAML files, one policy a file.
 *
 * A search path is one or more directories with ':' between them; the first that has NAME.yaml
 * wins. */
#pragma once

#include "base/error.h"
#include "model/limits.h"
#include "policy/expect_needs.h"
#include "policy/network_policy.h"
#include "policy/precheck.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    POLICY_NAME_SIZE = 64, /* [a-z0-9-]{1,63} and the end */
    POLICY_DESCRIPTION_SIZE = 256,
    POLICY_LANGUAGES_MAX = 16,
    POLICY_LANGUAGE_SIZE = 32,
    POLICY_VARIABLES_MAX = 16,
    POLICY_VARIABLE_NAME_SIZE = 64,
    POLICY_VARIABLE_VALUE_SIZE = 256,
    POLICY_DIGEST_SIZE = 72,     /* "sha256:" and 64 hex digits and the end */
    POLICY_FILE_MAX = 64 * 1024, /* bytes */
    POLICY_PARENTS_MAX = 8,      /* files in one chain of `extends` */
    POLICY_LIST_MAX = 256,
    POLICY_EXPECT_SIZE = 16 * 1024, /* of all expectations as JSON, and the end */
};

/* What a sandbox can reach. The loopback is its own: nothing leads out of it, but servers inside
 * can be tried, and reached through gloveboxd (docs/sessions.md, ports). */
enum policy_network {
    POLICY_NETWORK_UNSAID,
    POLICY_NETWORK_NONE,
    POLICY_NETWORK_LOOPBACK,
    POLICY_NETWORK_RULES, /* and what `way` lists, by way of glovebox-egress */
};

struct policy_variable {
    char name[POLICY_VARIABLE_NAME_SIZE];
    char value[POLICY_VARIABLE_VALUE_SIZE];
};

/* Bounds of sessions; `given` has a bit for each field that a file states, in this order. */
enum policy_session_bound {
    SESSIONS_MAX,              /* alive at once */
    SESSIONS_IDLE,             /* ms without use after which one ends; a request may ask for less */
    SESSIONS_AGE,              /* ms after which one ends in any case; the same */
    SESSIONS_MEMORY,           /* bytes that one may be granted */
    SESSIONS_CHECKPOINTS,      /* that one may have at once; 0 is a bound, too: none */
    SESSIONS_CHECKPOINTS_SIZE, /* bytes of all checkpoints of one */
    SESSIONS_BOUNDS
};

struct policy_sessions {
    uint64_t given;
    uint64_t values[SESSIONS_BOUNDS];
};

/* Which runs a person is asked about before they begin; bits. What a pre-check wants asked is asked
 * in any case. */
enum policy_asks {
    ASKS_ALWAYS = 1,
    ASKS_NETWORK = 2,     /* something leads out of the sandbox */
    ASKS_OVER_LIMITS = 4, /* more is asked for than a run gets that asks for nothing */
    ASKS_WARNING = 8,     /* the pre-check warns */
    ASKS_CHECK = 16,      /* the pre-check says so; no file can */
};

/* How far an approval may reach; bits. */
enum policy_approval_reach {
    REACH_ONCE = 1,
    REACH_CODE = 2,    /* the very same request, again and again */
    REACH_SESSION = 4, /* whatever runs in this session */
    REACH_TIME = 8,    /* whatever the asker runs under this policy */
};

struct policy_approval {
    uint32_t when;       /* bits of policy_asks; 0: no approval */
    uint32_t scopes;     /* bits of policy_approval_reach; 0: all but REACH_TIME */
    bool is_out_of_band; /* the user who runs glovebox may not decide on requests of their own */
    uint64_t expires_ms; /* after which no answer means denied; 0: 15 minutes */
};

/* What happens to an output that is not what was expected of it. */
enum policy_on_fault { ON_FAULT_UNSAID, ON_FAULT_TELL, ON_FAULT_WITHHOLD };

/* What every output is expected to be like, whatever a request expects besides (expect.h). */
struct policy_expect {
    enum policy_on_fault on_fault; /* default: reported */
    struct expect_needs needs;
    char text[POLICY_EXPECT_SIZE]; /* a JSON list of expectations, each of which holds, those of the
                                      farthest policy that is extended first; "": none */
};

/* The effective policy: what the file says, merged over what it extends. */
struct policy {
    char name[POLICY_NAME_SIZE];
    char extends[POLICY_NAME_SIZE]; /* "" if it stands alone */
    char description[POLICY_DESCRIPTION_SIZE];
    char template[POLICY_NAME_SIZE];
    enum policy_network network;
    struct policy_sessions sessions;
    struct network_policy route; /* with POLICY_NETWORK_RULES */
    struct precheck precheck;    /* a look at code before it runs */
    struct policy_approval approval;
    struct policy_expect expect;
    size_t language_count;
    char languages[POLICY_LANGUAGES_MAX][POLICY_LANGUAGE_SIZE];
    struct limits limits;  /* what a run gets that asks for nothing */
    struct limits maximum; /* what a run may ask for, at most; never below `limits` */
    uint64_t stated; /* bits of enum limit_id: a file states this maximum, children keep to it */
    size_t variable_count;
    struct policy_variable variables[POLICY_VARIABLES_MAX]; /* `env`, sorted by name */
    char digest[POLICY_DIGEST_SIZE];                        /* over the canonical rendering */
};

/* What a request asks of the limits. Zero-filled it asks for nothing. */
struct limits_asked {
    uint64_t given; /* bits of enum limit_id */
    struct limits values;
};

/* Notes a wish. Fails  ERR_LIMIT  if it is out of the row's bounds. */
int limits_ask(struct limits_asked *asked, enum limit_id id, uint64_t value, error *err);

/* Loads the policy `name` and all it extends from a search path.
 * Fails  ERR_BAD_REQUEST  the name is none, or a file is wrong: ".../data.yaml:7:3: cause; fix"
 *        ERR_NOT_FOUND    no file of that name */
int policy_load(const char *path, const char *name, struct policy *ret_policy, error *err);

/* Reads one policy file by its own path; what it extends comes from the search path. As
 * policy_load. */
int policy_read(const char *file, const char *path, struct policy *ret_policy, error *err);

/* The text of a policy file from anywhere. */
struct policy_source {
    const char *text;
    size_t length;
    const char *label; /* stands for the file in failures */
    const char *path;  /* where to search for what it extends; "" for nowhere */
};

/* Parses a policy file. As policy_load. */
int policy_parse(const struct policy_source *source, struct policy *ret_policy, error *err);

/* Lists the names in a search path, sorted, each once.
 * Gives  *ret_count names; a directory that does not exist counts as empty. */
int policy_list(const char *path, char ret_names[POLICY_LIST_MAX][POLICY_NAME_SIZE],
                size_t *ret_count, error *err);

/* Does a file state this bound? Gives  *ret_max, if so. */
bool policy_bounds_sessions(const struct policy *policy, enum policy_session_bound bound,
                            uint64_t *ret_max);

/* A bound as files write it: "checkpoints_size 2GiB". */
void policy_bound_print(enum policy_session_bound bound, uint64_t value, char *text, size_t size);

/* Grants limits to a request: it may narrow, or ask up to the policy's maximum.
 * Fails  ERR_LIMIT  naming the limit, what was asked and the maximum. */
int policy_narrow(const struct policy *policy, const struct limits_asked *asked,
                  struct limits *ret_granted, error *err);

bool policy_allows_language(const struct policy *policy, const char *language);

/* True for [a-z0-9-]{1,63}: names of policies and templates. */
bool policy_name_is_valid(const char *name);

/* Checks an environment variable that a policy or a request gives.
 * Fails  ERR_BAD_REQUEST  the name is none, or would steer the loader (LD_*, GLIBC_TUNABLES); the
 * value is not UTF-8 or has control characters other than tab and newline. */
int policy_check_variable(const char *name, const char *value, error *err);

const char *policy_on_fault_name(enum policy_on_fault on_fault); /* "tell", "withhold" */

/* What holds where a file says nothing, and the words for bits; NULL for what is none. */
uint64_t approval_expires_ms(const struct policy_approval *approval);
uint32_t approval_scopes(const struct policy_approval *approval);
const char *approval_asks_name(uint32_t bit);
const char *approval_scope_name(uint32_t bit);
/* "always, network"; 64 bytes are enough. */
void approval_print_asks(uint32_t bits, char *text, size_t size);
void approval_print_scopes(uint32_t bits, char *text, size_t size);

/* Writes the canonical rendering: JSON, keys sorted, no blanks, without the digest.
 * Gives  *ret_text, which the caller frees. */
int policy_render(const struct policy *policy, char **ret_text, error *err);

/* The policy of requests that name none: `setting` as the operator has it, unless it is NULL or
 * empty; else data where it can be used: its template is built; else minimal. */
const char *default_policy_name(const char *setting,
                                bool (*can_use)(const void *context, const char *policy),
                                const void *context);
