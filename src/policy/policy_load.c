/* policy_load.c - finds policy files, follows `extends`, and merges the chain from its far end. */
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "policy/network_set.h"
#include "policy/policy.h"
#include "policy/policy_file.h"
#include "policy/search_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One file of a chain, with the name it has in failures. */
struct link {
    char label[PATH_MAX];
    struct policy_file file;
};

struct chain {
    size_t count;
    struct link links[POLICY_PARENTS_MAX + 1]; /* [0] is the policy itself */
    struct policy merged;                      /* too large for a stack */
};

static int fail_at(const struct link *link, struct place place, error *err, const char *text)
{
    struct yaml yaml = { .label = link->label };
    struct yaml_node node = { .line = place.line, .column = place.column };
    return yaml_fail(&yaml, &node, err, "%s", text);
}

/* Adds the text of a file to the chain. */
static int add_text(struct chain *chain, const char *text, size_t length, error *err)
{
    struct link *link = &chain->links[chain->count];
    struct yaml yaml;
    if (length > POLICY_FILE_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%.96s' is larger than 64 KiB; make it smaller",
                    link->label);
    if (yaml_init(&yaml, link->label, text, length, err) < 0)
        return -1;
    int result = policy_file_read(&yaml, &link->file, err);
    yaml_done(&yaml);
    if (result == 0)
        chain->count++;
    return result;
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
    struct link *link = &chain->links[chain->count];
    auto_fd fd = search_path_open(path, name, "policy", link->label, err);
    if (fd < 0 || add_file(chain, fd, err) < 0)
        return -1;
    if (strcmp(link->file.name, name) != 0)
        return fail_at(link, link->file.name_place, err,
                       "the name differs from the file's; make them the same");
    return 0;
}

/* Adds what the last link extends, and so on, until one stands alone. */
static int follow(struct chain *chain, const char *path, error *err)
{
    for (;;) {
        const struct link *last = &chain->links[chain->count - 1];
        const char *name = last->file.extends;
        if (!name[0])
            return 0;
        for (size_t i = 0; i < chain->count; i++)
            if (strcmp(chain->links[i].file.name, name) == 0)
                return fail_at(last, last->file.extends_place, err,
                               "a circle of policies that extend each other; break it");
        if (chain->count == COUNT_OF(chain->links))
            return fail_at(last, last->file.extends_place, err,
                           "more than 8 policies extend one another; make the chain shorter");
        error cause = { 0 };
        if (add_named(chain, path, name, &cause) == 0)
            continue;
        /* A fault inside the parent has a place of its own. */
        *err = cause;
        if (cause.code != ERR_NOT_FOUND)
            return -1;
        (void) fail_at(last, last->file.extends_place, err, cause.text);
        return -1;
    }
}

/* Refuses a value that gives more than the policy that is extended states as its maximum. */
static int check_stated(const struct link *link, const struct policy *parent,
                        const struct stated_limits *limits, const char *what, error *err)
{
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t bit = UINT64_C(1) << id;
        uint64_t value = limit_get(&limits->values, id), max = limit_get(&parent->maximum, id);
        if (!(limits->given & bit) || !(parent->stated & bit) || !limit_exceeds(id, value, max))
            continue;
        char asked[32], allowed[32], text[160];
        limit_print(id, value, asked, sizeof asked);
        limit_print(id, max, allowed, sizeof allowed);
        (void) snprintf(text, sizeof text,
                        "%s.%s %s is above the maximum %s of policy %.32s; lower it", what,
                        row->name, asked, allowed, parent->name);
        return fail_at(link, limits->places[id], err, text);
    }
    return 0;
}

/* Merges limits and maxima. A maximum binds where it is stated, in this file or in one it extends;
 * elsewhere a request gets what `limits` says and no more, and an extending policy is free. */
