/* run_environment.c - the environment of a program: fixed variables, those of template and policy,
 * and those of the request. */
#include "engine/run/run_environment.h"

#include "base/table.h"
#include "engine/network/trust_bundle.h"

#include <string.h>
#include <unistd.h>

/* For every program; template, policy and request add to these or replace them, in this order. */
static const struct request_variable fixed_variables[] = {
    { "PATH", "/usr/local/bin:/usr/bin:/bin" },
    { "HOME", "/home/user" },
    { "USER", "user" },
    { "LOGNAME", "user" },
    { "SHELL", "/bin/bash" },
    { "LANG", "C.UTF-8" },
    { "TZ", "UTC" },
    { "TMPDIR", "/tmp" },
    { "PWD", "/workspace" },
    { "PYTHONPATH", "/workspace" },
    { "PYTHONDONTWRITEBYTECODE", "1" },
    { "PYTHONUNBUFFERED", "1" },
};

/* If the policy allows connections: for programs that use a proxy. */
static const struct request_variable proxy_variables[] = {
    { "http_proxy", "http://127.0.0.1:3128" }, { "https_proxy", "http://127.0.0.1:3128" },
    { "HTTP_PROXY", "http://127.0.0.1:3128" }, { "HTTPS_PROXY", "http://127.0.0.1:3128" },
    { "no_proxy", "localhost,127.0.0.1,::1" }, { "NO_PROXY", "localhost,127.0.0.1,::1" },
};

/* If TLS is intercepted: for programs with their own list of certificates. The file replaces that
 * list, so it has the template's certificates as well. */
static const char certificates[] = "/" CERTIFICATES_PATH;
static const struct request_variable certificate_variables[] = {
    { "SSL_CERT_FILE", certificates },  { "REQUESTS_CA_BUNDLE", certificates },
    { "CURL_CA_BUNDLE", certificates }, { "GIT_SSL_CAINFO", certificates },
    { "PIP_CERT", certificates },       { "NODE_EXTRA_CA_CERTS", certificates },
};

static int set_variable(struct environment *environment, const char *name, const char *value,
                        error *err)
{
    for (size_t i = 0; i < environment->count; i++)
        if (strcmp(environment->list[i].name, name) == 0) {
            environment->list[i].value = value;
            return 0;
        }
    if (environment->count == VARIABLES_MAX)
        return fail(err, ERR_TOO_LARGE, "the environment has more than %d names", VARIABLES_MAX);
    environment->list[environment->count++] = (struct request_variable){ name, value };
    return 0;
}

/* Nothing of gloveboxd's own environment, except in a test build that disables this wall. */
static int inherit_environment(struct environment *environment, error *err)
{
#ifdef GLOVEBOX_DISABLE_WALL
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    const char *disabled = getenv("GLOVEBOX_DISABLE_WALL");
    bool inherits = disabled && strtoull(disabled, NULL, 0) & (1ULL << WALL_environment);
    for (char **variable = environ; inherits && *variable; variable++) {
        char *name = strdup(*variable); /* never freed: a test build */
        char *equals = name ? strchr(name, '=') : NULL;
        if (!equals)
            continue;
        *equals = '\0';
        if (set_variable(environment, name, equals + 1, err) < 0)
            return -1;
    }
#endif
    (void) environment;
    (void) err;
    return 0;
}

bool run_plan_intercepts(const struct run_spec *plan)
{
    return plan->network == POLICY_NETWORK_RULES && network_policy_intercepts(plan->route);
}

static int set_all(struct environment *environment, const struct request_variable *variables,
                   size_t count, error *err)
{
    for (size_t i = 0; i < count; i++)
        if (set_variable(environment, variables[i].name, variables[i].value, err) < 0)
            return -1;
    return 0;
}

int environment_gather(struct environment *environment, const struct run_spec *plan,
                       const struct run_request *request, error *err)
{
    const struct template *template = plan->template;
    const struct policy *policy = plan->policy;
    if (inherit_environment(environment, err) < 0 ||
        set_all(environment, fixed_variables, COUNT_OF(fixed_variables), err) < 0 ||
        (plan->network == POLICY_NETWORK_RULES &&
         set_all(environment, proxy_variables, COUNT_OF(proxy_variables), err) < 0) ||
        (run_plan_intercepts(plan) &&
         set_all(environment, certificate_variables, COUNT_OF(certificate_variables), err) < 0))
        return -1;
    for (size_t i = 0; i < template->variable_count; i++)
        if (set_variable(environment, template->variables[i], template->values[i], err) < 0)
            return -1;
    for (size_t i = 0; i < policy->variable_count; i++)
        if (set_variable(environment, policy->variables[i].name, policy->variables[i].value, err) <
            0)
            return -1;
    return set_all(environment, request->variables, request->variable_count, err);
}

void environment_write(const struct environment *environment, struct bytes *out)
{
    for (size_t i = 0; i < environment->count; i++) {
        bytes_add_text(out, environment->list[i].name);
        bytes_add_text(out, "=");
        bytes_add(out, environment->list[i].value, strlen(environment->list[i].value) + 1);
    }
}

int run_plan_environment(const struct run_spec *plan, const struct run_request *request,
                         const struct run_request *more, struct variables *ret_variables,
                         error *err)
{
    struct bytes *text = &ret_variables->text;
    struct environment environment = { 0 };
    if (environment_gather(&environment, plan, request, err) < 0 ||
        (more && set_all(&environment, more->variables, more->variable_count, err) < 0))
        return -1;
    environment_write(&environment, text);
    ret_variables->count = (uint16_t) environment.count;
    if (text->size > AGENT_PAYLOAD_MAX / 2)
        return fail(err, ERR_TOO_LARGE, "the environment has %zu bytes, %d are allowed", text->size,
                    AGENT_PAYLOAD_MAX / 2);
    return text->failed ? fail(err, ERR_SYSTEM, "no memory for an environment") : 0;
}
