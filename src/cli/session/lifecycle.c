/* lifecycle.c - makes, lists, pauses and ends sessions (`glovebox session new` to `kill`), and
 * finds the session that a word means. */
#include "cli/session/session.h"

#include "base/clock.h"
#include "base/timestamp.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* Calls `each` for every session until it returns true. */
static int walk_sessions(const struct session_arguments *arguments, const char *state,
                         bool (*each)(void *context, json_object *session), void *context,
                         error *err)
{
    char cursor[SESSION_NAME_SIZE] = "";
    bool is_done = false;
    do {
        auto_text json = NULL;
        int32_t code = glb_session_list(arguments->client, state, cursor[0] ? cursor : NULL, &json);
        if (code != GLB_OK)
            return library_failed(code, err);
        auto_json root = json_tokener_parse(json);
        json_object *list = list_of(root, "sessions");
        for (size_t at = 0; list && !is_done && at < json_object_array_length(list); at++)
            is_done = each(context, json_object_array_get_idx(list, at));
        (void) snprintf(cursor, sizeof cursor, "%s", answer_text(root, "next_cursor"));
    } while (cursor[0] && !is_done);
    return 0;
}

struct search {
    const char *word;
    char *name;
    unsigned found;
};

static bool compare_beginning(void *context, json_object *session)
{
    struct search *search = context;
    const char *id = answer_text(session, "id");
    const char *word = search->word;
    bool begins = strncmp(id, word, strlen(word)) == 0 ||
                  (strlen(id) > 4 && strncmp(id + 4, word, strlen(word)) == 0);
    if (begins && search->found++ == 0)
        (void) snprintf(search->name, SESSION_NAME_SIZE, "%s", id);
    return search->found > 1;
}

int session_named(const struct session_arguments *arguments, const char *word,
                  char name[SESSION_NAME_SIZE], error *err)
{
    enum { WHOLE = 36 };
    struct search search = { .word = word, .name = name };
    if (strlen(word) == WHOLE && strncmp(word, "ses_", 4) == 0) {
        (void) snprintf(name, SESSION_NAME_SIZE, "%s", word);
        return 0;
    }
    if (*word && walk_sessions(arguments, NULL, compare_beginning, &search, err) < 0)
        return -1;
    if (search.found == 1)
        return 0;
    return fail(err, ERR_NOT_FOUND, "%s begins with '%.40s'; see glovebox session list",
                search.found ? "more than one session" : "no session that is alive", word);
}

int session_begin(const struct session_arguments *arguments, char **ret_json, error *err)
{
    glb_session_options options = { .policy = arguments->policy, /* NULL: the daemon's default */
                                    .template_name = arguments->template_name,
                                    .limits = arguments->limits,
                                    .limit_count = arguments->limit_count,
                                    .environment = arguments->variables,
                                    .metadata = arguments->labels,
                                    .folder = arguments->folder,
                                    .idle_ms = arguments->idle_ms,
                                    .lifetime_ms = arguments->lifetime_ms };
    return library_failed(glb_session_new(arguments->client, &options, sizeof options, ret_json),
                          err);
}

int session_new(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    if (session_begin(arguments, &json, err) < 0)
        return -1;
    return session_answered(arguments, GLB_OK, json, true, err);
}

/* Writes the time until an unused session ends, as in "9 min", or "-" if it does not. */
static const char *time_left(json_object *session, char text[16])
{
    int64_t idle_ms = timestamp_read(answer_text(session, "idle_at"));
    if (idle_ms == 0)
        return "-";
    int left = (int) ((idle_ms - wall_clock_ms()) / 1000);
    bool is_short = left < 120;
    (void) snprintf(text, 16, "%d %s", is_short ? left : (left + 59) / 60, is_short ? "s" : "min");
    return text;
}

