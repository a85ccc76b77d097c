/* context_state.c - a context without its interpreter, to be copied to another session. */
#include "engine/session/context_state.h"

#include "engine/session/session_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kept_context_copy(struct kept_context *kept, const struct kept_context *from, error *err)
{
    *kept = (struct kept_context){ .id = strdup(from->id),
                                   .language = strdup(from->language),
                                   .folder = strdup(from->folder),
                                   .cells = from->cells,
                                   .is_fresh = from->is_fresh };
    kept->variables.count = from->variables.count;
    bytes_add(&kept->variables.text, from->variables.text.data, from->variables.text.size);
    if (kept->id && kept->language && kept->folder && !kept->variables.text.failed)
        return 0;
    kept_context_done(kept);
    return fail(err, ERR_SYSTEM, "no memory for a context");
}

int kept_context_take(struct kept_context *kept, const struct context *context, error *err)
{
    struct kept_context as_it_is = { .id = (char *) (uintptr_t) context->id,
                                     .language = (char *) (uintptr_t) context->language->name,
                                     .folder = context->folder,
                                     .variables = context->variables,
                                     .cells = context->cells,
                                     .is_fresh = context->is_fresh };
    return kept_context_copy(kept, &as_it_is, err);
}

void kept_context_done(struct kept_context *kept)
{
    free(kept->id);
    free(kept->language);
    free(kept->folder);
    bytes_done(&kept->variables.text);
    *kept = (struct kept_context){ 0 };
}

int context_adopt(struct session *session, const struct kept_context *kept, uint32_t interpreter,
                  error *err)
{
    struct context *context = calloc(1, sizeof *context);
    if (!context)
        return fail(err, ERR_SYSTEM, "no memory for a context");
    context->session = session;
    context->process = context_operation(context);
    context->process.id = interpreter;
    (void) snprintf(context->id, sizeof context->id, "%s", kept->id);
    context->folder = strdup(kept->folder);
    context->kind = context_kind_of(kept->language);
    context->cells = kept->cells;
    context->is_fresh = kept->is_fresh;
    context->variables.count = kept->variables.count;
    bytes_add(&context->variables.text, kept->variables.text.data, kept->variables.text.size);
    if (!context->kind || !context->folder || context->variables.text.failed)
        (void) fail(err, ERR_SYSTEM, "no memory for a context");
    else if (run_plan_language(&session->plan, kept->language, &context->language, err) == 0) {
        context->state = CONTEXT_IDLE;
        context->next = session->contexts;
        session->contexts = context;
        session->context_count++;
        session_list(session, &context->process);
        return 0;
    }
    free(context->folder);
    bytes_done(&context->variables.text);
    free(context);
    return -1;
}

/* Why its interpreter has ended: from the control group, since init cannot know. */
const char *context_describe_end(const struct context *context, const struct agent_exited *exited)
{
    struct counters now;
    counters_read(sandbox_groups(context->session->sandbox), &now);
    bool ran_out = now.memory_kills > context->session->counters.memory_kills;
    if (exited->signal == 9 && ran_out)
        return "the kernel killed it: memory was used up";
    if (exited->signal == 9)
        return "it was killed";
    return exited->signal != 0 ? "a signal ended it" : "it ended by itself";
}
