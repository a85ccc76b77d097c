/* import_sets.c - the spawner parses nothing, so its command line is made here. */
#include "supervisor/import_sets.h"

#include <json.h>
#include <stdio.h>
#include <string.h>

static int join_modules(struct json_object *list, char *text, size_t size, error *err)
{
    size_t used = 0;
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(list, i));
        int added =
            snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "", name ? name : "");
        if (added < 0 || (size_t) added >= size - used || !name || strpbrk(name, ", "))
            return fail(err, ERR_UNAVAILABLE,
                        "a zygote has too many modules, or one without a name");
        used += (size_t) added;
    }
    return 0;
}

int zygote_sets_read(const char *manifest, struct zygote_sets *ret_sets, error *err)
{
    ret_sets->count = 0;
    struct json_object *whole = json_object_from_file(manifest);
    struct json_object *sets;
    int done = 0;
    if (!whole)
        return fail(err, ERR_UNAVAILABLE, "'%s' is no JSON; build the template again", manifest);
    if (json_object_object_get_ex(whole, "zygotes", &sets) &&
        json_object_is_type(sets, json_type_object)) {
        json_object_object_foreach(sets, name, modules)
        {
            (void) name;
            if (done < 0 || ret_sets->count == ZYGOTES_MAX)
                break;
            done =
                join_modules(modules, ret_sets->modules[ret_sets->count], ZYGOTE_MODULES_MAX, err);
            ret_sets->count += done == 0;
        }
    }
    (void) json_object_put(whole);
    return done < 0 ? under(err, "'%s'", manifest) : 0;
}
