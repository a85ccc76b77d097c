/* serve.c - `glovebox serve`: reads the settings, makes the sockets, and starts and supervises
 * gloveboxd and glovebox-spawner. The flags are the rows of settings.def. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "cli/common/config.h"
#include "cli/options.h"
#include "supervisor/install_paths.h"
#include "supervisor/supervisor.h"

#include <string.h>
#include <unistd.h>

#define SYSTEM_FILE GLOVEBOX_SYSCONFDIR "/glovebox.yaml"

static int store_setting(void *into, const struct option_row *row, const char *value, error *err);

enum { OWN_ROWS = 1 };

/* `field` is the number of the setting; a flag without a value means true. */
static const struct option_row rows[OWN_ROWS + SETTINGS] = {
    { "config", 0, "FILE", VALUES_FILE,
      "read settings from this file; default: /etc/glovebox/glovebox.yaml if it is there",
      store_text, offsetof(struct config_flags, file) },
#define VALUE_SETTING_TEXT   "TEXT"
#define VALUE_SETTING_FILE   "FILE"
#define VALUE_SETTING_SYNC   "group|each"
#define VALUE_SETTING_FLAG   NULL
#define VALUE_SETTING_COUNT  "N"
#define VALUE_SETTING_LEVEL  "LEVEL"
#define VALUE_SETTING_FORMAT "FORMAT"
#define SETTING(key, flag, type, start, min, max, when, programs, text) \
    { flag, 0, VALUE_SETTING_##type, VALUES_FILE, text, store_setting, SETTING_##key },
#include "policy/settings.def"
};

static int store_setting(void *into, const struct option_row *row, const char *value, error *err)
{
    struct config_flags *flags = into;
    (void) err;
    flags->values[row->field] = row->value ? value : "true";
    return 0;
}

const struct option_table serve_option_table = {
    .verb = "serve",
    .examples = "  glovebox serve                        serve on the default Unix socket\n"
                "  glovebox serve --listen 127.0.0.1:7070\n"
                "  glovebox serve --config /etc/glovebox/glovebox.yaml\n",
    .usage = "[OPTIONS]",
    .more = "Stays in the foreground and logs to stderr; SIGTERM lets runs end, then leaves;\n"
            "SIGHUP reads settings and policies again. The Unix socket is its owner's;\n"
            "callers over TCP need a key: glovebox key create. Each flag is a setting too:\n"
            "glovebox config keys. A flag without value says true; GLOVEBOX_NAME=false or the\n"
            "file says the other.\n",
    OPTION_ROWS(rows),
};

/* Writes the settings of gloveboxd. Those that need a restart keep their value. */
static void write_settings(const struct settings *settings, char text[SETTINGS_TEXT_MAX])
{
    size_t used = 0;
    text[0] = '\0';
    for (enum setting_id id = 0; id < SETTINGS; id++)
        if ((setting_rows[id].programs & SETTING_TO_DAEMON) && used < SETTINGS_TEXT_MAX)
            used += (size_t) snprintf(text + used, SETTINGS_TEXT_MAX - used, "%s=%s\n",
                                      setting_rows[id].key, settings->list[id].text);
}

struct reloading {
    struct config_flags flags;
    struct settings in_use;
};

/* Reads the settings again. All are checked before any changes. */
static int read_again(void *context, char text[SETTINGS_TEXT_MAX], char *ret_restart, size_t size,
                      error *err)
{
    struct reloading *reloading = context;
    static struct settings fresh;
    if (config_read(&reloading->flags, &fresh, err) < 0)
        return -1;
    (void) settings_differ(&reloading->in_use, &fresh, false, ret_restart, size);
    for (enum setting_id id = 0; id < SETTINGS; id++)
        if (setting_rows[id].reloads)
            reloading->in_use.list[id] = fresh.list[id];
    write_settings(&reloading->in_use, text);
    return 0;
}

static int serve(struct reloading *reloading, error *err)
{
    const struct settings *settings = &reloading->in_use;
    const char *given = settings_text(settings, SETTING_socket);
    auto_text socket = NULL;
    int found = given ? format_text(&socket, err, "%s", given)
                      : path_of_socket(settings_text(settings, SETTING_state), &socket, err);
    struct supervised service = {
        .socket = socket, .settings = settings, .read_again = read_again, .context = reloading
    };
    write_settings(settings, service.daemon_settings);
    if (found == 0 && supervise(&service, err) == 0)
        return 0;
    /* Root's file applies to the services of all users, who may not expect it. */
    for (enum setting_id id = 0; id < SETTINGS && geteuid() != 0; id++)
        if (strncmp(settings->list[id].origin, SYSTEM_FILE, strlen(SYSTEM_FILE)) == 0)
            return under(err, "%s is that of " SYSTEM_FILE " (--config FILE reads another)",
                         setting_rows[id].key);
    return -1;
}

int command_serve(int argc, char **argv)
{
    static struct reloading reloading;
    error err = { 0 };
    struct words words = { argc, argv, 1 };
    int outcome = options_read_all(&serve_option_table, &reloading.flags, &words, &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome == 0)
        outcome = config_read(&reloading.flags, &reloading.in_use, &err);
    if (outcome == 0)
        outcome = serve(&reloading, &err);
    return outcome < 0 ? complain_of(&err) : 0;
}
