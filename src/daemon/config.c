/* config.c - checks new settings and policies, then puts them into use and answers the parent. */
#include "daemon/config.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/audit/audit_log.h"
#include "engine/catalog/import_counts.h"
#include "engine/observe/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHANGES_MAX = 512 };

static const char *text_of(const struct settings *settings, enum setting_id id)
{
    return settings->list[id].text;
}

int reload_read(const char *text, struct settings *settings, error *err)
{
    for (const char *line = text; *line;) {
        char value[SETTING_SIZE], key[64];
        size_t length = strcspn(line, "\n");
        const char *equals = memchr(line, '=', length);
        size_t key_size = equals ? (size_t) (equals - line) : length;
        size_t size = equals ? length - key_size - 1 : 0;
        if (!equals || key_size >= sizeof key || size >= sizeof value)
            return fail(err, ERR_BAD_REQUEST, "'%.*s' is no setting", (int) (length % 60), line);
        (void) snprintf(key, sizeof key, "%.*s", (int) key_size, line);
        (void) snprintf(value, sizeof value, "%.*s", (int) size, equals + 1);
        enum setting_id id = setting_find(key);
        if (id == SETTINGS)
            return fail(err, ERR_BAD_REQUEST, "nothing is called '%s'", key);
        if (settings_set(settings, id, value, "parent", err) < 0)
            return -1;
        line += length + (line[length] == '\n');
    }
    return settings_check(settings, err);
}

static uint32_t number(const struct settings *settings, enum setting_id id)
{
    return (uint32_t) settings->list[id].number;
}

void reload_apply(struct reload *reload)
{
    static struct oauth oauth; /* only read by a gloveboxd that is not private */
    const struct settings *settings = &reload->settings;
    (void) snprintf(reload->policies->usual, sizeof reload->policies->usual, "%.*s",
                    POLICY_NAME_SIZE - 1, settings->list[SETTING_default_policy].text);
    reload->runs->queued_max = number(settings, SETTING_queue);
    reload->accounts->defaults = (struct account_defaults){
        .concurrency = number(settings, SETTING_key_concurrency),
        .runs_per_minute = number(settings, SETTING_key_runs_per_minute),
        .cpu_seconds_per_day = number(settings, SETTING_key_cpu_seconds_per_day),
        .log_bytes_per_day = (uint64_t) number(settings, SETTING_key_log_mib_per_day) << 20,
        .queue = number(settings, SETTING_key_queue),
    };
    import_counts_enable(number(settings, SETTING_count_imports) != 0);
    if (reload->is_private)
        return;
    reload->accounts->oauth = &oauth;
    oauth_configure(reload->accounts->oauth, text_of(settings, SETTING_oauth_issuer),
                    text_of(settings, SETTING_oauth_audience),
                    text_of(settings, SETTING_oauth_keys));
    accounts_look_at_issuer(reload->accounts);
    if (reload->applied)
        reload->applied(settings);
    reload->pool->pool_classes.min = number(settings, SETTING_pool_min);
    reload->pool->pool_classes.max = number(settings, SETTING_pool_max);
    log_until((enum log_level) number(settings, SETTING_log_level));
    log_one_in(number(settings, SETTING_log_sample));
    log_as_json(number(settings, SETTING_log_format) != 0);
}

/* Records in the audit log which policies are in force, and their digests. */
int reload_tell_policies(const struct reload *reload, error *err)
{
    auto_bytes text = { 0 };
    unsigned count = 0;
    if (reload->is_private)
        return 0; /* each receipt names the digest of its policy */
    for (size_t i = 0; i < reload->policies->count; i++) {
        const struct policy *policy = policies_at(reload->policies, i);
        if (policy)
            bytes_print(&text, "%s%s %s", count++ > 0 ? ", " : "", policy->name, policy->digest);
    }
    const struct event_field fields[] = { { "count", NULL, count },
                                          { "policies", bytes_text(&text), 0 },
                                          { 0 } };
    return audit_write(reload->runs->receipts, "policies.loaded", fields, err);
}

