/* expect_file.c - reads
 *
 *     expect:
 *       on_fault: withhold
 *       stdout: {schema: {type: object}, max_bytes: 4096}
 *       secrets: forbid
 *
 * The YAML is converted to the JSON that a request would have, so that one function checks both.
 * The position in an error is converted back to the line of the YAML. */
#include "policy/expect_file.h"

#include "base/text.h"
#include "policy/expect.h"
#include "json/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char key_on_fault[] = "on_fault";

static const char *const on_fault_names[] = {
    [ON_FAULT_UNSAID] = "tell", [ON_FAULT_TELL] = "tell", [ON_FAULT_WITHHOLD] = "withhold"
};

const char *policy_on_fault_name(enum policy_on_fault on_fault)
{
    return on_fault_names[on_fault];
}

/* --- YAML as JSON ----------------------------------------------------------------------------- */

/* Is it a number of JSON (RFC 8259)? Other numbers and booleans of YAML stay strings. */
static bool is_number(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits);
    if (whole == 0 || (whole > 1 && *text == '0'))
        return false;
    text += whole;
    if (*text == '.') {
        size_t behind = strspn(text + 1, digits);
        if (behind == 0)
            return false;
        text += 1 + behind;
    }
    if (*text == 'e' || *text == 'E') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        size_t exponent = strspn(text, digits);
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == '\0';
}

/* An unquoted number, true, false or null becomes that of JSON, every other text a string. NULL is
 * also the value for `null`. */
static struct json_object *json_of_text(const struct yaml_node *node, bool *ret_failed)
{
    bool is_null = !node->quoted && strcmp(node->text, "null") == 0;
    bool is_true = !node->quoted && strcmp(node->text, "true") == 0;
    struct json_object *value = NULL;
    if (is_true || (!node->quoted && strcmp(node->text, "false") == 0))
        value = json_object_new_boolean(is_true);
    else if (!node->quoted && is_number(node->text))
        value = json_tokener_parse(node->text);
    else if (!is_null)
        value = json_object_new_string_len(node->text, (int) node->length);
    *ret_failed |= !value && !is_null;
    return value;
}

/* The nodes of a tree are in an array, each after its parent. */
struct conversion {
    const struct yaml *yaml;
    const struct yaml_node *root;
    unsigned from, end;              /* of its nodes */
    struct json_object **values;     /* of each node, until its parent's value has it */
    const struct yaml_node **sorted; /* keys of one mapping */
    bool failed;                     /* there was no memory */
};

static int by_text(const void *left, const void *right)
{
    const struct yaml_node *const *a = left, *const *b = right;
    return strcmp((*a)->text, (*b)->text);
}

static unsigned index_of(const struct conversion *conversion, const struct yaml_node *node)
{
    return (unsigned) (node - conversion->yaml->nodes) - conversion->from;
}

static struct json_object *take_value(const struct conversion *conversion,
                                      const struct yaml_node *node)
{
    struct json_object **at = &conversion->values[index_of(conversion, node)], *value = *at;
    *at = NULL;
    return value;
}

/* Adds members sorted by key, so that the same expectation always has the same digest. */
static int convert_mapping(struct conversion *conversion, const struct yaml_node *node,
                           struct json_object *object, error *err)
{
    const struct yaml *yaml = conversion->yaml;
    size_t count = 0;
    for (const struct yaml_node *key = yaml_first(yaml, node); key;
         key = yaml_next(yaml, yaml_next(yaml, key))) {
        bool is_ours = node == conversion->root && key->kind == YAML_TEXT &&
                       strcmp(key->text, key_on_fault) == 0;
        if (key->kind != YAML_TEXT || key->length != strlen(key->text))
            return yaml_fail(yaml, key, err, "a key is a text; write a word");
        if (!is_ours)
            conversion->sorted[count++] = key;
    }
    qsort((void *) conversion->sorted, count, sizeof(struct yaml_node *), by_text);
    for (size_t i = 0; i < count; i++) {
        const struct yaml_node *key = conversion->sorted[i];
        if (i > 0 && strcmp(conversion->sorted[i - 1]->text, key->text) == 0)
            return yaml_fail(yaml, key, err, "'%.*s' is there twice; remove one",
                             text_head(key->text, 40), key->text);
        struct json_object *value = take_value(conversion, yaml_next(yaml, key));
        if (json_object_object_add(object, key->text, value) < 0) {
            (void) json_object_put(value);
            conversion->failed = true;
        }
    }
    return 0;
}

