/* key.c - `glovebox key`: makes API keys, shows their rights, and revokes them. It writes the
 * daemon's table of keys, so it works with and without a running daemon, which reads it
 * each time. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/common/audit_event.h"
#include "cli/options.h"
#include "keys/store.h"
#include "policy/policy.h"
#include "supervisor/install_paths.h"
#include "json/member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct key_arguments {
    const char *state, *scope, *policy, *name, *tenant, *expires, *grace;
    uint32_t concurrency, runs_per_minute, cpu_seconds_per_day;
    bool json;
};

#define FIELD(name) offsetof(struct key_arguments, name)

static int store_number(void *into, const struct option_row *row, const char *value, error *err)
{
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno != 0 || number < 1 || number > 1000000000)
        return fail(err, ERR_BAD_REQUEST, "--%s takes 1 to 1000000000, not '%.40s'", row->name,
                    value);
    *(uint32_t *) ((char *) into + row->field) = (uint32_t) number;
    return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
    { "scope",               0, "run,…",   VALUES_SCOPE,   "create: what it is good for: run, sessions, approve, audit, admin; default: run", store_text, FIELD(scope) },
    { "policy",              0, "NAME,…",  VALUES_POLICY, "create: policies that its runs may have; default: every one", store_text, FIELD(policy) },
    { "name",                0, "TEXT",    VALUES_NONE,   "create: whose it is, for people",                            store_text, FIELD(name) },
    { "tenant",              0, "NAME",    VALUES_NONE,   "create: keys of one tenant see the same runs and files; default: this key alone", store_text, FIELD(tenant) },
    { "expires",             0, "30d",     VALUES_NONE,   "create: when it ends by itself: 90s, 15m, 12h, 30d or a moment of RFC 3339; default: never", store_text, FIELD(expires) },
    { "concurrency",         0, "N",       VALUES_NONE,   "create: runs at once; default: the daemon's",                store_number, FIELD(concurrency) },
    { "runs-per-minute",     0, "N",       VALUES_NONE,   "create: runs begun in a minute; default: the daemon's",      store_number, FIELD(runs_per_minute) },
    { "cpu-seconds-per-day", 0, "N",       VALUES_NONE,   "create: processor time in a day (UTC); default: the daemon's", store_number, FIELD(cpu_seconds_per_day) },
    { "grace",               0, "1h",      VALUES_NONE,   "rotate: how long the old secret stays good; default: not at all", store_text, FIELD(grace) },
    { "state",               0, "FOLDER",  VALUES_FOLDER, "the daemon's state folder",                                  store_text, FIELD(state) },
    { "json",                0, NULL,      VALUES_NONE,   "the same for programs",                                      store_switch, FIELD(json) },
};

const struct option_table key_option_table = {
    .verb = "key",
    .examples = "  glovebox key create ci --policy data,minimal --expires 30d\n"
                "  glovebox key create --scope run,sessions --tenant team-a --concurrency 4\n"
                "  glovebox key list                              what there is\n"
                "  glovebox key rotate ID --grace 1h              a new secret; the old one for an hour\n"
                "  glovebox key revoke ID                         good for nothing from now on\n",
    .usage = "create|list|rotate|revoke [OPTIONS] [NAME|ID]",
    .more = "Send a key as `Authorization: Bearer KEY` or `X-API-Key: KEY`. It is shown once,\n"
            "when it is made; what is kept is a hash. The daemon need not run, and need not\n"
            "be told.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

static int read_moment(const char *option, const char *text, int64_t *ret_s, error *err)
{
    if (option_read_span(option, text, ret_s, err) < 0)
        return -1;
    *ret_s += wall_clock_ms() / 1000;
    return 0;
}

static uid_t caller; /* the caller, before we became the daemon's user */

/* Finds the folder of keys; does not create one, since its name may be a mistake. */
static int find_store(const char *chosen, error *err)
{
    auto_text state = NULL;
    auto_text folder = NULL;
    if (path_of_state(chosen, &state, err) < 0 || format_text(&folder, err, "%s/daemon", state) < 0)
        return -1;
    if (access(folder, F_OK) == 0 || errno != ENOENT ||
        (access(state, F_OK) == 0 && access(state, W_OK) < 0)) /* opening it will say why */
        return 0;
    return fail(err, ERR_NOT_FOUND,
                "there are no keys in '%.120s'; name another state with --state FOLDER, or make a "
                "key there with glovebox key create",
                state);
}

