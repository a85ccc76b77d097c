/* setup_answers.c - see setup_answers.h. */
#include "cli/operate/setup_answers.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "keys/key.h"
#include "policy/policy.h"
#include "supervisor/install_paths.h"
#include "supervisor/listen_sockets.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

static const char none[] = "none";

bool setup_wants(const struct setup_answers *answers, enum setup_answer id)
{
    return strcmp(answers->list[id], none) != 0;
}

const char *setup_next_word(const char *list, char ret_word[SETTING_SIZE])
{
    if (!list || !*list)
        return NULL;
    size_t size = strcspn(list, ",");
    const char *rest = list + size + (list[size] == ',');
    while (size > 0 && *list == ' ') {
        list++;
        size--;
    }
    while (size > 0 && list[size - 1] == ' ')
        size--;
    (void) snprintf(ret_word, SETTING_SIZE, "%.*s", (int) size, list);
    return rest;
}

/* Lists the names of the files *.yaml in a folder. */
static void list_files(const char *folder, char *text, size_t size)
{
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    size_t count = 0, used = 0;
    error unused;
    text[0] = '\0';
    if (policy_list(folder, names, &count, &unused) < 0)
        return;
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
}

void setup_list_sets(char *text, size_t size)
{
    auto_text folder = NULL;
    auto_text sets = NULL;
    error unused;
    text[0] = '\0';
    if (path_of_public_sets(&folder, &unused) == 0 &&
        format_text(&sets, &unused, "%s/sets", folder) == 0)
        list_files(sets, text, size);
}

void setup_list_templates(char *text, size_t size)
{
    auto_text folder = NULL;
    error unused;
    text[0] = '\0';
    if (path_of_data("templates", &folder, &unused) == 0)
        list_files(folder, text, size);
}

static int check_state(const char *text, error *err)
{
    return text[0] == '/' ? 0
                          : fail(err, ERR_BAD_REQUEST,
                                 "the data folder is a path that begins with /, not '%s'", text);
}

static int check_listen(const char *text, error *err)
{
    struct sockaddr_storage unused;
    socklen_t size;
    return listen_address_read(text, &unused, &size, err);
}

/* Is the word a valid name for `key create`? Commas separate names, so it has none. */
static int check_key(const char *word, error *err)
{
    if (text_find_unclean(word, strlen(word)) == strlen(word) && strlen(word) < API_KEY_NAME_SIZE)
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "a key's name is up to %d bytes of UTF-8 without control characters, not '%s'",
                API_KEY_NAME_SIZE - 1, word);
}

/* Is the word in a list from setup_list_…()? */
static int check_listed(const char *word, const char *what, const char *list, error *err)
{
    char other[SETTING_SIZE];
    for (const char *rest = setup_next_word(list, other); rest; rest = setup_next_word(rest, other))
        if (strcmp(other, word) == 0)
            return 0;
    return fail(err, ERR_BAD_REQUEST, "there is no %s '%s'; there are: %s", what, word, list);
}

static int check_set(const char *word, error *err)
{
    char list[SETTING_SIZE];
    setup_list_sets(list, sizeof list);
    return check_listed(word, "set", list, err);
}

static int check_template(const char *word, error *err)
{
    char list[SETTING_SIZE];
    setup_list_templates(list, sizeof list);
    return check_listed(word, "template", list, err);
}

int setup_check(enum setup_answer id, const char *text, error *err)
{
    static const struct {
        const char *what;
        int (*check)(const char *word, error *err);
        unsigned max; /* most words; 0: the answer is one text */
    } rows[SETUP_ANSWERS] = {
        [SETUP_STATE] = { "the data folder", check_state, 0 },
        [SETUP_LISTEN] = { "the address", check_listen, 0 },
        [SETUP_KEYS] = { "keys", check_key, 16 },
        [SETUP_NETWORK] = { "sets", check_set, NETWORK_SETS_MAX },
        [SETUP_TEMPLATES] = { "templates", check_template, 8 },
    };
    char word[SETTING_SIZE];
    unsigned count = 0;
    if (strlen(text) >= SETTING_SIZE || text[strcspn(text, "\r\n\t")])
        return fail(err, ERR_BAD_REQUEST, "%s: one line of up to %d bytes", rows[id].what,
                    SETTING_SIZE - 1);
    if (strcmp(text, none) == 0 && id != SETUP_STATE)
        return 0;
    if (rows[id].max == 0)
        return rows[id].check(text, err);
    for (const char *rest = setup_next_word(text, word); rest; rest = setup_next_word(rest, word)) {
        if (!*word)
            return fail(err, ERR_BAD_REQUEST,
                        "%s: names with a comma between them, or none, not '%s'", rows[id].what,
                        text);
        if (rows[id].check(word, err) < 0)
            return -1;
        if (++count > rows[id].max)
            return fail(err, ERR_TOO_LARGE, "%s: more than %u", rows[id].what, rows[id].max);
    }
    return count > 0 ? 0 : fail(err, ERR_BAD_REQUEST, "%s: write none", rows[id].what);
}

static const struct {
    enum setup_answer answer;
    const char *key;
} settings[] = { { SETUP_STATE, "state" }, { SETUP_LISTEN, "listen" } };

static bool is_asked_for(const char *line)
{
    for_each(row, settings) {
        size_t length = strlen(row->key);
        if (strncmp(line, row->key, length) == 0 &&
            line[length + strspn(line + length, " ")] == ':')
            return true;
    }
    return false;
}

void setup_write_settings(const char *before, const struct setup_answers *answers,
                          struct bytes *ret_text)
{
    if (!before)
        bytes_print(ret_text,
                    "# Settings of glovebox serve; glovebox config keys explains each.\n");
    for (const char *line = before; line && *line;) {
        size_t length = strcspn(line, "\n");
        if (!is_asked_for(line))
            bytes_print(ret_text, "%.*s\n", (int) length, line);
        line += length + (line[length] == '\n');
    }
    for_each(row, settings)
        if (setup_wants(answers, row->answer)) {
            auto_bytes quoted = { 0 };
            json_string(&quoted, answers->list[row->answer]); /* YAML can read JSON texts */
            bytes_print(ret_text, "%s: %s\n", row->key, bytes_text(&quoted));
        }
    if (ret_text->size > 0) /* replace_file() adds the end of the last line */
        ret_text->size--;
}

void setup_write_policy(const struct setup_answers *answers, struct bytes *ret_text)
{
    const char *sets = answers->list[SETUP_NETWORK];
    bytes_print(ret_text,
                "name: online\n"
                "extends: data\n"
                "description: As data, and runs reach the hosts of the sets %s.\n"
                "network: {sets: [%s]}",
                sets, sets);
}