static int merge_limits(const struct link *link, struct policy *policy, error *err)
{
    const struct policy_file *file = &link->file;
    if (check_stated(link, policy, &file->limits, "limits", err) < 0 ||
        check_stated(link, policy, &file->maximum, "maximum", err) < 0)
        return -1;
    policy->stated |= file->maximum.given;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t bit = UINT64_C(1) << id;
        if (file->limits.given & bit)
            limit_put(&policy->limits, id, limit_get(&file->limits.values, id));
        if (file->maximum.given & bit)
            limit_put(&policy->maximum, id, limit_get(&file->maximum.values, id));

        uint64_t value = limit_get(&policy->limits, id);
        if (!(policy->stated & bit)) {
            limit_put(&policy->maximum, id, value);
            continue;
        }
        uint64_t max = limit_get(&policy->maximum, id);
        if (!limit_exceeds(id, value, max))
            continue;
        char start[32], allowed[32], text[160];
        limit_print(id, value, start, sizeof start);
        limit_print(id, max, allowed, sizeof allowed);
        (void) snprintf(text, sizeof text,
                        "maximum.%s %s is below limits.%s %s; raise one or lower the other",
                        row->name, allowed, row->name, start);
        return fail_at(
            link, file->maximum.given & bit ? file->maximum.places[id] : file->limits.places[id],
            err, text);
    }
    return 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(left, right); /* a policy_variable begins with its name; so does a name */
}

static int merge_variables(const struct link *link, struct policy *policy, error *err)
{
    for (size_t i = 0; i < link->file.variable_count; i++) {
        const struct policy_variable *given = &link->file.variables[i];
        size_t at = 0;
        while (at < policy->variable_count && strcmp(policy->variables[at].name, given->name) != 0)
            at++;
        if (at == POLICY_VARIABLES_MAX)
            return fail_at(link, link->file.name_place, err,
                           "more than 16 variables with those it extends; remove some");
        policy->variables[at] = *given;
        if (at == policy->variable_count)
            policy->variable_count++;
    }
    qsort(policy->variables, policy->variable_count, sizeof *policy->variables, by_name);
    return 0;
}

/* What a set says of the environment, unless the policy says it itself. */
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
    qsort(policy->variables, policy->variable_count, sizeof *policy->variables, by_name);
}

/* Opens the sets that the policy names, or it cannot be used: a word that means nothing would be a
 * rule that nobody keeps. */
static int add_sets(const struct chain *chain, const char *path, struct policy *policy, error *err)
{
    static struct network_set set; /* too large for a stack */
    const struct link *said = &chain->links[0];
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
        return fail_at(said, place, err, cause.text);
    }
    return 0;
}

/* A policy keeps to the bounds of what it extends. */
static int merge_sessions(const struct link *link, struct policy *policy, error *err)
{
    const struct policy_sessions *said = &link->file.sessions;
    for (unsigned i = 0; i < SESSIONS_BOUNDS; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (!(said->given & bit))
            continue;
        if ((policy->sessions.given & bit) && said->values[i] > policy->sessions.values[i])
            return fail_at(link, link->file.sessions_place, err,
                           "sessions allows more than the policy that this one extends; lower it");
        policy->sessions.values[i] = said->values[i];
        policy->sessions.given |= bit;
    }
    return 0;
}

static int merge_precheck(const struct link *link, struct policy *policy, error *err)
{
    error cause;
    if (precheck_merge(&policy->precheck, &link->file.precheck, &cause) == 0)
        return 0;
    return fail_at(link, link->file.precheck_place, err, cause.text);
}

static int merge_expect(const struct link *link, struct policy *policy, error *err)
{
    error cause;
    if (expect_merge(&policy->expect, &link->file.expect, &cause) == 0)
        return 0;
    return fail_at(link, link->file.expect_place, err, cause.text);
}

/* Who extends a policy is asked about no less, and approved of no further: what the one below
 * leaves out is what is usual, and binds as if it were said. */
static void merge_approval(const struct policy_approval *said, struct policy_approval *approval)
{
    bool binds = approval->when != 0;
    if (said->scopes)
        approval->scopes =
            REACH_ONCE | (binds ? approval_scopes(approval) & said->scopes : said->scopes);
    if (said->expires_ms && (!binds || said->expires_ms < approval_expires_ms(approval)))
        approval->expires_ms = said->expires_ms;
    approval->when |= said->when;
    approval->is_out_of_band |= said->is_out_of_band;
}

