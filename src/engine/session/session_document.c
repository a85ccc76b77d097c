/* session_document.c - sessions and contexts as JSON. */
#include "engine/session/branch.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"
#include "json/writer.h"

#include <string.h>

static const char *const state_names[SESSION_STATES] = { "starting", "running", "paused", "ended" };

static int64_t moment_of(deadline end)
{
    return end.at_ms ? wall_clock_ms() + deadline_left_ms(end) : 0;
}

static void write_end(const struct session *session, struct bytes *out)
{
    json_key(out, "ended");
    if (session->state != SESSION_ENDED) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_string_field(out, "why", session_end_name(session->end));
    json_string_field(out, "message", session->why.text);
    json_moment_field(out, "ended_at", session->ended_ms);
    json_string_field(out, "kept", session_end_kept(session->end));
    json_close(out, '}');
}

static void write_usage(struct session *session, struct bytes *out)
{
    if (session->sandbox)
        counters_read(sandbox_groups(session->sandbox), &session->counters);
    struct session_usage usage = { 0 };
    if (!session_usage_is_withheld(session))
        usage = session_usage(session);
    json_open_field(out, "usage", '{');
    json_count_field(out, "cpu_ms", usage.cpu_us / 1000);
    json_count_field(out, "memory_peak_bytes", usage.memory_peak_bytes);
    json_count_field(out, "processes_peak", usage.processes_peak);
    json_count_field(out, "cells", session->cells);
    json_close(out, '}');
}

static void write_origin(const struct session *session, struct bytes *out)
{
    static const struct bytes nothing;
    bool is_branch = session->parent[0] != '\0';
    json_string_field(out, "parent", is_branch ? session->parent : NULL);
    json_key(out, "branched_from");
    if (!is_branch) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_string_field(out, "session", session->parent);
    json_string_field(out, "context", session->parent_context);
    json_string_field(out, "checkpoint",
                      session->parent_checkpoint[0] ? session->parent_checkpoint : NULL);
    json_key(out, "not_carried");
    json_texts(out, session_usage_is_withheld(session) ? &nothing : &session->not_carried);
    json_close(out, '}');
}

/* The languages that its contexts may have. */
static void write_languages(const struct session *session, struct bytes *out)
{
    const struct template *template = session->plan.template;
    json_open_field(out, "languages", '[');
    for (size_t i = 0; i < template->language_count; i++) {
        const char *name = template->languages[i].name;
        if (context_kind_of(name) && policy_allows_language(session->plan.policy, name))
            json_string(out, name);
    }
    json_close(out, ']');
}

void context_write(const struct context *context, struct bytes *out)
{
    static const char *const names[CONTEXT_STATES] = { "cold", "starting", "idle", "busy" };
    json_open(out, '{');
    json_string_field(out, "id", context->id);
    json_string_field(out, "language", context->language->name);
    json_string_field(out, "cwd", context->folder);
    json_string_field(out, "state", names[context->state]);
    json_count_field(out, "cells", context->cells);
    json_count_field(out, "queued", context->queued);
    bool is_told = !context->end || !session_usage_is_withheld(context->session);
    json_string_field(out, "last_end", is_told ? context->end : "it ended");
    json_close(out, '}');
}

void session_write_contexts(const struct session *session, struct bytes *out)
{
    json_open(out, '[');
    for (const struct context *context = session->contexts; context; context = context->next)
        context_write(context, out);
    json_close(out, ']');
}

void session_write(struct session *session, struct bytes *out)
{
    bool is_paused = session->state == SESSION_PAUSED;
    bool is_counted = session->state != SESSION_ENDED && !is_paused; /* its deadlines count */
    json_open(out, '{');
    json_string_field(out, "id", session->id);
    json_string_field(out, "state",
                      state_names[branch_is_fixed(session) ? SESSION_RUNNING : session->state]);
    json_moment_field(out, "created_at", session->created_ms);
    json_moment_field(out, "expires_at", is_counted ? moment_of(session->age_ends) : 0);
    json_moment_field(out, "idle_at",
                      is_counted && session->holds == 0 ? moment_of(session->idle_ends) : 0);
    json_moment_field(out, "paused_at", is_paused ? session->paused_ms : 0);
    json_string_field(out, "held_by", session_held_by(session));
    json_string_field(out, "paused_for",
                      !is_paused             ? NULL
                      : session->is_over_day ? "cpu_seconds_per_day"
                                             : "request");
    json_key(out, "idle_seconds");
    if (session->idle_ms > 0)
        bytes_print(out, "%llu.%03llu", (unsigned long long) (session->idle_ms / 1000),
                    (unsigned long long) (session->idle_ms % 1000));
    else /* it ended under an earlier daemon */
        bytes_print(out, "null");
    write_end(session, out);
    write_origin(session, out);
    json_key(out, "metadata");
    const char *metadata =
        session->metadata
            ? json_object_to_json_string_ext(session->metadata, JSON_C_TO_STRING_PLAIN)
            : "{}";
    json_raw(out, metadata, strlen(metadata));
    json_key(out, "contexts");
    session_write_contexts(session, out);
    write_usage(session, out);
    if (session->plan.policy)
        write_languages(session, out);
    if (session->plan.policy)
        result_write_place(&session->plan, session->walls, session->degraded, out);
    json_close(out, '}');
}