static void close_store(struct key_store **store)
{
    key_store_close(*store);
}

#define auto_store __attribute__((cleanup(close_store))) struct key_store *

static int open_store(const struct key_arguments *arguments, struct key_store **ret_store,
                      error *err)
{
    caller = getuid();
    if (become_daemon_user(arguments->state, err) < 0)
        return -1;
    return key_store_open(".", KEYS_WRITE_NOW, ret_store, err);
}

static int copy_word(char *to, size_t size, const char *option, const char *text, error *err)
{
    if (!text)
        return 0;
    if (!*text)
        return fail(err, ERR_BAD_REQUEST, "--%s is empty; leave it out", option);
    if (text[strcspn(text, "\n\t")] || text_find_unclean(text, strlen(text)) != strlen(text))
        return fail(err, ERR_BAD_REQUEST, "--%s has a control character, or is not UTF-8", option);
    if (strlen(text) >= size)
        return fail(err, ERR_BAD_REQUEST, "--%s is longer than %zu bytes", option, size - 1);
    (void) snprintf(to, size, "%s", text);
    return 0;
}

static void add_text(json_object *object, const char *name, const char *text)
{
    member_set_text(object, name, text && *text ? text : NULL);
}

static void add_moment(json_object *object, const char *name, int64_t seconds)
{
    char moment[32];
    add_text(object, name, seconds ? timestamp_write(seconds * 1000, moment) : NULL);
}

static void add_number(json_object *object, const char *name, uint32_t number)
{
    (void) json_object_object_add(object, name, number ? json_object_new_int64(number) : NULL);
}

static void add_list(json_object *object, const char *name, const char *text)
{
    json_object *list = json_object_new_array();
    for (const char *word = text; *word;) {
        size_t length = strcspn(word, ",");
        (void) json_object_array_add(list, json_object_new_string_len(word, (int) length));
        word += length + (word[length] == ',');
    }
    (void) json_object_object_add(object, name, list);
}

static const char *state_of(const struct api_key *key)
{
    return key->revoked_s != 0                                               ? "revoked"
           : key->expires_s != 0 && key->expires_s <= wall_clock_ms() / 1000 ? "expired"
                                                                             : "good";
}

static void print_json_key(const struct api_key *key, const char *text)
{
    auto_json object = json_object_new_object();
    char scopes[64];
    if (text)
        add_text(object, "key", text);
    add_text(object, "id", key->id);
    add_text(object, "name", key->name);
    add_text(object, "tenant", key->tenant);
    add_text(object, "state", state_of(key));
    scopes_print(key->scopes, scopes, sizeof scopes);
    add_list(object, "scopes", scopes);
    add_list(object, "policies", key->policies);
    add_moment(object, "created_at", key->created_s);
    add_moment(object, "expires_at", key->expires_s);
    add_moment(object, "revoked_at", key->revoked_s);
    add_number(object, "concurrency", key->concurrency);
    add_number(object, "runs_per_minute", key->runs_per_minute);
    add_number(object, "cpu_seconds_per_day", key->cpu_seconds_per_day);
    (void) fputs(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE), stdout);
}

/* Records a change of keys in the log. open_store() has changed to the daemon's folder. */
static int tell_log(const char *kind, const struct api_key *key, int64_t old_until_s, error *err)
{
    char scopes[64];
    scopes_print(key->scopes, scopes, sizeof scopes);
    auto_fd here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct event_field fields[] = {
        { "expires_s", NULL, key->expires_s },
        { "key", key->id, 0 },
        { "old_until_s", NULL, old_until_s },
        { "policies", key->policies, 0 },
        { "scopes", scopes, 0 },
        { "tenant", key->tenant, 0 },
        { "uid", NULL, (int64_t) caller },
        { 0 },
    };
    return here < 0 ? fail_os(err, "open the daemon's folder")
                    : event_append(here, kind, fields, err);
}

