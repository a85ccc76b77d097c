/* config.c - `glovebox config`: shows settings with their origin, and checks a file. */
#include "cli/common/config.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/common/settings_file.h"
#include "cli/options.h"
#include "supervisor/listen_sockets.h"
#include "json/member.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 64 * 1024 };

static int read_file(struct settings *settings, const char *path, error *err)
{
    static char text[FILE_MAX + 1];
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail(err, ERR_NOT_FOUND, "cannot read '%s': %s; check the name", path,
                    strerrordesc_np(errno));
    ssize_t size = read(file, text, sizeof text);
    if (size < 0)
        return fail_os(err, "cannot read '%s'", path);
    if (size > FILE_MAX)
        return fail(err, ERR_TOO_LARGE, "'%s' has more than %d bytes", path, FILE_MAX);
    return settings_read(settings, path, text, (size_t) size, err);
}

static char capital(char letter)
{
    return (char) toupper((unsigned char) letter);
}

static int read_environment(struct settings *settings, error *err)
{
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        char name[64];
        (void) snprintf(name, sizeof name, "GLOVEBOX_%s", setting_rows[id].key);
        for (char *letter = name; *letter; letter++)
            *letter = capital(*letter);
        const char *value = environment_text(name);
        if (value && settings_set(settings, id, value, name, err) < 0)
            return under(err, "%s", name);
    }
    return 0;
}

static int check(const struct settings *settings, error *err)
{
    const char *listen = settings_text(settings, SETTING_listen);
    struct sockaddr_storage unused;
    socklen_t size;
    if (listen && listen_address_read(listen, &unused, &size, err) < 0)
        return under(err, "%s", settings->list[SETTING_listen].origin);
    return settings_check(settings, err);
}

int config_read(const struct config_flags *flags, struct settings *ret_settings, error *err)
{
    static const char system_file[] = GLOVEBOX_SYSCONFDIR "/glovebox.yaml";
    const char *file = flags->file ? flags->file : environment_text("GLOVEBOX_CONFIG");
    static struct settings settings;
    settings_init(&settings);
    if (!file && access(system_file, R_OK) == 0)
        file = system_file;
    if ((file && read_file(&settings, file, err) < 0) || read_environment(&settings, err) < 0)
        return -1;
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        char origin[64];
        (void) snprintf(origin, sizeof origin, "--%s", setting_rows[id].flag);
        if (flags->values[id] && settings_set(&settings, id, flags->values[id], origin, err) < 0)
            return under(err, "%s", origin);
    }
    *ret_settings = settings;
    return check(ret_settings, err);
}

struct config_arguments {
    const char *file;
    enum setting_id only; /* SETTINGS: all */
    bool origin, json;
};

#define FIELD(name) offsetof(struct config_arguments, name)

static const struct option_row rows[] = {
    { "origin", 0, NULL, VALUES_NONE, "show: say where each value comes from", store_switch,
      FIELD(origin) },
    { "config", 0, "FILE", VALUES_FILE, "read this file instead of the system's", store_text,
      FIELD(file) },
    { "json", 0, NULL, VALUES_NONE, "the same for programs", store_switch, FIELD(json) },
};

const struct option_table config_option_table = {
    .verb = "config",
    .examples = "  glovebox config show --origin              each setting, and its origin\n"
                "  glovebox config validate glovebox.yaml     check a file, with line and column\n"
                "  glovebox config show slots                 one of them\n"
                "  glovebox config keys                       every setting with its meaning\n",
    .usage = "show|validate|keys [OPTIONS] [FILE|NAME]",
    .more = "Settings come from /etc/glovebox/glovebox.yaml (\"name: value\" a line), then from\n"
            "GLOVEBOX_NAME in the environment, then from flags of glovebox serve; the later\n"
            "wins.\n",
    OPTION_ROWS(rows),
};