static void convert_sequence(struct conversion *conversion, const struct yaml_node *node,
                             struct json_object *list)
{
    for (const struct yaml_node *item = yaml_first(conversion->yaml, node); item;
         item = yaml_next(conversion->yaml, item)) {
        struct json_object *value = take_value(conversion, item);
        if (json_object_array_add(list, value) < 0) {
            (void) json_object_put(value);
            conversion->failed = true;
        }
    }
}

static int convert_node(struct conversion *conversion, const struct yaml_node *node, error *err)
{
    struct json_object **value = &conversion->values[index_of(conversion, node)];
    int result = 0;
    if (node->kind == YAML_TEXT) {
        if (node->empty)
            return yaml_fail(conversion->yaml, node, err,
                             "the key has no value; write one or remove the key");
        *value = json_of_text(node, &conversion->failed);
        return 0;
    }
    *value = node->kind == YAML_MAPPING ? json_object_new_object() : json_object_new_array();
    if (!*value)
        conversion->failed = true;
    else if (node->kind == YAML_MAPPING)
        result = convert_mapping(conversion, node, *value, err);
    else
        convert_sequence(conversion, node, *value);
    return result;
}

/* Converts from the innermost node outwards. Gives  *ret_json, which the caller puts. */
static int convert(const struct yaml *yaml, const struct yaml_node *value,
                   struct json_object **ret_json, error *err)
{
    struct conversion conversion = { .yaml = yaml,
                                     .root = value,
                                     .from = (unsigned) (value - yaml->nodes),
                                     .end = value->next ? value->next : yaml->count };
    size_t count = conversion.end - conversion.from;
    int result = 0;
    conversion.values = (struct json_object **) calloc(count, sizeof(struct json_object *));
    conversion.sorted =
        (const struct yaml_node **) calloc(value->children + count, sizeof(struct yaml_node *));
    conversion.failed = !conversion.values || !conversion.sorted;
    for (unsigned i = conversion.end; result == 0 && !conversion.failed && i-- > conversion.from;)
        result = convert_node(&conversion, &yaml->nodes[i], err);
    if (result == 0 && conversion.failed)
        result = fail(err, ERR_INTERNAL, "out of memory");
    if (result == 0)
        *ret_json = take_value(&conversion, value);
    for (size_t i = 0; conversion.values && i < count; i++)
        (void) json_object_put(conversion.values[i]);
    free((void *) conversion.values);
    free((void *) conversion.sorted);
    return result;
}

/* --- positions of errors ---------------------------------------------------------------------- */

static const struct yaml_node *step_into(const struct yaml *yaml, const struct yaml_node *at,
                                         const char *name, size_t length)
{
    const struct yaml_node *child = yaml_first(yaml, at);
    if (at->kind == YAML_SEQUENCE) {
        char *behind;
        unsigned long index = strtoul(name, &behind, 10);
        while (child && index-- > 0)
            child = yaml_next(yaml, child);
        return behind == name + length ? child : NULL;
    }
    while (child && (strncmp(child->text, name, length) != 0 || child->text[length] != '\0'))
        child = yaml_next(yaml, yaml_next(yaml, child));
    return child ? yaml_next(yaml, child) : NULL;
}

/* The innermost node that an error names, such as "expect.artifacts[0].schema/properties/x: …". */
static const struct yaml_node *node_of(const struct yaml *yaml, const struct yaml_node *value,
                                       const char *complaint)
{
    static const char start[] = "expect";
    const char *at = complaint + (*complaint == '\'');
    const struct yaml_node *found = value;
    if (strncmp(at, start, sizeof start - 1) != 0)
        return value;
    at += sizeof start - 1;
    while ((*at == '.' || *at == '/' || *at == '[') && found->kind != YAML_TEXT) {
        size_t length = strcspn(at + 1, "./[]:;' ,");
        const struct yaml_node *inner = step_into(yaml, found, at + 1, length);
        if (!inner)
            break;
        found = inner;
        at += 1 + length;
        at += *at == ']';
    }
    return found;
}