struct search {
    const char *id;
    struct api_key found;
};

static int take_if_it_is(void *context, const struct api_key *key)
{
    struct search *search = context;
    if (strcmp(key->id, search->id) != 0)
        return 0;
    search->found = *key;
    return 1;
}

/* Records that the key `id` was changed. */
static int tell_change(struct key_store *store, const char *kind, const char *id,
                       int64_t old_until_s, error *err)
{
    struct search search = { .id = id };
    if (key_store_list(store, take_if_it_is, &search, err) < 0 ||
        tell_log(kind, &search.found, old_until_s, err) < 0)
        return under(err, "%s was done, and is not in the log", kind);
    return 0;
}

/* Revokes the new key again if the log cannot record it. */
static int create_in_store(struct key_store *store, struct api_key *key,
                           char text[API_KEY_TEXT_SIZE], error *err)
{
    error unused;
    if (key_store_create(store, key, text, err) < 0)
        return -1;
    if (tell_log("key.created", key, 0, err) == 0)
        return 0;
    (void) key_store_revoke(store, key->id, &unused);
    return under(err, "the key was not made: it cannot be told in the log");
}

/* Warns about unknown policies. It is no failure: a policy may be written after the key. */
static void name_unknown_policies(const struct key_arguments *arguments, const char *policies)
{
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    auto_text path = NULL;
    size_t count = 0;
    error unused;
    if (path_of_policies_of(arguments->state, &path, &unused) < 0 ||
        policy_list(path, names, &count, &unused) < 0)
        return;
    char copy[sizeof((struct api_key *) NULL)->policies], *save = NULL;
    (void) snprintf(copy, sizeof copy, "%s", policies);
    for (char *name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        size_t at = 0;
        while (at < count && strcmp(names[at], name) != 0)
            at++;
        if (at == count)
            (void) fprintf(stderr,
                           "glovebox: no policy is named '%s' here so far; the key is good for "
                           "nothing under that name until there is one; see glovebox policy list\n",
                           name);
    }
}

/* Prints to stderr; stdout gets the key and nothing else. */
static void tell_what_it_may_do(const struct api_key *key)
{
    char scopes[64];
    scopes_print(key->scopes, scopes, sizeof scopes);
    bool has_run_alone = (key->scopes & (SCOPE_RUN | SCOPE_SESSIONS)) == SCOPE_RUN;
    (void) fprintf(stderr, "glovebox: this is key %s, for %s with %s; it is not shown again%s\n",
                   key->id, scopes, key->policies[0] ? key->policies : "every policy",
                   has_run_alone ? "; sessions need --scope run,sessions" : "");
}

static int create_key(struct key_arguments *arguments, const char *name, error *err)
{
    if (name && arguments->name)
        return fail(err, ERR_BAD_REQUEST, "the key has two names, '%.40s' and '%.40s'; give one",
                    name, arguments->name);
    if (name)
        arguments->name = name;
    struct api_key key = { .scopes = SCOPE_RUN,
                           .concurrency = arguments->concurrency,
                           .runs_per_minute = arguments->runs_per_minute,
                           .cpu_seconds_per_day = arguments->cpu_seconds_per_day };
    char text[API_KEY_TEXT_SIZE];
    auto_store store = NULL;
    if ((arguments->scope && scopes_read(arguments->scope, &key.scopes, err) < 0) ||
        (arguments->expires &&
         read_moment("expires", arguments->expires, &key.expires_s, err) < 0) ||
        copy_word(key.name, sizeof key.name, "name", arguments->name, err) < 0 ||
        copy_word(key.tenant, sizeof key.tenant, "tenant", arguments->tenant, err) < 0 ||
        copy_word(key.policies, sizeof key.policies, "policy", arguments->policy, err) < 0)
        return -1;
    name_unknown_policies(arguments, key.policies); /* still as root: its policy folders count */
    if (open_store(arguments, &store, err) < 0 || create_in_store(store, &key, text, err) < 0)
        return -1;
    if (arguments->json) {
        print_json_key(&key, text);
        (void) putchar('\n');
        return 0;
    }
    (void) printf("%s\n", text);
    tell_what_it_may_do(&key);
    return 0;
}

