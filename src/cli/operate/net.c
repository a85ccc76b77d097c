/* net.c - `glovebox net`: how often rules of policies were used, and connections as they happen. */
#include "cli/operate/net.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum {
    ANSWER_MS = 10000,
    SILENCE_MS = 120000, /* the daemon sends at least a comment more often */
    ID_MAX = 36,
};

struct net_arguments {
    const char *socket, *key, *run, *last;
    bool json, unused, once, all;
};

#define FIELD(name) offsetof(struct net_arguments, name)

/* clang-format off */
static const struct option_row rows[] = {
    { "run",    0, "ID", VALUES_NONE, "tail: only connections of this run or session", store_text, FIELD(run) },
    { "last",   0, "N",  VALUES_NONE, "tail: begins with so many that have been; default: 10", store_text, FIELD(last) },
    { "once",   0, NULL, VALUES_NONE, "tail: prints those that have been, and leaves", store_switch, FIELD(once) },
    { "all",    0, NULL, VALUES_NONE, "tail: of all tenants; needs the scopes run,admin", store_switch, FIELD(all) },
    { "unused", 0, NULL, VALUES_NONE, "rules: only those that were never used", store_switch, FIELD(unused) },
    { "json",   0, NULL, VALUES_NONE, "the daemon's answer; of tail an object a line", store_switch, FIELD(json) },
    { "key",    0, "KEY", VALUES_NONE, "API key; default: $GLOVEBOX_API_KEY, else as the daemon's owner", store_text, FIELD(key) },
    { "daemon", 0, "SOCKET|HOST:PORT", VALUES_FILE, "the daemon's socket or port; default: where it is looked for", store_text, FIELD(socket) },
};

const struct option_table net_option_table = {
    .verb = "net",
    .examples =
        "  glovebox net rules                    each rule of each policy, and how often it was used\n"
        "  glovebox net rules --unused           rules that were not used since the daemon began\n"
        "  glovebox net tail                     connections as they begin, end, are refused\n"
        "  glovebox net tail --run run_… --json  those of one run, for programs\n",
    .usage = "rules|tail [OPTIONS]",
    .more = "Ctrl-C ends tail. Counts begin with the daemon.\n",
    OPTION_ROWS(rows),
};
/* clang-format on */

static int print_rules(const struct net_arguments *arguments, error *err)
{
    const struct question question = { arguments->socket, "/v1/network/rules", "application/json",
                                       arguments->key, ANSWER_MS };
    auto_text text = NULL;
    auto_json answer = NULL;
    if (ask_value(&question, &text, &answer, err) < 0)
        return -1;
    if (arguments->json)
        (void) puts(text);
    else
        net_print_rules(answer, arguments->unused);
    return 0;
}

static int on_event(void *context, const char *name, const char *data, error *err)
{
    const struct net_arguments *arguments = context;
    bool is_missed = strcmp(name, "missed") == 0;
    if (arguments->json && !is_missed) {
        (void) puts(data);
    } else {
        auto_json event = json_tokener_parse(data);
        if (!event)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent an event that is none");
        if (is_missed)
            net_print_missed(event);
        else
            net_print_event(event);
    }
    return fflush(stdout) == 0 ? 0 : fail_os(err, "write to stdout");
}

static int follow(const struct net_arguments *arguments, struct http *http, error *err)
{
    struct event_reader reader = { .came = on_event, .context = (void *) (uintptr_t) arguments };
    int result;
    size_t got;
    do {
        char block[8192];
        got = 0;
        http->until = deadline_in(SILENCE_MS);
        result = http_read(http, block, sizeof block, &got, err);
        if (result == 0 && got > 0)
            result = event_reader_feed(&reader, block, got, err);
    } while (result == 0 && got > 0);
    event_reader_done(&reader);
    if (result < 0 || (result == 0 && arguments->once))
        return result;
    return fail(err, ERR_UNAVAILABLE, "the daemon has gone; connections are not told any more");
}

static int tail(const struct net_arguments *arguments, error *err)
{
    static struct http http;
    char path[256];
    const char *id = arguments->run ? arguments->run : "";
    const char *last = arguments->last ? arguments->last : "10";
    if (strlen(id) > ID_MAX || strspn(id, "runse_0123456789abcdf") != strlen(id))
        return fail(err, ERR_BAD_REQUEST, "'%.60s' is no id of a run or session", id);
    if (strlen(last) > 4 || !*last || strspn(last, "0123456789") != strlen(last))
        return fail(err, ERR_BAD_REQUEST, "--last takes a number to 512, not '%.40s'", last);
    (void) snprintf(path, sizeof path, "/v1/network/connections?last=%s&follow=%d&all=%d%s%s", last,
                    arguments->once ? 0 : 1, arguments->all ? 1 : 0, *id ? "&source=" : "", id);
    const struct question question = { arguments->socket, path, "text/event-stream", arguments->key,
                                       ANSWER_MS };
    if (ask_open(&question, &http, err) < 0)
        return -1;
    int result = follow(arguments, &http, err);
    http_done(&http);
    return result;
}

int command_net(int argc, char **argv)
{
    struct net_arguments arguments = { 0 };
    const char *verb = NULL;
    struct words words = { argc, argv, 1, &verb, 1 };
    error err = { 0 };
    int outcome = options_read_all(&net_option_table, &arguments, &words, &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    bool is_rules = verb && strcmp(verb, "rules") == 0;
    if (!is_rules && (!verb || strcmp(verb, "tail") != 0))
        return complain_of_verb("net", verb);
    if (options_check(&net_option_table, &words, verb, &err) < 0)
        return complain_of(&err);
    outcome = is_rules ? print_rules(&arguments, &err) : tail(&arguments, &err);
    return outcome < 0 ? complain_of(&err) : 0;
}
