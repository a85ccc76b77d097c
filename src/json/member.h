/* member.h - values of json-c: reads a member of an object, NULL for null, a missing one, no object
 * or a text with NUL; puts a value when its scope ends. */
#pragma once

#include <json-c/json.h>
#include <string.h>

static inline void json_put_at_end(struct json_object **value)
{
    (void) json_object_put(*value);
}

#define auto_json __attribute__((cleanup(json_put_at_end))) struct json_object *

/* Returns the value, which the caller then puts, and sets the variable to NULL. */
static inline struct json_object *take_json(struct json_object **value)
{
    struct json_object *taken = *value;
    *value = NULL;
    return taken;
}

static inline struct json_object *json_member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    (void) json_object_object_get_ex(object, name, &value);
    return value;
}

static inline int64_t member_number(struct json_object *object, const char *name)
{
    return json_object_get_int64(json_member(object, name));
}

static inline uint64_t member_count(struct json_object *object, const char *name)
{
    return json_object_get_uint64(json_member(object, name));
}

static inline const char *member_text(struct json_object *object, const char *name)
{
    struct json_object *value = json_member(object, name);
    if (!json_object_is_type(value, json_type_string))
        return NULL;
    const char *text = json_object_get_string(value);
    return strlen(text) == (size_t) json_object_get_string_len(value) ? text : NULL;
}

/* NULL is written as null. */
static inline void member_set_text(struct json_object *object, const char *name, const char *text)
{
    (void) json_object_object_add(object, name, text ? json_object_new_string(text) : NULL);
}
