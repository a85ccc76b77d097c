/* language_drivers.c - starts an interpreter of each language that has contexts. */
#include "base/table.h"
#include "cells_bash.h"
#include "cells_js.h"
#include "cells_r.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"

#include <string.h>

/* Bash runs PROMPT_COMMAND before its first prompt; it starts the driver. Messages of bash about
 * the missing terminal are discarded; the driver restores stderr. */
static const char begin_bash[] = "PROMPT_COMMAND=$0 exec bash --norc --noprofile +m -i "
                                 "4>&2 2>/dev/null";

/* Rscript accepts no program of several lines on its command line, but any text as an argument. */
static const char begin_r[] = "eval(parse(text = commandArgs(TRUE)))";

static const struct context_kind kinds[] = {
    /* clang-format off */
    { "python",     { NULL },                                  NULL       },
    { "bash",       { "bash", "--norc", "-c", begin_bash },    cells_bash },
    { "javascript", { "node", "-e" },                          cells_js   },
    { "node",       { "node", "-e" },                          cells_js   },
    { "r",          { "Rscript", "--vanilla", "-e", begin_r }, cells_r    },
    /* clang-format on */
};

const char *context_language(const struct template *template, const char *name)
{
    const struct language *language = template_language(template, name);
    return language ? language->name : name;
}

const struct context_kind *context_kind_of(const char *language)
{
    for_each(kind, kinds)
        if (strcmp(kind->language, language) == 0)
            return kind;
    return NULL;
}

/* A driver is an ordinary program that reads the paths of its cells from a socket. */
int context_start_driver(struct context *context, error *err)
{
    struct session *session = context->session;
    struct agent_start order = { .flags = AGENT_START_CELLS,
                                 .variables = context->variables.count };
    auto_bytes payload = { 0 };
    bytes_add(&payload, &order, sizeof order);
    bytes_add(&payload, context->folder, strlen(context->folder) + 1);
    for (unsigned i = 0; i < COUNT_OF(context->kind->command) && context->kind->command[i]; i++) {
        bytes_add(&payload, context->kind->command[i], strlen(context->kind->command[i]) + 1);
        order.arguments++;
    }
    bytes_add(&payload, context->kind->driver, strlen(context->kind->driver) + 1);
    order.arguments++;
    bytes_add(&payload, context->variables.text.data, context->variables.text.size);
    if (payload.failed || payload.size > AGENT_PAYLOAD_MAX)
        return fail(err, ERR_TOO_LARGE, "the environment of the context is too large");
    memcpy(payload.data, &order, sizeof order);
    if (session_begin(session, &context->process, err) < 0)
        return -1;
    session_order(session, &context->process, AGENT_START, payload.data, payload.size);
    context->state = CONTEXT_STARTING;
    context->start_ends = deadline_in(CONTEXT_START_MS);
    return 0;
}