/* A default policy that does not exist is no error: its file may be added later. */
static void look_for_usual(const struct reload *reload)
{
    const char *name = reload->policies->usual;
    const struct policy *policy;
    error err;
    if (*name && policies_find(reload->policies, name, &policy, &err) < 0)
        log_event(CONFIG_DEFAULT_POLICY, TEXT("cause", err.text),
                  TEXT("instead", "requests that name no policy are refused"));
}

/* The new settings are already in force, so a failure to write the audit log is only reported. */
static void tell_log(const struct reload *reload, const char *changes, const char *policies)
{
    error err;
    const struct event_field fields[] = { { "policies", policies, 0 },
                                          { "settings", changes, 0 },
                                          { 0 } };
    if (audit_write(reload->runs->receipts, "config.reloaded", fields, &err) < 0 ||
        (policies[0] && reload_tell_policies(reload, &err) < 0))
        log_event(AUDIT_WRITE_FAILED, TEXT("cause", err.text));
}

static int take(struct reload *reload, const char *text, error *err)
{
    static struct settings fresh;
    char changes[CHANGES_MAX], policies[CHANGES_MAX];
    fresh = reload->settings;
    if (reload_read(text, &fresh, err) < 0 ||
        policies_reload(reload->policies, reload->policies_path, policies, sizeof policies, err) <
            0)
        return -1;
    (void) settings_differ(&reload->settings, &fresh, true, changes, sizeof changes);
    reload->settings = fresh;
    reload_apply(reload);
    look_for_usual(reload);
    tell_log(reload, changes, policies);
    log_event(CONFIG_RELOADED, TEXT("settings", changes[0] ? changes : "unchanged"),
              TEXT("policies", policies[0] ? policies : "unchanged"));
    return 0;
}

static void send_word(const struct reload *reload, const char *word)
{
    (void) !send(reload->socket, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* `glovebox status` shows why the last reload was refused. */
static void remember(struct reload *reload, const error *cause)
{
    reload->policies->refused.at_ms = cause ? wall_clock_ms() : 0;
    if (cause)
        reload->policies->refused.cause = *cause;
}

static void on_message(uv_poll_t *poll, int status, int events)
{
    static char text[SETTINGS_TEXT_MAX];
    struct reload *reload = poll->data;
    error err;
    (void) events;
    ssize_t got = status < 0 ? 0 : recv(reload->socket, text, sizeof text - 1, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0)
            (void) uv_poll_stop(poll); /* the parent has ended, and this process ends with it */
        return;
    }
    text[got] = '\0';
    bool is_unread = text[0] == SETTINGS_REFUSED[0]; /* the parent has logged that */
    bool is_taken = !is_unread && take(reload, text, &err) == 0;
    if (is_unread)
        (void) fail(&err, ERR_BAD_REQUEST, "%s", text + 1);
    else if (!is_taken)
        log_event(CONFIG_REFUSED, TEXT("cause", err.text), TEXT("instead", "nothing was changed"));
    remember(reload, is_taken ? NULL : &err);
    send_word(reload, is_taken ? "taken" : "refused");
}

int reload_open(struct reload *reload, uv_loop_t *loop, int socket, error *err)
{
    reload->socket = socket;
    look_for_usual(reload);
    int result = uv_poll_init(loop, &reload->poll, socket);
    if (result < 0)
        return fail(err, ERR_SYSTEM, "watch the parent's socket: %s", uv_strerror(result));
    reload->poll.data = reload;
    reload->is_open = true;
    (void) uv_poll_start(&reload->poll, UV_READABLE, on_message);
    uv_unref((uv_handle_t *) &reload->poll);
    send_word(reload, "ready");
    return 0;
}

void reload_close(struct reload *reload)
{
    if (!reload->is_open)
        return;
    reload->is_open = false;
    uv_close((uv_handle_t *) &reload->poll, NULL);
    (void) close(reload->socket);
}
