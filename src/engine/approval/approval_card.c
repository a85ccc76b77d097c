/* approval_card.c - see approval_card.h. The card has the request and its effect under the policy,
 * and no description by the asker. */
#include "engine/approval/approval_card.h"

#include "base/auto_free.h"
#include "base/table.h"
#include "base/utf8.h"
#include "engine/approval/approvals.h"
#include "engine/audit/audit_log.h"
#include "json/writer.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISPLAY_DATA_MAX = 256 * 1024, INPUTS_SHOWN_MAX = 256 * 1024, HIDDEN_MAX = 20 };

/* --- characters that are invisible or misleading ---------------------------------------------- */

/* Lists them by line, so that hidden characters are visible. */
static void write_hidden(const struct bytes *text, struct bytes *out)
{
    const unsigned char *at = (const unsigned char *) text->data;
    unsigned line = 1, count = 0;
    json_open_field(out, "hidden_characters", '[');
    for (size_t i = 0; i < text->size && count < HIDDEN_MAX;) {
        int size = utf8_character(at + i, text->size - i);
        uint32_t point = size > 0 ? utf8_code_point(at + i, size) : 0xFFFD;
        bool is_line_end = point == '\r' && i + 1 < text->size && at[i + 1] == '\n';
        if (utf8_is_hidden(point) && !is_line_end) {
            char name[16];
            (void) snprintf(name, sizeof name, "U+%04" PRIX32, point);
            json_open(out, '{');
            json_count_field(out, "line", line);
            json_string_field(out, "character", name);
            json_close(out, '}');
            count++;
        }
        line += point == '\n';
        i += size > 0 ? (size_t) size : 1;
    }
    json_close(out, ']');
}

/* --- inputs ----------------------------------------------------------------------------------- */

static void read_whole(const struct payload *content, struct bytes *out)
{
    unsigned char piece[3072];
    for (uint64_t at = 0; at < content->size;) {
        size_t got = payload_read(content, at, piece, sizeof piece);
        if (got == 0)
            break;
        bytes_add(out, piece, got);
        at += got;
    }
}

/* Its size and hash, and its text while there is room: `text` null means "not shown". */
static void write_content(const struct payload *content, size_t *room, struct bytes *out)
{
    char sha256[SHA256_TEXT_SIZE];
    auto_bytes whole = { 0 };
    read_whole(content, &whole);
    fact_hash(whole.data, whole.size, sha256);
    json_count_field(out, "bytes", whole.size);
    json_string_field(out, "sha256", sha256);
    json_key(out, "text");
    if (whole.size <= *room && utf8_is_valid(whole.data, whole.size)) {
        *room -= whole.size;
        json_text(out, whole.data, whole.size);
        write_hidden(&whole, out);
    } else {
        json_null(out);
    }
}

static void write_words(struct bytes *out, const char *key, const char *const *words, size_t count)
{
    json_open_field(out, key, '[');
    for (size_t i = 0; i < count; i++)
        json_string(out, words[i]);
    json_close(out, ']');
}

static int write_code(const struct run_request *request, size_t *room, struct bytes *out,
                      error *err)
{
    auto_bytes code = { 0 };
    if (!request->has_code) {
        json_null_field(out, "code");
        return 0;
    }
    if (request->code.size > DISPLAY_DATA_MAX)
        return fail(err, ERR_POLICY,
                    "this needs approval, and code of %" PRIu64 " bytes is too long for people to "
                    "read; %d are allowed",
                    request->code.size, DISPLAY_DATA_MAX);
    read_whole(&request->code, &code);
    *room -= code.size;
    json_key(out, "code");
    json_text(out, code.data, code.size);
    write_hidden(&code, out);
    return 0;
}