static int show(const struct config_arguments *arguments, const char *file, error *err)
{
    static struct settings settings;
    struct config_flags flags = { .file = file ? file : arguments->file };
    if (config_read(&flags, &settings, err) < 0)
        return -1;
    auto_json object = json_object_new_object();
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        if (arguments->only != SETTINGS && arguments->only != id)
            continue;
        const struct setting_value *value = &settings.list[id];
        json_object *row = json_object_new_object();
        (void) json_object_object_add(row, "value", json_object_new_string(value->text));
        (void) json_object_object_add(row, "origin", json_object_new_string(value->origin));
        (void) json_object_object_add(object, setting_rows[id].key, row);
        if (arguments->origin && !arguments->json)
            (void) printf("%-24s %-20s %s\n", setting_rows[id].key,
                          value->text[0] ? value->text : "\"\"", value->origin);
        else if (!arguments->json)
            (void) printf("%s: %s\n", setting_rows[id].key, value->text[0] ? value->text : "\"\"");
    }
    if (arguments->json)
        (void) puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE));
    return 0;
}

/* The settings may be for another machine: what is not on this one is said, and is no failure. */
static void tell_missing_files(const struct settings *settings)
{
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        const char *path = settings->list[id].text;
        bool is_file = setting_rows[id].type == SETTING_FILE || id == SETTING_oauth_keys;
        if (!is_file || !*path || access(path, F_OK) == 0)
            continue;
        error why;
        (void) fail_os(&why, "%s: %s is to be there when serve starts: '%s'",
                       settings->list[id].origin, setting_rows[id].key, path);
        (void) complain("%s", why.text);
    }
}

static int validate(const struct config_arguments *arguments, const char *file, error *err)
{
    static struct settings settings;
    const char *named = file ? file : arguments->file;
    const char *path = named ? named : GLOVEBOX_SYSCONFDIR "/glovebox.yaml";
    settings_init(&settings);
    int result = read_file(&settings, path, err) < 0 ? -1 : check(&settings, err);
    if (result == 0)
        tell_missing_files(&settings);
    if (arguments->json)
        (void) printf("{\"valid\":%s}\n", result == 0 ? "true" : "false");
    else if (result == 0)
        (void) printf("%s is valid\n", path);
    return result;
}

static int keys(const struct config_arguments *arguments, const char *file, error *err)
{
    if (file)
        return fail(err, ERR_NOT_FOUND, "no setting is named '%s'; glovebox config keys lists all",
                    file);
    auto_json every = json_object_new_array();
    for_each(row, setting_rows) {
        if (arguments->only != SETTINGS && row != setting_rows + arguments->only)
            continue;
        if (!arguments->json)
            (void) printf("%-24s %-10s %-8s %s\n", row->key, row->start[0] ? row->start : "\"\"",
                          row->reloads ? "SIGHUP" : "restart", row->text);
        json_object *one = json_object_new_object();
        (void) json_object_object_add(one, "key", json_object_new_string(row->key));
        (void) json_object_object_add(one, "default", json_object_new_string(row->start));
        (void) json_object_object_add(one, "reloads", json_object_new_boolean(row->reloads));
        (void) json_object_object_add(one, "text", json_object_new_string(row->text));
        (void) json_object_array_add(every, one);
    }
    if (arguments->json)
        (void) puts(json_object_to_json_string_ext(every, JSON_C_TO_STRING_NOSLASHESCAPE));
    return 0;
}

int command_config(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*take)(const struct config_arguments *arguments, const char *file, error *err);
    } actions[] = { { "show", show }, { "validate", validate }, { "keys", keys } };
    struct config_arguments arguments = { 0 };
    const char *given[2] = { NULL, NULL };
    struct words words = { argc, argv, 1, given, 2 };
    error err = { 0 };
    int outcome = options_read_all(&config_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    arguments.only =
        given[1] && strcmp(given[0], "validate") != 0 ? setting_find(given[1]) : SETTINGS;
    if (arguments.only != SETTINGS)
        given[1] = NULL;
    for_each(action, actions)
        if (given[0] && strcmp(action->name, given[0]) == 0)
            return action->take(&arguments, given[1], &err) < 0 ? complain_of(&err) : 0;
    return complain_of_verb("config", given[0]);
}