/* --- the key ---------------------------------------------------------------------------------- */

static int read_on_fault(const struct yaml *yaml, const struct yaml_node *value,
                         struct policy_expect *expect, int *ret_line, error *err)
{
    for (const struct yaml_node *key = yaml_first(yaml, value), *word; key;
         key = yaml_next(yaml, word)) {
        word = yaml_next(yaml, key);
        if (key->kind != YAML_TEXT || strcmp(key->text, key_on_fault) != 0)
            continue;
        if (*ret_line > 0)
            return yaml_fail(yaml, key, err, "'on_fault' is there twice; remove one");
        bool is_text = word->kind == YAML_TEXT;
        *ret_line = key->line;
        expect->on_fault =
            is_text && strcmp(word->text, "withhold") == 0 ? ON_FAULT_WITHHOLD : ON_FAULT_TELL;
        if (expect->on_fault == ON_FAULT_TELL && (!is_text || strcmp(word->text, "tell") != 0))
            return yaml_fail(yaml, word, err, "on_fault is tell or withhold; write one of them");
    }
    return 0;
}

static int keep(struct json_object *json, struct policy_expect *expect, error *err)
{
    size_t length = 0;
    const char *text = json_object_to_json_string_length(
        json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
    if (!text)
        return fail(err, ERR_INTERNAL, "out of memory");
    if (length + 3 > sizeof expect->text)
        return fail(err, ERR_BAD_REQUEST,
                    "expect has %zu bytes as JSON, and a policy may have %zu; make it smaller",
                    length, sizeof expect->text - 3);
    (void) snprintf(expect->text, sizeof expect->text, "[%s]", text);
    return 0;
}

int expect_file_read(const struct yaml *yaml, const struct yaml_node *value,
                     struct policy_expect *ret_expect, int *ret_line, error *err)
{
    auto_json json = NULL;
    memset(ret_expect, 0, sizeof *ret_expect); /* too large for a stack */
    *ret_line = 0;
    if (value->kind != YAML_MAPPING || value->children == 0)
        return yaml_fail(yaml, value, err,
                         "expect is a mapping; write {stdout: {max_bytes: 4096}, secrets: forbid}");
    if (read_on_fault(yaml, value, ret_expect, ret_line, err) < 0 ||
        convert(yaml, value, &json, err) < 0)
        return -1;
    error cause;
    int result = 0;
    if (json_object_object_length(json) > 0 &&
        (expectation_check(json, &ret_expect->needs, &cause) < 0 ||
         keep(json, ret_expect, &cause) < 0))
        result = yaml_fail(yaml, node_of(yaml, value, cause.text), err, "%s", cause.text);
    return result;
}

int expect_merge(struct policy_expect *expect, const struct policy_expect *over, error *err)
{
    if (expect->on_fault == ON_FAULT_WITHHOLD && over->on_fault == ON_FAULT_TELL)
        return fail(err, ERR_BAD_REQUEST,
                    "expect.on_fault is 'tell', and the policy that this one extends says "
                    "'withhold'; remove it");
    if (over->on_fault != ON_FAULT_UNSAID)
        expect->on_fault = over->on_fault;
    if (!over->text[0])
        return 0;
    size_t used = strlen(expect->text);
    if (used + strlen(over->text) >= sizeof expect->text)
        return fail(err, ERR_BAD_REQUEST,
                    "more than %zu bytes of expectations with those of the policies that this one "
                    "extends; make them smaller",
                    sizeof expect->text - 1);
    if (used > 0)
        expect->text[used - 1] = ','; /* replaces the closing bracket */
    (void) snprintf(expect->text + used, sizeof expect->text - used, "%s", over->text + (used > 0));
    expect->needs.contents |= over->needs.contents;
    expect->needs.result |= over->needs.result;
    expect->needs.artifacts |= over->needs.artifacts;
    return 0;
}
