/* policy_load.c - finds policy files, follows `extends`, and merges the chain from its farthest
 * policy on (policy_merge.c). */
#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "policy/network_set.h"
#include "policy/policy.h"
#include "policy/policy_merge.h"
#include "policy/search_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

struct chain {
    size_t count;
    struct policy_link links[POLICY_PARENTS_MAX + 1]; /* [0] is the policy itself */
    struct policy merged;                             /* too large for a stack */
};

/* Adds the text of a file to the chain. */
static int add_text(struct chain *chain, const char *text, size_t length, error *err)
{
    struct policy_link *link = &chain->links[chain->count];
    auto_yaml yaml = { 0 };
    if (length > POLICY_FILE_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%.96s' is larger than 64 KiB; make it smaller",
                    link->label);
    if (yaml_init(&yaml, link->label, text, length, err) < 0 ||
        policy_file_read(&yaml, &link->file, err) < 0)
        return -1;
    chain->count++;
    return 0;
}

static int add_file(struct chain *chain, int fd, error *err)
{
    auto_text text = NULL;
    size_t length = 0;
    if (search_path_read(fd, chain->links[chain->count].label, &text, &length, err) < 0)
        return -1;
    return add_text(chain, text, length, err);
}

static int add_named(struct chain *chain, const char *path, const char *name, error *err)
{
    struct policy_link *link = &chain->links[chain->count];
    auto_fd fd = search_path_open(path, name, "policy", link->label, err);
    if (fd < 0 || add_file(chain, fd, err) < 0)
        return -1;
    if (strcmp(link->file.name, name) != 0)
        return policy_fail_at(link, link->file.name_place, err,
                              "the name differs from the file's; make them the same");
    return 0;
}

/* Adds the policy that the last link extends, and so on, until one extends none. */
static int follow(struct chain *chain, const char *path, error *err)
{
    for (;;) {
        const struct policy_link *last = &chain->links[chain->count - 1];
        const char *name = last->file.extends;
        if (!name[0])
            return 0;
        for (size_t i = 0; i < chain->count; i++)
            if (strcmp(chain->links[i].file.name, name) == 0)
                return policy_fail_at(last, last->file.extends_place, err,
                                      "a circle of policies that extend each other; break it");
        if (chain->count == COUNT_OF(chain->links))
            return policy_fail_at(
                last, last->file.extends_place, err,
                "more than 8 policies extend one another; make the chain shorter");
        error cause = { 0 };
        if (add_named(chain, path, name, &cause) == 0)
            continue;
        /* An error inside the parent has its own position. */
        *err = cause;
        if (cause.code != ERR_NOT_FOUND)
            return -1;
        (void) policy_fail_at(last, last->file.extends_place, err, cause.text);
        return -1;
    }
}

static int by_name(const void *left, const void *right)
{
    return strcmp(left, right); /* of policy_variables, whose first member is the name, or names */
}

/* Adds the variables of a set, unless the policy has one of the same name. */
static void add_variables(struct policy *policy, const struct network_set *set)
{
    for (size_t i = 0; i < set->variable_count; i++) {
        const struct policy_variable *given = &set->variables[i];
        bool is_said = policy->variable_count == POLICY_VARIABLES_MAX;
        for (size_t at = 0; at < policy->variable_count && !is_said; at++)
            is_said = strcmp(policy->variables[at].name, given->name) == 0;
        if (!is_said)
            policy->variables[policy->variable_count++] = *given;
    }
}

/* Loads the sets that the policy names. Without one of them the policy cannot be used. */
static int add_sets(const struct chain *chain, const char *path, struct policy *policy, error *err)
{
    static struct network_set set; /* too large for a stack */
    const struct policy_link *said = &chain->links[0];
    while (said + 1 < chain->links + chain->count && said->file.key_lines[POLICY_KEY_NETWORK] == 0)
        said++;
    for (unsigned i = 0; i < policy->route.set_count; i++) {
        error cause;
        if (network_set_load(path, policy->route.sets[i], &set, &cause) == 0 &&
            network_set_add(&set, i, &policy->route, &cause) == 0) {
            add_variables(policy, &set);
            continue;
        }
        struct place place = { said->file.key_lines[POLICY_KEY_NETWORK], 1 };
        return policy_fail_at(said, place, err, cause.text);
    }
    return 0;
}

