/* policy_file.c - the keys of a policy file, as a table. Other keys are refused. */
#include "policy/policy_file.h"

#include "base/table.h"
#include "base/text.h"
#include "model/languages.h"
#include "policy/network_file.h"

#include <stdio.h>
#include <string.h>

typedef int read_value(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_file *file, error *err);

static read_value read_name, read_extends, read_description, read_template, read_languages,
    read_limits, read_maximum, read_network, read_sessions, read_precheck, read_approval,
    read_expect, read_env;

static const struct key {
    const char *name;
    read_value *read;
} keys[POLICY_KEYS] = {
    [POLICY_KEY_NAME] = { "name", read_name },
    [POLICY_KEY_EXTENDS] = { "extends", read_extends },
    [POLICY_KEY_DESCRIPTION] = { "description", read_description },
    [POLICY_KEY_TEMPLATE] = { "template", read_template },
    [POLICY_KEY_LANGUAGES] = { "languages", read_languages },
    [POLICY_KEY_LIMITS] = { "limits", read_limits },
    [POLICY_KEY_MAXIMUM] = { "maximum", read_maximum },
    [POLICY_KEY_NETWORK] = { "network", read_network },
    [POLICY_KEY_SESSIONS] = { "sessions", read_sessions },
    [POLICY_KEY_PRECHECK] = { "precheck", read_precheck },
    [POLICY_KEY_APPROVAL] = { "approval", read_approval },
    [POLICY_KEY_EXPECT] = { "expect", read_expect },
    [POLICY_KEY_ENV] = { "env", read_env },
};

/* Reads a text of at most size - 1 bytes; a key without a value is refused. */
static int read_text(const struct yaml *yaml, const struct yaml_node *value, char *text,
                     size_t size, error *err)
{
    if (value->kind != YAML_TEXT)
        return yaml_fail(yaml, value, err,
                         "a list or a mapping where a text belongs; write a text");
    if (value->empty)
        return yaml_fail(yaml, value, err, "the key has no value; write one or remove the key");
    if (value->length >= size)
        return yaml_fail(yaml, value, err, "longer than %zu bytes; shorten it", size - 1);
    memcpy(text, value->text, value->length + 1);
    return 0;
}

static int read_policy_name(const struct yaml *yaml, const struct yaml_node *value, char *name,
                            error *err)
{
    char text[POLICY_NAME_SIZE];
    if (read_text(yaml, value, text, sizeof text, err) < 0)
        return -1;
    if (!policy_name_is_valid(text))
        return yaml_fail(yaml, value, err, "'%s' is no name; use small letters, digits and dashes",
                         text);
    memcpy(name, text, sizeof text);
    return 0;
}

static int read_name(const struct yaml *yaml, const struct yaml_node *value,
                     struct policy_file *file, error *err)
{
    file->name_place = (struct place){ value->line, value->column };
    return read_policy_name(yaml, value, file->name, err);
}

static int read_extends(const struct yaml *yaml, const struct yaml_node *value,
                        struct policy_file *file, error *err)
{
    file->extends_place = (struct place){ value->line, value->column };
    return read_policy_name(yaml, value, file->extends, err);
}

static int read_template(const struct yaml *yaml, const struct yaml_node *value,
                         struct policy_file *file, error *err)
{
    return read_policy_name(yaml, value, file->template, err);
}

static int read_description(const struct yaml *yaml, const struct yaml_node *value,
                            struct policy_file *file, error *err)
{
    return read_text(yaml, value, file->description, sizeof file->description, err);
}

static int read_languages(const struct yaml *yaml, const struct yaml_node *value,
                          struct policy_file *file, error *err)
{
    if (value->kind != YAML_SEQUENCE || value->children == 0)
        return yaml_fail(yaml, value, err, "languages is a list; write [python, bash]");
    if (value->children > POLICY_LANGUAGES_MAX)
        return yaml_fail(yaml, value, err, "more than %d languages; remove some",
                         POLICY_LANGUAGES_MAX);
    for (const struct yaml_node *item = yaml_first(yaml, value); item;
         item = yaml_next(yaml, item)) {
        char *language = file->languages[file->language_count];
        if (read_text(yaml, item, language, POLICY_LANGUAGE_SIZE, err) < 0)
            return -1;
        if (!policy_name_is_valid(language))
            return yaml_fail(yaml, item, err,
                             "'%s' is no language; use small letters, digits and dashes", language);
        /* The name that templates use; it is not longer than the others of a language. */
        const char *usual = language_name(language);
        if (usual != language)
            (void) snprintf(language, POLICY_LANGUAGE_SIZE, "%s", usual);
        for (size_t i = 0; i < file->language_count; i++)
            if (strcmp(file->languages[i], language) == 0)
                return yaml_fail(yaml, item, err, "'%s' is listed twice; remove one", language);
        file->language_count++;
    }
    return 0;
}

/* Finds a limit by its policy key; not by its flag or JSON name, which are spelled otherwise. */
static enum limit_id find_limit(const char *name)
{
    for_each(row, limit_rows)
        if (strcmp(row->name, name) == 0)
            return (enum limit_id)(row - limit_rows);
    return LIMITS;
}