static void write_inputs(const struct run_request *request, size_t *room, struct bytes *out)
{
    json_key(out, "stdin");
    if (request->has_stdin) {
        json_open(out, '{');
        write_content(&request->stdin_content, room, out);
        json_close(out, '}');
    } else {
        json_null(out);
    }
    json_open_field(out, "files", '[');
    for (size_t i = 0; i < request->file_count; i++) {
        json_open(out, '{');
        json_string_field(out, "path", request->files[i].path);
        write_content(&request->files[i].content, room, out);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_open_field(out, "environment_names", '[');
    for (size_t i = 0; i < request->variable_count; i++)
        json_string(out, request->variables[i].name);
    json_close(out, ']');
}

/* --- what is requested, and what can leave ---------------------------------------------------- */

static void write_limits(const struct run *run, struct bytes *out)
{
    const struct limits *usual = &run->plan.policy->limits;
    json_open_field(out, "limits", '[');
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t granted = limit_get(&run->plan.limits, id);
        char text[32];
        json_open(out, '{');
        json_string_field(out, "name", row->name);
        limit_print(id, granted, text, sizeof text);
        json_string_field(out, "asked", text);
        limit_print(id, limit_get(usual, id), text, sizeof text);
        json_string_field(out, "usual", text);
        json_flag_field(out, "is_above", limit_exceeds(id, granted, limit_get(usual, id)));
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* An endpoint comes before its first rule: its URL, and its credentials. */
static void write_network(const struct run_spec *plan, struct bytes *out)
{
    const struct network_endpoint *told = NULL;
    json_open_field(out, "network", '[');
    for (unsigned i = 0; plan->network == POLICY_NETWORK_RULES && i < plan->route->count; i++) {
        const struct network_rule *rule = &plan->route->rules[i];
        const struct network_endpoint *endpoint = network_rule_endpoint(plan->route, rule);
        char text[NETWORK_RULE_TEXT];
        if (endpoint && endpoint != told) {
            network_endpoint_write(endpoint, text);
            json_string(out, text);
        }
        told = endpoint;
        network_rule_write(rule, text);
        json_string(out, text);
    }
    json_close(out, ']');
}

static void write_leaves(const struct run *run, struct bytes *out)
{
    const struct run_spec *plan = &run->plan;
    char output[32], artifacts[32], text[256];
    limit_print(LIMIT_output, run->plan.limits.output, output, sizeof output);
    limit_print(LIMIT_artifacts, run->plan.limits.artifacts, artifacts, sizeof artifacts);
    json_open_field(out, "leaves", '[');
    (void) snprintf(
        text, sizeof text,
        "to the asker: what it prints (%s are kept), and files of /workspace (at most %s)", output,
        artifacts);
    json_string(out, text);
    if (plan->network != POLICY_NETWORK_RULES) {
        json_string(out, "to the network: nothing");
    } else {
        char max[32] = "any amount";
        if (plan->route->sent > 0)
            limit_print(LIMIT_output, plan->route->sent, max, sizeof max);
        (void) snprintf(text, sizeof text,
                        "to the network: whatever it can read, to the places that are listed (%s)",
                        max);
        json_string(out, text);
    }
    json_close(out, ']');
}

int approval_card_write(const struct run *run, const struct run_request *request, uint32_t reasons,
                        struct bytes *out, error *err)
{
    const struct run_spec *plan = &run->plan;
    size_t room = DISPLAY_DATA_MAX + INPUTS_SHOWN_MAX;
    json_open(out, '{');
    json_string_field(out, "kind",
                      run->kind->is_cell           ? "cell"
                      : request->command_count > 0 ? "command"
                                                   : "run");
    json_string_field(out, "language", plan->language ? plan->language->name : NULL);
    if (write_code(request, &room, out, err) < 0)
        return -1;
    json_string_field(out, "filename", request->filename);
    write_words(out, "command", request->command, request->command_count);
    write_words(out, "args", request->arguments, request->argument_count);
    write_inputs(request, &room, out);
    approval_reasons_write(reasons, out);
    json_key(out, "checks");
    check_write(run->checks, out);
    json_string_field(out, "policy", plan->policy->name);
    json_string_field(out, "template", plan->template->name);
    write_limits(run, out);
    write_network(plan, out);
    write_leaves(run, out);
    json_close(out, '}');
    return 0;
}

/* --- the binding ------------------------------------------------------------------------------ */

static void add(crypto_generichash_state *state, const void *data, size_t size)
{
    uint64_t length = size;
    (void) crypto_generichash_update(state, (const unsigned char *) &length, sizeof length);
    (void) crypto_generichash_update(state, data, size);
}

static void add_text(crypto_generichash_state *state, const char *text)
{
    add(state, text ? text : "", text ? strlen(text) : 0);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *) left, *(const char *const *) right);
}

/* Keys are sorted, so that the order in which a request was written does not matter. */
static int add_request(crypto_generichash_state *state, struct json_object *object, error *err)
{
    size_t count = 0, size = (size_t) json_object_object_length(object);
    auto_free const char **names = (const char **) calloc(size + 1, sizeof *names);
    if (!names)
        return fail(err, ERR_SYSTEM, "no memory to bind an approval");
    json_object_object_foreach(object, key, unused)
    {
        (void) unused;
        if (strcmp(key, "approval") != 0)
            names[count++] = key;
    }
    qsort((void *) names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = json_object_object_get(object, names[i]);
        add_text(state, names[i]);
        add_text(state, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
    }
    return 0;
}

int approval_bind(const struct run *run, const struct run_request *request,
                  unsigned char ret_binding[32], error *err)
{
    crypto_generichash_state state;
    (void) crypto_generichash_init(&state, NULL, 0, 32);
    add_text(&state, "glovebox approval 1");
    add_text(&state, run->plan.policy->digest);
    add_text(&state, run->plan.template->digest);
    add_text(&state, run->session);
    add_text(&state, run->context);
    add_text(&state, run->plan.language ? run->plan.language->name : NULL);
    if (add_request(&state, request->json, err) < 0)
        return -1;
    (void) crypto_generichash_final(&state, ret_binding, 32);
    return 0;
}
