/* policy.h - a policy says what runs may do: plain values, read from YAML files, one policy a file.
 *
 * A search path is directories separated by ':'; the first that has NAME.yaml is used. */
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

/* What a sandbox can reach. Its loopback interface is its own: it does not lead out, but servers
 * inside can use it, and gloveboxd can reach them (docs/sessions.md, ports). */
enum policy_network {
    POLICY_NETWORK_UNSAID,
    POLICY_NETWORK_NONE,
    POLICY_NETWORK_LOOPBACK,
    POLICY_NETWORK_RULES, /* the loopback, and what `route` lists, through glovebox-egress */
};

struct policy_variable {
    char name[POLICY_VARIABLE_NAME_SIZE];
    char value[POLICY_VARIABLE_VALUE_SIZE];
};

/* Bounds of sessions; `given` has a bit for each field that a file states, in this order. */
enum policy_session_bound {
    SESSIONS_MAX,              /* alive at once */
    SESSIONS_IDLE,             /* ms without use until one ends; a request may ask for less */
    SESSIONS_AGE,              /* ms until one ends in any case; a request may ask for less */
    SESSIONS_MEMORY,           /* bytes that one may be granted */
    SESSIONS_CHECKPOINTS,      /* that one may have at once; 0 means none */
    SESSIONS_CHECKPOINTS_SIZE, /* bytes of all checkpoints of one */
    SESSIONS_BOUNDS
};

struct policy_sessions {
    uint64_t given;
    uint64_t values[SESSIONS_BOUNDS];
};

/* Which runs need a person's approval first; bits. The pre-check can require it as well. */
enum policy_asks {
    ASKS_ALWAYS = 1,
    ASKS_NETWORK = 2,     /* the sandbox can reach the network */
    ASKS_OVER_LIMITS = 4, /* a limit above the policy's default is requested */
    ASKS_WARNING = 8,     /* the pre-check warns */
    ASKS_CHECK = 16,      /* the pre-check decides to ask; not a word of policy files */
};

/* What an approval may cover; bits. */
enum policy_approval_reach {
    REACH_ONCE = 1,
    REACH_CODE = 2,    /* the same request, any number of times */
    REACH_SESSION = 4, /* everything in this session */
    REACH_TIME = 8,    /* everything that the requester runs under this policy */
};

struct policy_approval {
    uint32_t when;       /* bits of policy_asks; 0: no approval */
    uint32_t scopes;     /* bits of policy_approval_reach; 0: all but REACH_TIME */
    bool is_out_of_band; /* the user who runs glovebox may not approve their own requests */
    uint64_t expires_ms; /* without an answer until then, it is denied; 0: 15 minutes */
};

/* What happens to an output that does not meet its expectations. */
enum policy_on_fault { ON_FAULT_UNSAID, ON_FAULT_TELL, ON_FAULT_WITHHOLD };

/* The expectations of every output, in addition to those of a request (expect.h). */
struct policy_expect {
    enum policy_on_fault on_fault; /* default: reported */
    struct expect_needs needs;
    char text[POLICY_EXPECT_SIZE]; /* a JSON list of expectations, all of which must be met, those
                                      of the farthest extended policy first; "": none */
};

/* The effective policy: a file, merged over those that it extends. */
struct policy {
    char name[POLICY_NAME_SIZE];
    char extends[POLICY_NAME_SIZE]; /* "" if it stands alone */
    char description[POLICY_DESCRIPTION_SIZE];
    char template[POLICY_NAME_SIZE];
    enum policy_network network;
    struct policy_sessions sessions;
    struct network_policy route; /* with POLICY_NETWORK_RULES */
    struct precheck precheck;    /* check of code before it runs */
    struct policy_approval approval;
    struct policy_expect expect;
    size_t language_count;
    char languages[POLICY_LANGUAGES_MAX][POLICY_LANGUAGE_SIZE];
    struct limits limits;  /* defaults of a run */
    struct limits maximum; /* the most that a run may ask for; never below `limits` */
    uint64_t
        stated; /* bits of enum limit_id: maxima stated in a file, which bind extending policies */
    size_t variable_count;
    struct policy_variable variables[POLICY_VARIABLES_MAX]; /* `env`, sorted by name */
    char digest[POLICY_DIGEST_SIZE];                        /* over the canonical rendering */
};

/* The limits that a request asks for. Zero-filled: none. */
struct limits_asked {
    uint64_t given; /* bits of enum limit_id */
    struct limits values;
};

/* Adds a limit that is asked for. Fails  ERR_LIMIT  if it is out of the row's bounds. */
int limits_ask(struct limits_asked *asked, enum limit_id id, uint64_t value, error *err);

/* Loads the policy `name` and all that it extends from a search path.
 * Fails  ERR_BAD_REQUEST  the name or a file is invalid: ".../data.yaml:7:3: cause; fix"
 *        ERR_NOT_FOUND    no file of that name */
int policy_load(const char *path, const char *name, struct policy *ret_policy, error *err);

/* Reads one policy file by its path; the policies that it extends come from the search path. As
 * policy_load(). */
int policy_read(const char *file, const char *path, struct policy *ret_policy, error *err);

/* The text of a policy file from anywhere. */
struct policy_source {
    const char *text;
    size_t length;
    const char *label; /* the name of the file in failures */
    const char *path;  /* the search path for what it extends; "": none */
};

/* Parses a policy file. As policy_load. */
int policy_parse(const struct policy_source *source, struct policy *ret_policy, error *err);

/* Lists the policies of a search path, sorted, each once.
 * Gives  *ret_count names; a missing directory counts as empty. */
int policy_list(const char *path, char ret_names[POLICY_LIST_MAX][POLICY_NAME_SIZE],
                size_t *ret_count, error *err);

/* Does a file state this bound? If so, gives  *ret_max. */
bool policy_bounds_sessions(const struct policy *policy, enum policy_session_bound bound,
                            uint64_t *ret_max);

/* A bound as files write it: "checkpoints_size 2GiB". */
void policy_bound_print(enum policy_session_bound bound, uint64_t value, char *text, size_t size);

/* Grants limits to a request, which may ask for less, or for more up to the policy's maximum.
 * Fails  ERR_LIMIT  with the limit, what was asked and the maximum. */
int policy_narrow(const struct policy *policy, const struct limits_asked *asked,
                  struct limits *ret_granted, error *err);

bool policy_allows_language(const struct policy *policy, const char *language);

/* True for [a-z0-9-]{1,63}, the names of policies and templates. */
bool policy_name_is_valid(const char *name);

/* Checks an environment variable of a policy or a request.
 * Fails  ERR_BAD_REQUEST  the name is invalid, or controls the loader (LD_*, GLIBC_TUNABLES); the
 * value is not UTF-8 or has control characters other than tab and newline. */
int policy_check_variable(const char *name, const char *value, error *err);

const char *policy_on_fault_name(enum policy_on_fault on_fault); /* "tell", "withhold" */

/* The values or their defaults; and the names of bits, NULL for an unknown one. */
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

/* The policy of requests that name none: the operator's `setting`, unless it is NULL or empty; else
 * data if it can be used (its template is built); else minimal. */
const char *default_policy_name(const char *setting,
                                bool (*can_use)(const void *context, const char *policy),
                                const void *context);