static int fail_unknown_limit(const struct yaml *yaml, const struct yaml_node *key, error *err)
{
    char names[200] = "";
    for_each(row, limit_rows)
        (void) text_list(names, sizeof names, row->name);
    return yaml_fail(yaml, key, err, "no limit is named '%.*s'; limits are %s",
                     text_head(key->text, 24), key->text, names);
}

static int read_one_limit(const struct yaml *yaml, const struct yaml_node *key,
                          const struct yaml_node *value, struct stated_limits *limits, error *err)
{
    if (key->kind != YAML_TEXT)
        return yaml_fail(yaml, key, err, "a key is a word; write the name of a limit");
    enum limit_id id = find_limit(key->text);
    if (id == LIMITS)
        return fail_unknown_limit(yaml, key, err);
    if (limits->given & (UINT64_C(1) << id))
        return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", key->text);
    char text[40];
    uint64_t amount;
    if (read_text(yaml, value, text, sizeof text, err) < 0)
        return -1;
    if (limit_parse(id, text, &amount, err) < 0 || limit_set(&limits->values, id, amount, err) < 0)
        return yaml_under(yaml, value, err);
    limits->given |= UINT64_C(1) << id;
    limits->places[id] = (struct place){ value->line, value->column };
    return 0;
}

static int read_limit_table(const struct yaml *yaml, const struct yaml_node *value,
                            struct stated_limits *limits, error *err)
{
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "no mapping; write {wall: 30s, memory: 512MiB}");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *amount = yaml_next(yaml, key);
        if (read_one_limit(yaml, key, amount, limits, err) < 0)
            return -1;
        key = yaml_next(yaml, amount);
    }
    return 0;
}

static int read_limits(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_file *file, error *err)
{
    return read_limit_table(yaml, value, &file->limits, err);
}

static int read_maximum(const struct yaml *yaml, const struct yaml_node *value,
                        struct policy_file *file, error *err)
{
    return read_limit_table(yaml, value, &file->maximum, err);
}

/* Reads none, loopback, or a mapping; anything else is refused. */
static int read_network(const struct yaml *yaml, const struct yaml_node *value,
                        struct policy_file *file, error *err)
{
    if (value->kind == YAML_TEXT && strcmp(value->text, "none") == 0) {
        file->network = POLICY_NETWORK_NONE;
        return 0;
    }
    if (value->kind == YAML_TEXT && strcmp(value->text, "loopback") == 0) {
        file->network = POLICY_NETWORK_LOOPBACK;
        return 0;
    }
    if (value->kind == YAML_MAPPING) {
        if (network_file_read(yaml, value, &file->route, err) < 0)
            return -1;
        bool is_open = file->route.count > 0 || file->route.set_count > 0;
        file->network = is_open ? POLICY_NETWORK_RULES : POLICY_NETWORK_NONE;
        return 0;
    }
    return yaml_fail(yaml, value, err,
                     "network has a wrong value; write network: none, loopback or {allow: [...]}");
}

/* A row for each bound; its value is written like that of a limit of the same kind. */
static const struct session_bound {
    const char *name;
    enum limit_id written_as;
    uint64_t min, max;
} session_bounds[SESSIONS_BOUNDS] = {
    [SESSIONS_MAX] = { "max", LIMIT_processes, 1, 4096 },
    [SESSIONS_IDLE] = { "idle", LIMIT_wall, 1000, UINT64_C(366) * 24 * 3600 * 1000 },
    [SESSIONS_AGE] = { "age", LIMIT_wall, 1000, UINT64_C(366) * 24 * 3600 * 1000 },
    [SESSIONS_MEMORY] = { "memory", LIMIT_memory, UINT64_C(16) << 20, UINT64_C(1) << 40 },
    [SESSIONS_CHECKPOINTS] = { "checkpoints", LIMIT_processes, 0, 16 },
    [SESSIONS_CHECKPOINTS_SIZE] = { "checkpoints_size", LIMIT_memory, UINT64_C(1) << 20,
                                    UINT64_C(1) << 40 },
};

void policy_bound_print(enum policy_session_bound bound, uint64_t value, char *text, size_t size)
{
    int used = snprintf(text, size, "%s ", session_bounds[bound].name);
    if (used > 0 && (size_t) used < size)
        limit_print(session_bounds[bound].written_as, value, text + used, size - (size_t) used);
}