/* Lays one file over what those that it extends have given. */
static int merge(const struct link *link, struct policy *policy, error *err)
{
    const struct policy_file *file = &link->file;
    if (merge_limits(link, policy, err) < 0 || merge_variables(link, policy, err) < 0 ||
        merge_sessions(link, policy, err) < 0 || merge_precheck(link, policy, err) < 0 ||
        merge_expect(link, policy, err) < 0)
        return -1;
    merge_approval(&file->approval, &policy->approval);
    memcpy(policy->name, file->name, sizeof policy->name);
    memcpy(policy->extends, file->extends, sizeof policy->extends);
    if (file->description[0])
        memcpy(policy->description, file->description, sizeof policy->description);
    if (file->template[0])
        memcpy(policy->template, file->template, sizeof policy->template);
    if (file->network != POLICY_NETWORK_UNSAID) {
        policy->network = file->network;
        policy->route = file->route;
    }
    if (file->language_count > 0) {
        policy->language_count = file->language_count;
        memcpy(policy->languages, file->languages, sizeof policy->languages);
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

/* Where each module of the whole list is spoken of last. */
static void note_modules(const struct precheck *whole, const struct policy_file *file, size_t index,
                         struct policy_origins *origins)
{
    for (size_t i = 0; i < whole->module_count; i++)
        for (size_t k = 0; k < file->precheck.module_count; k++)
            if (strcmp(whole->modules[i].name, file->precheck.modules[k].name) == 0)
                note(&origins->modules[i], index, file->precheck_lines.modules[k]);
}

/* Who is overruled, by a shorter time or a stricter `by` below, is not the one who says it. */
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

/* The far end first, as files are merged: who speaks later has the last word. */
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

/* Completes a chain that holds its first link, and merges it. `ret_origins` may be NULL. */
static int complete(struct chain *chain, const char *path, struct policy *ret_policy,
                    struct policy_origins *ret_origins, error *err)
{
    if (follow(chain, path, err) < 0)
        return -1;
    struct policy *policy = &chain->merged;
    limits_init(&policy->limits);
    for (size_t i = chain->count; i-- > 0;)
        if (merge(&chain->links[i], policy, err) < 0)
            return -1;

    const struct link *self = &chain->links[0];
    if (policy->network == POLICY_NETWORK_RULES && add_sets(chain, path, policy, err) < 0)
        return -1;
    if (!policy->template[0])
        return fail_at(self, self->file.name_place, err,
                       "the policy has no template; write a line 'template: NAME'");
    if (policy->language_count == 0)
        return fail_at(self, self->file.name_place, err,
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
    struct chain *chain = new_chain(err);
    if (!chain)
        return -1;
    int result = add_named(chain, path, name, err);
    if (result == 0)
        result = complete(chain, path, ret_policy, ret_origins, err);
    free(chain);
    return result;
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
    struct chain *chain = new_chain(err);
    if (!chain)
        return -1;
    (void) snprintf(chain->links[0].label, sizeof chain->links[0].label, "%s", file);
    int result = add_file(chain, fd, err);
    if (result == 0)
        result = complete(chain, path, ret_policy, NULL, err);
    free(chain);
    return result;
}

int policy_parse(const struct policy_source *source, struct policy *ret_policy, error *err)
{
    struct chain *chain = new_chain(err);
    if (!chain)
        return -1;
    (void) snprintf(chain->links[0].label, sizeof chain->links[0].label, "%s", source->label);
    int result = add_text(chain, source->text, source->length, err);
    if (result == 0)
        result = complete(chain, source->path, ret_policy, NULL, err);
    free(chain);
    return result;
}

static void close_directory(DIR **directory)
{
    if (*directory)
        (void) closedir(*directory);
}

/* Adds the names of one directory to those found before. */
static int list_directory(const char *path, char names[POLICY_LIST_MAX][POLICY_NAME_SIZE],
                          size_t *count, error *err)
{
    __attribute__((cleanup(close_directory))) DIR *directory = opendir(path);
    if (!directory && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!directory)
        return fail_os(err, "list policies in '%s'", path);
    const struct dirent *entry;
    while ((entry = readdir(directory))) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
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
    return 0;
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