static int rotate_key(struct key_arguments *arguments, const char *id, error *err)
{
    char text[API_KEY_TEXT_SIZE];
    int64_t until_s = 0;
    auto_store store = NULL;
    if ((arguments->grace && read_moment("grace", arguments->grace, &until_s, err) < 0) ||
        find_store(arguments->state, err) < 0 || open_store(arguments, &store, err) < 0 ||
        key_store_rotate(store, id, until_s, text, err) < 0 ||
        tell_change(store, "key.rotated", id, until_s, err) < 0)
        return -1;
    (void) printf(arguments->json ? "{\"id\":\"%2$s\",\"key\":\"%1$s\"}\n" : "%1$s\n", text, id);
    return 0;
}

static int revoke_key(struct key_arguments *arguments, const char *id, error *err)
{
    auto_store store = NULL;
    if (find_store(arguments->state, err) < 0 || open_store(arguments, &store, err) < 0 ||
        key_store_revoke(store, id, err) < 0 || tell_change(store, "key.revoked", id, 0, err) < 0)
        return -1;
    if (arguments->json)
        (void) printf("{\"id\":\"%s\",\"state\":\"revoked\"}\n", id);
    return 0;
}

struct listing {
    bool json;
    unsigned count;
};

static int print_row(void *context, const struct api_key *key)
{
    struct listing *listing = context;
    char scopes[64], expires[32];
    if (listing->json) {
        (void) fputs(listing->count++ == 0 ? "" : ",", stdout);
        print_json_key(key, NULL);
        return 0;
    }
    if (listing->count++ == 0)
        (void) printf("%-17s %-8s %-17s %-16s %-22s %-24s %s\n", "ID", "STATE", "TENANT", "NAME",
                      "SCOPES", "EXPIRES", "POLICIES");
    scopes_print(key->scopes, scopes, sizeof scopes);
    (void) printf("%-17s %-8s %-17s %-16s %-22s %-24s %s\n", key->id, state_of(key), key->tenant,
                  key->name[0] ? key->name : "-", scopes,
                  key->expires_s ? timestamp_write(key->expires_s * 1000, expires) : "never",
                  key->policies[0] ? key->policies : "every one");
    return 0;
}

static int list_keys(struct key_arguments *arguments, const char *id, error *err)
{
    (void) id;
    struct listing listing = { .json = arguments->json };
    auto_store store = NULL;
    if (find_store(arguments->state, err) < 0 || open_store(arguments, &store, err) < 0)
        return -1;
    (void) fputs(arguments->json ? "[" : "", stdout);
    int result = key_store_list(store, print_row, &listing, err);
    (void) fputs(arguments->json ? "]\n" : "", stdout);
    if (result == 0 && listing.count == 0 && !arguments->json)
        (void) puts("no keys; make one with: glovebox key create");
    return result;
}

static const struct action {
    const char *name;
    bool takes_word, needs_it;
    int (*take)(struct key_arguments *arguments, const char *word, error *err);
} actions[] = {
    { "create", true, false, create_key },
    { "list", false, false, list_keys },
    { "rotate", true, true, rotate_key },
    { "revoke", true, true, revoke_key },
};

int command_key(int argc, char **argv)
{
    struct key_arguments arguments = { 0 };
    const char *given[3] = { NULL };
    struct words words = { argc, argv, 1, given, COUNT_OF(given) };
    const struct action *action = NULL;
    error err = { 0 };
    int outcome = options_read_all(&key_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    for_each(row, actions)
        if (given[0] && strcmp(row->name, verb_meant("key", given[0])) == 0)
            action = row;
    if (!action)
        return complain_of_verb("key", given[0]);
    const char *excess = given[action->takes_word ? 2 : 1];
    if (excess)
        return complain("key %s takes no '%s'; see glovebox key --help", action->name, excess);
    if (action->needs_it && !given[1])
        return complain("which key? try glovebox key %s ID; glovebox key list shows them",
                        action->name);
    bool is_refused = options_check(&key_option_table, &words, action->name, &err) < 0;
    return is_refused || action->take(&arguments, given[1], &err) < 0 ? complain_of(&err) : 0;
}
