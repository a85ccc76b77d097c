/* recipe_test.c - what a recipe may contain, and what is derived from it. */
#include "template/recipe.h"

#include "base/table.h"
#include "base/test.h"
#include "template/recipe_words.h"

#include <stdio.h>
#include <string.h>

TEST(packages_of_npm_have_a_name_and_versions)
{
    static const struct {
        const char *text;
        bool is_right;
    } facts[] = {
        { "left-pad", true },
        { "left-pad@1.3.0", true },
        { "left-pad@^1.3", true },
        { "left-pad@>=1 <2 || 3.x", true },
        { "left-pad@latest", true },
        { "JSONStream", true },
        { "@scope/name", true },
        { "@scope/name@~2.0.0-rc.1+b", true },
        { "", false },
        { "@", false },
        { "@scope", false },
        { "@scope/", false },
        { "@/name", false },
        { "@a/@b", false },
        { "@a/b/c", false },
        { "@scope/../up", false },
        { "../left-pad", false },
        { ".left-pad", false },
        { "-g", false }, /* not an option of npm */
        { "--registry=http://h", false },
        { "left-pad@", false },
        { "left-pad@@1", false },
        { "left-pad@npm:other@1", false }, /* an alias */
        { "left-pad@file:../x", false },
        { "left-pad@https://h/x.tgz", false },
        { "user/repository", false }, /* of GitHub */
        { "git+ssh://git@h/x", false },
        { "left pad", false },
        { "left-pad@1\n2", false },
        { "left-pad@1;id", false },
    };
    for_each(fact, facts)
        expect(recipe_is_npm(fact->text) == fact->is_right, "'%s'", fact->text);
    char text[400];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    expect(!recipe_is_npm(text), "a name of 399 letters");
    text[2] = '@';
    expect(!recipe_is_npm(text), "versions of 396 letters");
}

/* Parses a recipe, with `more` among its keys; a failure is in `err`. */
static struct json_object *read_recipe(const char *more, error *err)
{
    char text[600];
    struct json_object *recipe = NULL;
    (void) snprintf(text, sizeof text,
                    "name: mine\nbase: debian\npackages: [nodejs, r-cran-dplyr]\n"
                    "languages: {node: {command: [/usr/bin/node, '{file}'], file: main.js}}\n%s",
                    more);
    return recipe_parse("mine.yaml", text, strlen(text), &recipe, err) == 0 ? recipe : NULL;
}

TEST(node_finds_what_a_recipe_lists_of_npm)
{
    static const struct {
        const char *more, *path, *options;
    } facts[] = {
        { "npm: [left-pad]\n", "/usr/local/lib/node_modules",
          "--require=/usr/local/lib/glovebox/node.js" },
        { "npm: [left-pad]\nenv: {NODE_PATH: /opt/x, NODE_OPTIONS: --no-warnings}\n",
          "/opt/x:/usr/local/lib/node_modules",
          "--no-warnings --require=/usr/local/lib/glovebox/node.js" },
        { "npm: [left-pad]\nenv: {NODE_PATH: /usr/local/lib/node_modules, NODE_OPTIONS: "
          "--require=/usr/local/lib/glovebox/node.js}\n",
          "/usr/local/lib/node_modules", "--require=/usr/local/lib/glovebox/node.js" },
        { "npm: []\n", NULL, NULL },
        { "", NULL, NULL },
    };
    for_each(fact, facts) {
        error err = { 0 };
        struct json_object *recipe = read_recipe(fact->more, &err);
        require(recipe, "%s", err.text);
        struct json_object *env = json_object_object_get(recipe, "env");
        const char *path = json_object_get_string(json_object_object_get(env, "NODE_PATH"));
        const char *options = json_object_get_string(json_object_object_get(env, "NODE_OPTIONS"));
        expect(strcmp(path ? path : "", fact->path ? fact->path : "") == 0 &&
                   strcmp(options ? options : "", fact->options ? fact->options : "") == 0,
               "'%s' gives %s and %s", fact->more, path, options);
        (void) json_object_put(recipe);
    }
}

TEST(packages_of_cran_stand_beside_those_of_debian)
{
    error err = { 0 };
    struct json_object *recipe = read_recipe("r: [data.table, MASS]\n", &err);
    require(recipe, "%s", err.text);
    const char *packages = json_object_to_json_string_ext(
        json_object_object_get(recipe, "packages"), JSON_C_TO_STRING_PLAIN);
    expect(strcmp(packages,
                  "[\"nodejs\",\"r-cran-dplyr\",\"r-cran-data.table\",\"r-cran-mass\"]") == 0,
           "%s", packages);
    (void) json_object_put(recipe);
}

TEST(what_is_no_package_of_npm_is_refused_with_its_place)
{
    error err = { 0 };
    expect(!read_recipe("npm: [left-pad, 'left@file:/etc']\n", &err), "it is taken");
    expect(strstr(err.text, "mine.yaml:5:") && strstr(err.text, "left@file:/etc"), "%s", err.text);
}

/* One item more than gloveboxd accepts is refused before a build starts. */
TEST(what_would_not_be_served_is_not_built)
{
#define RUNNER "{file: main.x, command: [/bin/x]}"
#define LONG   "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
    static const struct {
        const char *before, *item, *behind, *after, *says;
        size_t max;
    } facts[] = {
        { "languages: {", "l", ": " RUNNER ", ", "}\n", "more than 16 languages", 16 },
        { "languages: {x: {file: main.x, command: [/bin/x", ", a", "", "]}}\n",
          "more than 32 command", 31 },
        { "languages: {x: {file: main.x, command: [/bin/x], compile: [/bin/x", ", a", "", "]}}\n",
          "more than 32 compile", 31 },
        { "languages: {}\nzygotes: {light: [", "a", ", ", "]}\n", "more than 32 modules", 32 },
        { "languages: {}\nzygotes: {", "s", ": [], ", "}\n", "more than 4 zygotes", 4 },
        { "languages: {}\nzygotes: {a: [" LONG ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG
          ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG ", " LONG
          ", " LONG ", " LONG "], b: [",
          LONG, ", ", "]}\n", "more than 4096 bytes", 28 },
        { "languages: {}\nenv: {", "V", ": a, ", "}\n", "more than 62 env", 62 },
        { "languages: {}\nprepare: [[/bin/true", ", a", "", "]]\n", "more than 60 words", 59 },
    };
    for_each(fact, facts) {
        for (size_t more = 0; more < 2; more++) {
            char text[8192];
            error err = { 0 };
            struct json_object *recipe = NULL;
            size_t used = (size_t) snprintf(
                text, sizeof text, "name: mine\nbase: debian\npackages: [bash]\n%s", fact->before);
            for (size_t i = 0; i < fact->max + more; i++)
                used += (size_t) snprintf(text + used, sizeof text - used, "%s%zu%s", fact->item, i,
                                          fact->behind);
            used += (size_t) snprintf(text + used, sizeof text - used, "%s", fact->after);
            int result = recipe_parse("mine.yaml", text, used, &recipe, &err);
            expect(result == (more ? -1 : 0), "%s: %s", fact->says, err.text);
            expect(!more || strstr(err.text, fact->says), "%s", err.text);
            (void) json_object_put(recipe);
        }
    }
}

TESTS(CASE(packages_of_npm_have_a_name_and_versions), CASE(node_finds_what_a_recipe_lists_of_npm),
      CASE(packages_of_cran_stand_beside_those_of_debian),
      CASE(what_is_no_package_of_npm_is_refused_with_its_place),
      CASE(what_would_not_be_served_is_not_built))
