/* network_set.c - see network_set.h. */
#include "policy/network_set.h"

#include "base/cleanup.h"
#include "policy/network_file.h"
#include "policy/search_path.h"

#include <stdio.h>
#include <string.h>

static int read_variables(const struct yaml *yaml, const struct yaml_node *value,
                          struct network_set *set, error *err)
{
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "env is a mapping; write {NAME: value}");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *text = yaml_next(yaml, key);
        struct policy_variable *variable = &set->variables[set->variable_count];
        if (set->variable_count == POLICY_VARIABLES_MAX)
            return yaml_fail(yaml, key, err, "more than %d variables; remove some",
                             POLICY_VARIABLES_MAX);
        if (key->kind != YAML_TEXT || text->kind != YAML_TEXT ||
            key->length >= sizeof variable->name || text->length >= sizeof variable->value)
            return yaml_fail(yaml, key, err, "no variable; write NAME: value");
        if (policy_check_variable(key->text, text->text, err) < 0)
            return yaml_under(yaml, key, err);
        memcpy(variable->name, key->text, key->length + 1);
        memcpy(variable->value, text->text, text->length + 1);
        set->variable_count++;
        key = yaml_next(yaml, text);
    }
    return 0;
}

static int read_key(const struct yaml *yaml, const struct yaml_node *key,
                    const struct yaml_node *value, struct network_set *set, error *err)
{
    const char *name = key->kind == YAML_TEXT ? key->text : "";
    bool is_text = value->kind == YAML_TEXT && !value->empty;
    if (strcmp(name, "allow") == 0)
        return network_file_read_allow(yaml, value, &set->route, err);
    if (strcmp(name, "env") == 0)
        return read_variables(yaml, value, set, err);
    if (strcmp(name, "name") == 0 && is_text && value->length < sizeof set->name)
        memcpy(set->name, value->text, value->length + 1);
    else if (strcmp(name, "description") == 0 && is_text && value->length < sizeof set->description)
        memcpy(set->description, value->text, value->length + 1);
    else
        return yaml_fail(yaml, key, err,
                         "unknown key or wrong value; keys of a set are name, description, allow, "
                         "env");
    return 0;
}

static int read_set(const struct yaml *yaml, const char *name, struct network_set *set, error *err)
{
    const struct yaml_node *root = &yaml->nodes[0];
    memset(set, 0, sizeof *set); /* a compound literal would be too large for the stack */
    if (root->kind != YAML_MAPPING)
        return yaml_fail(yaml, root, err, "a set is a mapping; write name: %s", name);
    for (const struct yaml_node *key = yaml_first(yaml, root); key;) {
        const struct yaml_node *value = yaml_next(yaml, key);
        if (read_key(yaml, key, value, set, err) < 0)
            return -1;
        key = yaml_next(yaml, value);
    }
    if (strcmp(set->name, name) != 0)
        return yaml_fail(yaml, root, err, "the name differs from the file's; write name: %s", name);
    if (set->route.count == 0)
        return yaml_fail(yaml, root, err, "the set allows nothing; write allow: [HOST]");
    return 0;
}

int network_set_load(const char *path, const char *name, struct network_set *ret_set, error *err)
{
    char label[PATH_MAX];
    char file[NETWORK_SET_NAME_SIZE + 8];
    auto_text text = NULL;
    size_t length = 0;
    auto_yaml yaml = { 0 };
    (void) snprintf(file, sizeof file, "sets/%s", name);
    auto_fd fd = search_path_open(path, file, "set", label, err);
    if (fd < 0 || search_path_read(fd, label, &text, &length, err) < 0 ||
        yaml_init(&yaml, label, text, length, err) < 0)
        return -1;
    return read_set(&yaml, name, ret_set, err);
}

int network_set_add(const struct network_set *set, unsigned index, struct network_policy *policy,
                    error *err)
{
    uint16_t ports[NETWORK_PORTS_MAX];
    if (policy->count + set->route.count > NETWORK_RULES_MAX)
        return fail(err, ERR_BAD_REQUEST, "with set %s there are more than %d rules; remove some",
                    set->name, NETWORK_RULES_MAX);
    for (unsigned i = 0; i < set->route.count; i++) {
        struct network_rule *rule = &policy->rules[policy->count++];
        *rule = set->route.rules[i];
        rule->from_set = index + 1;
    }
    if (!network_policy_has_all_ports(policy, ports))
        return fail(err, ERR_BAD_REQUEST, "with set %s there are more than %d ports; use fewer",
                    set->name, NETWORK_PORTS_MAX);
    return 0;
}
