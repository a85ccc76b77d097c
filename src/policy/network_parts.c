/* network_parts.c - see network_parts.h. */
#include "policy/network_parts.h"

#include "base/http_method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int network_read_number(const struct yaml *yaml, const struct yaml_node *value, unsigned long max,
                        unsigned long *ret_number, error *err)
{
    char *end = NULL;
    errno = 0;
    if (value->kind == YAML_TEXT && value->text[0] >= '0' && value->text[0] <= '9')
        *ret_number = strtoul(value->text, &end, 10);
    if (!end || *end || errno != 0 || *ret_number == 0 || *ret_number > max)
        return yaml_fail(yaml, value, err, "no number from 1 to %lu", max);
    return 0;
}

int network_read_methods(const struct yaml *yaml, const struct yaml_node *value,
                         struct network_item *item, error *err)
{
    item->has_methods = true;
    if (value->kind != YAML_SEQUENCE || value->children == 0)
        return yaml_fail(yaml, value, err, "methods is a list; write [GET, HEAD]");
    for (const struct yaml_node *name = yaml_first(yaml, value); name;
         name = yaml_next(yaml, name)) {
        uint32_t bit = name->kind == YAML_TEXT ? http_method_bit(name->text, name->length) : 0;
        if (bit == 0)
            return yaml_fail(yaml, name, err,
                             "no method; they are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        item->rule.methods |= bit;
    }
    return 0;
}

int network_read_paths(const struct yaml *yaml, const struct yaml_node *value,
                       struct network_item *item, error *err)
{
    item->paths = value;
    if (value->kind != YAML_SEQUENCE || value->children == 0)
        return yaml_fail(yaml, value, err, "paths is a list; write [\"/repos/\"]");
    for (const struct yaml_node *path = yaml_first(yaml, value); path; path = yaml_next(yaml, path))
        if (path->kind != YAML_TEXT || path->text[0] != '/' || path->length >= NETWORK_PATH_SIZE ||
            strpbrk(path->text, "%?#\\ "))
            return yaml_fail(yaml, path, err,
                             "a path begins with a slash, has no %%, ? or #, and at most %d bytes",
                             NETWORK_PATH_SIZE - 1);
    return 0;
}

int network_read_item(const struct yaml *yaml, const struct yaml_node *value,
                      const struct network_keys *keys, struct network_item *item, error *err)
{
    unsigned seen = 0;
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        unsigned index = 0;
        while (index < keys->count &&
               (key->kind != YAML_TEXT || strcmp(key->text, keys->list[index].name) != 0))
            index++;
        if (index == keys->count)
            return yaml_fail(yaml, key, err, "unknown key; keys are %s", keys->names);
        if (seen & (1U << index))
            return yaml_fail(yaml, key, err, "'%s' is there twice; remove one",
                             keys->list[index].name);
        seen |= 1U << index;
        if (keys->list[index].read(yaml, part, item, err) < 0)
            return -1;
        key = yaml_next(yaml, part);
    }
    return 0;
}

int network_add_rules(const struct yaml *yaml, const struct yaml_node *value,
                      const struct network_item *item, struct network_policy *policy, error *err)
{
    const struct yaml_node *path = item->paths ? yaml_first(yaml, item->paths) : NULL;
    do {
        if (policy->count == NETWORK_RULES_MAX)
            return yaml_fail(yaml, value, err, "more than %d rules (each path is one); remove some",
                             NETWORK_RULES_MAX);
        struct network_rule *rule = &policy->rules[policy->count++];
        *rule = item->rule;
        if (path)
            memcpy(rule->path, path->text, path->length + 1);
        path = path ? yaml_next(yaml, path) : NULL;
    } while (path);
    return 0;
}