static void print_session(json_object *session)
{
    char line[512], shown[2048], left[16];
    json_object *ended = json_member(session, "ended"),
                *metadata = json_member(session, "metadata");
    const char *parent = answer_text(session, "parent");
    (void) snprintf(line, sizeof line, "%-36s  %-8s  %-10s  %-24s  %-8s  %-12.12s  %s%s%.200s",
                    answer_text(session, "id"), answer_text(session, "state"),
                    answer_text(json_member(session, "policy"), "name"),
                    answer_text(session, "created_at"), time_left(session, left),
                    *parent ? parent : "-", answer_text(ended, "why"),
                    ended && metadata && json_object_object_length(metadata) > 0 ? " " : "",
                    metadata && json_object_object_length(metadata) > 0
                        ? json_object_to_json_string_ext(metadata, JSON_C_TO_STRING_PLAIN)
                        : "");
    shown[line_add_harmless(shown, 0, sizeof shown, line)] = '\0';
    print_filtered(shown);
}

/* Called after the daemon's answer, so that a refusal prints no empty table. */
static void print_heads(bool is_of_all)
{
    (void) printf("%-36s  %-8s  %-10s  %-24s  %-8s  %-12s  %s\n", "ID", "STATE", "POLICY",
                  "CREATED", "ENDS IN", "PARENT", is_of_all ? "ENDED, METADATA" : "METADATA");
}

struct listing {
    const struct session_arguments *arguments;
    bool has_begun;
};

static bool has_labels(const struct session_arguments *arguments, json_object *session)
{
    json_object *metadata = json_member(session, "metadata");
    for (size_t i = 0; i < arguments->label_count; i++) {
        const char *equals = strchr(arguments->labels[i], '=');
        char name[128];
        (void) snprintf(name, sizeof name, "%.*s",
                        equals ? (int) (equals - arguments->labels[i]) : 0, arguments->labels[i]);
        if (!metadata || !equals || strcmp(answer_text(metadata, name), equals + 1) != 0)
            return false;
    }
    return true;
}

static bool print_each(void *context, json_object *session)
{
    struct listing *listing = context;
    if (!has_labels(listing->arguments, session))
        return false;
    if (listing->arguments->json)
        (void) fputs(listing->has_begun ? "," : "[", stdout);
    else if (!listing->has_begun)
        print_heads(listing->arguments->state);
    listing->has_begun = true;
    if (listing->arguments->json)
        print_json_line(session);
    else
        print_session(session);
    return false;
}

int session_list(struct session_arguments *arguments, error *err)
{
    struct listing listing = { .arguments = arguments };
    if (arguments->all)
        arguments->state = "all";
    if (walk_sessions(arguments, arguments->state, print_each, &listing, err) < 0)
        return -1;
    if (arguments->json)
        (void) puts(listing.has_begun ? "]" : "[]");
    else if (!listing.has_begun)
        print_heads(arguments->state);
    return 0;
}

static void print_members(json_object *session)
{
    json_object_object_foreach(session, key, value)
    {
        if (value)
            print_member(key, value);
    }
}

int session_show(struct session_arguments *arguments, error *err)
{
    auto_text json = NULL;
    int32_t code = glb_session_get(arguments->client, arguments->session, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    auto_json root = json_tokener_parse(json);
    if (arguments->json || !root)
        print_filtered(json);
    else
        print_members(root);
    return 0;
}

int session_pause(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    int32_t code =
        glb_session_pause(arguments->client, arguments->session, arguments->files_only, &json);
    return session_answered(arguments, code, json, false, err);
}

int session_resume(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    int32_t code = glb_session_resume(arguments->client, arguments->session, &json);
    return session_answered(arguments, code, json, false, err);
}

/* If one of the sessions does not exist it goes on with the others, as rm does. */
int session_kill(struct session_arguments *arguments, error *err)
{
    int status = 0;
    auto_json ended = json_object_new_array();
    for (int at = 0; at < arguments->count; at++) {
        char name[SESSION_NAME_SIZE];
        auto_text json = NULL;
        if (session_named(arguments, arguments->words[at], name, err) < 0 ||
            library_failed(glb_session_kill(arguments->client, name, &json), err) < 0)
            status = complain_of(err);
        else
            (void) json_object_array_add(ended, json_tokener_parse(json));
    }
    if (arguments->json)
        print_json_line(ended);
    return status;
}
