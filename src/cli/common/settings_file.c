/* settings_file.c - see settings_file.h. */
#include "cli/common/settings_file.h"

#include "cli/commands.h"
#include "policy/yaml.h"

#include <stdio.h>

static int read_entry(struct settings *settings, const struct yaml *yaml,
                      const struct yaml_node *key, uint64_t *seen, error *err)
{
    const struct yaml_node *value = yaml_next(yaml, key);
    enum setting_id id = key->kind == YAML_TEXT ? setting_find(key->text) : SETTINGS;
    char origin[SETTING_ORIGIN_SIZE];
    if (id == SETTINGS)
        return yaml_fail(yaml, key, err,
                         "nothing is called '%.40s' here; glovebox config show lists "
                         "what is",
                         key->kind == YAML_TEXT ? key->text : "");
    if (*seen & UINT64_C(1) << id)
        return yaml_fail(yaml, key, err, "'%s' is there twice; keep one", key->text);
    *seen |= UINT64_C(1) << id;
    if (value->kind != YAML_TEXT)
        return yaml_fail(yaml, value, err, "'%s' takes one value", key->text);
    (void) snprintf(origin, sizeof origin, "%.*s:%d:%d", 120, yaml->label, value->line,
                    value->column);
    if (settings_set(settings, id, value->text, origin, err) < 0)
        return yaml_under(yaml, value, err);
    return 0;
}

/* True for the file that comes with glovebox, in which every setting is a comment. */
static bool has_comments_only(const char *text, size_t length)
{
    const char *end = text + length;
    for (bool is_comment = false; text < end; text++) {
        is_comment = (is_comment || *text == '#') && *text != '\n';
        if (!is_comment && *text != ' ' && *text != '\r' && *text != '\n')
            return false;
    }
    return true;
}

int settings_read(struct settings *settings, const char *label, const char *text, size_t length,
                  error *err)
{
    auto_yaml yaml = { 0 };
    uint64_t seen = 0;
    int result = 0;
    _Static_assert(SETTINGS <= 64, "a bit for each");
    if (has_comments_only(text, length))
        return 0;
    if (yaml_init(&yaml, label, text, length, err) < 0)
        return -1;
    const struct yaml_node *root = &yaml.nodes[0];
    if (root->kind != YAML_MAPPING)
        result = yaml_fail(&yaml, root, err,
                           "the file holds no settings; write \"name: value\" on each line");
    const struct yaml_node *key = result == 0 ? yaml_first(&yaml, root) : NULL;
    for (error one; key; key = yaml_next(&yaml, yaml_next(&yaml, key))) {
        if (read_entry(settings, &yaml, key, &seen, &one) == 0)
            continue;
        if (result < 0)
            (void) complain_of(err); /* the caller reports the last one */
        *err = one;
        result = -1;
    }
    return result;
}
