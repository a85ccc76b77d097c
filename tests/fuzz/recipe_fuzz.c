/* recipe_fuzz.c - any bytes as a template's recipe: either everything that a build relies on holds,
 * or a failure says where and why. */
#include "base/cleanup.h"
#include "base/text.h"
#include "template/recipe.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_object *value_of(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    assert(json_object_object_get_ex(object, key, &value) && value);
    return value;
}

static void check_texts(struct json_object *list)
{
    assert(json_object_is_type(list, json_type_array));
    for (size_t i = 0; i < json_object_array_length(list); i++)
        assert(json_object_is_type(json_object_array_get_idx(list, i), json_type_string));
}

static void check_command(struct json_object *command)
{
    check_texts(command);
    assert(json_object_array_length(command) > 0);
    assert(json_object_get_string(json_object_array_get_idx(command, 0))[0] == '/');
}

static void check_recipe(struct json_object *recipe)
{
    assert(recipe_name_is_valid(json_object_get_string(value_of(recipe, "name"))));
    const char *base = json_object_get_string(value_of(recipe, "base"));
    assert(*base == '\0' || strcmp(base, "debian") == 0 || strcmp(base, "host-copy") == 0);
    int64_t disk = json_object_get_int64(value_of(recipe, "disk"));
    assert(disk >= 1 << 20 && disk <= INT64_C(1) << 44);
    check_texts(value_of(recipe, "packages"));
    check_texts(value_of(recipe, "leave_out"));
    struct json_object *paths = value_of(recipe, "leave_out");
    for (size_t i = 0; i < json_object_array_length(paths); i++) {
        const char *path = json_object_get_string(json_object_array_get_idx(paths, i));
        assert(path[0] != '/' && !strstr(path, ".."));
    }
    json_object_object_foreach(value_of(recipe, "languages"), language, runner)
    {
        assert(!strchr(language, '/'));
        check_command(value_of(runner, "command"));
        assert(!strchr(json_object_get_string(value_of(runner, "file")), '/'));
    }
    json_object_object_foreach(value_of(recipe, "env"), variable, text)
    {
        assert(strncmp(variable, "LD_", 3) != 0 && !strchr(variable, '='));
        assert(json_object_is_type(text, json_type_string));
    }
    json_object_object_foreach(value_of(recipe, "zygotes"), zygote, imports)
    {
        assert(recipe_name_is_valid(zygote));
        check_texts(imports);
    }
    struct json_object *prepare = value_of(recipe, "prepare");
    for (size_t i = 0; i < json_object_array_length(prepare); i++)
        check_command(json_object_array_get_idx(prepare, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_text copy = malloc(size > 0 ? size : 1); /* nothing behind the text may be read */
    assert(copy);
    memcpy(copy, data, size);
    struct json_object *recipe = NULL;
    error err = { 0 };
    if (recipe_parse("f.yaml", copy, size, &recipe, &err) == 0) {
        check_recipe(recipe);
        (void) json_object_put(recipe);
        return 0;
    }
    assert(err.code != ERR_NONE && strncmp(err.text, "f.yaml:", 7) == 0);
    size_t length = strnlen(err.text, sizeof err.text);
    assert(length < sizeof err.text);
    assert(length + 4 >= sizeof err.text || text_find_unclean(err.text, length) == length);
    return 0;
}