static int read_session_bound(const struct yaml *yaml, const struct yaml_node *key,
                              const struct yaml_node *value, struct policy_sessions *sessions,
                              error *err)
{
    char text[40];
    for (unsigned i = 0; i < SESSIONS_BOUNDS; i++) {
        const struct session_bound *bound = &session_bounds[i];
        if (key->kind != YAML_TEXT || strcmp(bound->name, key->text) != 0)
            continue;
        if (sessions->given & (UINT64_C(1) << i))
            return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", key->text);
        if (read_text(yaml, value, text, sizeof text, err) < 0)
            return -1;
        if (limit_parse(bound->written_as, text, &sessions->values[i], err) < 0 ||
            sessions->values[i] < bound->min || sessions->values[i] > bound->max)
            return yaml_fail(
                yaml, value, err,
                "sessions.%s cannot be '%.20s'; write a number for max and checkpoints, 10m "
                "for idle and age, 1GiB for memory and checkpoints_size, within bounds",
                bound->name, text);
        sessions->given |= UINT64_C(1) << i;
        return 0;
    }
    return yaml_fail(
        yaml, key, err,
        "sessions has max, idle, age, memory, checkpoints, checkpoints_size; remove the others");
}

static int read_sessions(const struct yaml *yaml, const struct yaml_node *value,
                         struct policy_file *file, error *err)
{
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "sessions is a mapping; write {max: 16, idle: 10m}");
    file->sessions_place = (struct place){ value->line, value->column };
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *bound = yaml_next(yaml, key);
        if (read_session_bound(yaml, key, bound, &file->sessions, err) < 0)
            return -1;
        key = yaml_next(yaml, bound);
    }
    return 0;
}

static int read_precheck(const struct yaml *yaml, const struct yaml_node *value,
                         struct policy_file *file, error *err)
{
    file->precheck_place = (struct place){ value->line, value->column };
    return precheck_file_read(yaml, value, &file->precheck, &file->precheck_lines, err);
}

static int read_approval(const struct yaml *yaml, const struct yaml_node *value,
                         struct policy_file *file, error *err)
{
    return approval_file_read(yaml, value, &file->approval, &file->approval_lines, err);
}

static int read_expect(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_file *file, error *err)
{
    file->expect_place = (struct place){ value->line, value->column };
    return expect_file_read(yaml, value, &file->expect, &file->on_fault_line, err);
}

static int read_one_variable(const struct yaml *yaml, const struct yaml_node *key,
                             const struct yaml_node *value, struct policy_file *file, error *err)
{
    struct policy_variable variable = { 0 };
    if (read_text(yaml, key, variable.name, sizeof variable.name, err) < 0)
        return -1;
    bool is_empty_text = value->kind == YAML_TEXT && !value->empty && value->length == 0;
    if (!is_empty_text && read_text(yaml, value, variable.value, sizeof variable.value, err) < 0)
        return -1;
    if (policy_check_variable(variable.name, variable.value, err) < 0)
        return yaml_under(yaml, key, err);
    for (size_t i = 0; i < file->variable_count; i++)
        if (strcmp(file->variables[i].name, variable.name) == 0)
            return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", variable.name);
    if (file->variable_count >= POLICY_VARIABLES_MAX)
        return yaml_fail(yaml, key, err, "more than %d variables; remove some",
                         POLICY_VARIABLES_MAX);
    file->variables[file->variable_count++] = variable;
    return 0;
}

static int read_env(const struct yaml *yaml, const struct yaml_node *value,
                    struct policy_file *file, error *err)
{
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "env is a mapping; write {NAME: value}");
    for (const struct yaml_node *name = yaml_first(yaml, value); name;) {
        const struct yaml_node *text = yaml_next(yaml, name);
        if (read_one_variable(yaml, name, text, file, err) < 0)
            return -1;
        name = yaml_next(yaml, text);
    }
    return 0;
}

static const struct key *find_key(const struct yaml_node *name)
{
    if (name->kind == YAML_TEXT)
        for_each(key, keys)
            if (strcmp(key->name, name->text) == 0)
                return key;
    return NULL;
}

static int fail_unknown_key(const struct yaml *yaml, const struct yaml_node *name, error *err)
{
    char names[160] = "";
    for_each(key, keys)
        (void) text_list(names, sizeof names, key->name);
    return yaml_fail(yaml, name, err, "unknown key '%.*s'; keys are %s", text_head(name->text, 24),
                     name->text, names);
}

int policy_file_read(const struct yaml *yaml, struct policy_file *ret_file, error *err)
{
    const struct yaml_node *root = &yaml->nodes[0];
    if (root->kind != YAML_MAPPING)
        return yaml_fail(yaml, root, err, "no mapping; begin with a line 'name: NAME'");

    *ret_file = (struct policy_file){ 0 };
    bool seen[COUNT_OF(keys)] = { false };
    for (const struct yaml_node *name = yaml_first(yaml, root); name;) {
        const struct yaml_node *value = yaml_next(yaml, name);
        const struct key *key = find_key(name);
        if (!key)
            return fail_unknown_key(yaml, name, err);
        if (seen[key - keys])
            return yaml_fail(yaml, name, err, "'%s' is there twice; remove one", key->name);
        seen[key - keys] = true;
        ret_file->key_lines[key - keys] = name->line;
        if (key->read(yaml, value, ret_file, err) < 0)
            return -1;
        name = yaml_next(yaml, value);
    }
    if (!ret_file->name[0])
        return yaml_fail(yaml, root, err, "the policy has no name; write a line 'name: NAME'");
    return 0;
}