static int set_digest(struct policy *policy, error *err)
{
    auto_text text = NULL;
    if (policy_render(policy, &text, err) < 0)
        return -1;
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void) crypto_hash_sha256(hash, (const unsigned char *) text, strlen(text));
    int used = snprintf(policy->digest, sizeof policy->digest, "sha256:");
    for_each(byte, hash)
        used +=
            snprintf(policy->digest + used, sizeof policy->digest - (size_t) used, "%02x", *byte);
    return 0;
}

static void note(struct policy_origin *origin, size_t file, int line)
{
    if (line > 0)
        *origin = (struct policy_origin){ (unsigned) file, line };
}

/* Notes the last file that names each module. */
static void note_modules(const struct precheck *whole, const struct policy_file *file, size_t index,
                         struct policy_origins *origins)
{
    for (size_t i = 0; i < whole->module_count; i++)
        for (size_t k = 0; k < file->precheck.module_count; k++)
            if (strcmp(whole->modules[i].name, file->precheck.modules[k].name) == 0)
                note(&origins->modules[i], index, file->precheck_lines.modules[k]);
}

/* A file is the origin only if its value was not replaced by a shorter time or a stricter `by`. */
static void note_approval(const struct policy_approval *whole, const struct policy_file *file,
                          size_t index, struct policy_origins *origins)
{
    const struct policy_approval *said = &file->approval;
    for (unsigned part = 0; part < APPROVAL_PARTS; part++) {
        bool is_overruled =
            (part == APPROVAL_BY && said->is_out_of_band != whole->is_out_of_band) ||
            (part == APPROVAL_EXPIRES && said->expires_ms != whole->expires_ms);
        if (!is_overruled)
            note(&origins->approval[part], index, file->approval_lines.parts[part]);
    }
}

/* The farthest policy first, as files are merged: later files replace origins of earlier ones. */
static void gather_origins(const struct chain *chain, const struct policy *policy,
                           struct policy_origins *ret_origins)
{
    size_t expects = 0;
    *ret_origins = (struct policy_origins){ .file_count = chain->count };
    for (size_t i = chain->count; i-- > 0;) {
        const struct policy_file *file = &chain->links[i].file;
        (void) snprintf(ret_origins->files[i], POLICY_LABEL_SIZE, "%.*s", POLICY_LABEL_SIZE - 1,
                        chain->links[i].label);
        for (unsigned key = 0; key < POLICY_KEYS; key++)
            note(&ret_origins->keys[key], i, file->key_lines[key]);
        for (unsigned id = 0; id < LIMITS; id++) {
            uint64_t bit = UINT64_C(1) << id;
            if (file->limits.given & bit)
                note(&ret_origins->limits[id], i, file->limits.places[id].line);
            if (file->maximum.given & bit)
                note(&ret_origins->maximum[id], i, file->maximum.places[id].line);
        }
        for (unsigned rule = 0; rule < CHECK_RULES; rule++)
            note(&ret_origins->rules[rule], i, file->precheck_lines.rules[rule]);
        if (file->expect.text[0])
            note(&ret_origins->expects[expects++], i, file->key_lines[POLICY_KEY_EXPECT]);
        note(&ret_origins->on_fault, i, file->on_fault_line);
        note_approval(&policy->approval, file, i, ret_origins);
        note_modules(&policy->precheck, file, i, ret_origins);
    }
}

/* Completes a chain from its first link, and merges it. `ret_origins` may be NULL. */
static int complete(struct chain *chain, const char *path, struct policy *ret_policy,
                    struct policy_origins *ret_origins, error *err)
{
    if (follow(chain, path, err) < 0)
        return -1;
    struct policy *policy = &chain->merged;
    limits_init(&policy->limits);
    for (size_t i = chain->count; i-- > 0;)
        if (policy_merge(&chain->links[i], policy, err) < 0)
            return -1;

    const struct policy_link *self = &chain->links[0];
    if (policy->network == POLICY_NETWORK_RULES && add_sets(chain, path, policy, err) < 0)
        return -1;
    qsort(policy->variables, policy->variable_count, sizeof *policy->variables, by_name);
    if (!policy->template[0])
        return policy_fail_at(self, self->file.name_place, err,
                              "the policy has no template; write a line 'template: NAME'");
    if (policy->language_count == 0)
        return policy_fail_at(self, self->file.name_place, err,
                              "the policy has no languages; write a line 'languages: [python]'");
    if (set_digest(policy, err) < 0)
        return -1;
    if (ret_origins)
        gather_origins(chain, policy, ret_origins);
    *ret_policy = *policy;
    return 0;
}

static struct chain *new_chain(error *err)
{
    struct chain *chain = calloc(1, sizeof *chain);
    if (!chain)
        (void) fail(err, ERR_INTERNAL, "out of memory");
    return chain;
}

int policy_load_origins(const char *path, const char *name, struct policy *ret_policy,
                        struct policy_origins *ret_origins, error *err)
{
    if (!policy_name_is_valid(name))
        return fail(err, ERR_BAD_REQUEST,
                    "'%.*s' is no name of a policy; use small letters, digits and dashes",
                    text_head(name, 64), name);
    auto_free struct chain *chain = new_chain(err);
    if (!chain || add_named(chain, path, name, err) < 0)
        return -1;
    return complete(chain, path, ret_policy, ret_origins, err);
}

int policy_load(const char *path, const char *name, struct policy *ret_policy, error *err)
{
    return policy_load_origins(path, name, ret_policy, NULL, err);
}

int policy_read(const char *file, const char *path, struct policy *ret_policy, error *err)
{
    auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(err, ERR_SYSTEM, "cannot read policy file '%s': %s; check the name", file,
                    strerrordesc_np(errno));
    auto_free struct chain *chain = new_chain(err);
    if (!chain)
        return -1;
    (void) snprintf(chain->links[0].label, sizeof chain->links[0].label, "%s", file);
    return add_file(chain, fd, err) < 0 ? -1 : complete(chain, path, ret_policy, NULL, err);
}

int policy_parse(const struct policy_source *source, struct policy *ret_policy, error *err)
{
    auto_free struct chain *chain = new_chain(err);
    if (!chain)
        return -1;
    (void) snprintf(chain->links[0].label, sizeof chain->links[0].label, "%s", source->label);
    if (add_text(chain, source->text, source->length, err) < 0)
        return -1;
    return complete(chain, source->path, ret_policy, NULL, err);
}

static void close_directory(DIR **directory)
{
    if (*directory)
        (void) closedir(*directory);
}

/* Adds the names of one directory to the list. */
static int list_directory(const char *path, char names[POLICY_LIST_MAX][POLICY_NAME_SIZE],
                          size_t *count, error *err)
{
    __attribute__((cleanup(close_directory))) DIR *directory = opendir(path);
    if (!directory && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!directory)
        return fail_os(err, "list policies in '%s'", path);
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(directory))) { /* NOLINT(concurrency-mt-unsafe): our own */
        char name[NAME_MAX + 1];
        (void) snprintf(name, sizeof name, "%s", entry->d_name);
        char *dot = strrchr(name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        *dot = '\0';
        bool known = false;
        for (size_t i = 0; i < *count && !known; i++)
            known = strcmp(names[i], name) == 0;
        if (known || !policy_name_is_valid(name))
            continue;
        if (*count == POLICY_LIST_MAX)
            return fail(err, ERR_TOO_LARGE, "more than %d policies in '%s'; remove some",
                        POLICY_LIST_MAX, path);
        memcpy(names[(*count)++], name, POLICY_NAME_SIZE);
    }
    return errno == 0 ? 0 : fail_os(err, "list policies in '%s'", path);
}

int policy_list(const char *path, char ret_names[POLICY_LIST_MAX][POLICY_NAME_SIZE],
                size_t *ret_count, error *err)
{
    char directory[PATH_MAX];
    size_t count = 0;
    for (const char *rest = search_path_next(path, directory); rest;
         rest = search_path_next(rest, directory))
        if (list_directory(directory, ret_names, &count, err) < 0)
            return -1;
    qsort(ret_names, count, POLICY_NAME_SIZE, by_name);
    *ret_count = count;
    return 0;
}
