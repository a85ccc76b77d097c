/* glovebox-notify - sends what gloveboxd reports: approvals to a webhook, checkpoints of the log to
 * a witness, spans of runs to an OpenTelemetry collector.
 *
 *     glovebox-notify --daemon FD [--webhook URL --webhook-secret FD=PATH --webhook-attempts N]
 *                     [--log-witness URL] [--otlp-endpoint URL] [--resolver ADDRESS:PORT]
 *                     [--ca-file FD=PATH]
 *
 * gloveboxd itself makes no connections. This program is unprivileged, opens no file after its
 * start, connects only to the URLs of its command line, and ends when gloveboxd does. */
#include "notify/notify.h"

#include "base/cleanup.h"
#include "base/io_uring.h"
#include "base/signals.h"
#include "base/table.h"
#include "outbound/arguments.h"
#include "outbound/confine.h"
#include "outbound/secret_file.h"
#include "policy/settings.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ATTEMPTS = 6 };

struct arguments {
    int daemon, secret, ca_file, attempts;
    const char *webhook, *witness, *traces, *resolver, *secret_path, *ca_path;
};

static int read_arguments(int count, char **words, struct arguments *ret_arguments, error *err)
{
    struct arguments arguments = {
        .daemon = -1, .secret = -1, .ca_file = -1, .attempts = ATTEMPTS
    };
    const struct argument known[] = {
        { "--daemon", &arguments.daemon, NULL },
        { "--resolver", NULL, &arguments.resolver },
        { "--ca-file", &arguments.ca_file, &arguments.ca_path },
        { "--webhook", NULL, &arguments.webhook },
        { "--webhook-secret", &arguments.secret, &arguments.secret_path },
        { "--webhook-attempts", &arguments.attempts, NULL },
        { "--log-witness", NULL, &arguments.witness },
        { "--otlp-endpoint", NULL, &arguments.traces },
    };
    if (arguments_read(count, words, known, COUNT_OF(known), err) < 0)
        return -1;
    if (arguments.daemon < 3)
        return fail(err, ERR_BAD_REQUEST, "only glovebox serve can start this program");
    *ret_arguments = arguments;
    return 0;
}

static int read_secret(struct notify *notify, const struct arguments *arguments, error *err)
{
    static char text[SECRET_FILE_MAX];
    size_t size = 0;
    if (arguments->secret < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "a webhook is signed: name the file of its secret (webhook_secret)");
    const struct secret_file file = { arguments->secret, "webhook secret", arguments->secret_path };
    int result = secret_file_read(&file, text, &size, err);
    if (result == 0)
        result = webhook_secrets_read(text, size, arguments->secret_path, &notify->secrets, err);
    sodium_memzero(text, sizeof text);
    return result;
}

/* Like OTEL_EXPORTER_OTLP_ENDPOINT: to a URL without a path "/v1/traces" is added. */
static int read_traces(struct notify *notify, const char *text, error *err)
{
    char url[URL_MAX];
    size_t length = strlen(text);
    const char *host = strstr(text, "://");
    const char *slash = host ? strchr(host + 3, '/') : NULL;
    bool is_base = host && (!slash || slash[1] == '\0');
    if (slash && is_base)
        length--;
    if (snprintf(url, sizeof url, "%.*s%s", (int) length, text, is_base ? "/v1/traces" : "") >=
        (int) sizeof url)
        return fail(err, ERR_BAD_REQUEST, "otlp_endpoint is longer than %d bytes", URL_MAX - 12);
    return place_read("otlp_endpoint", url, &notify->places[NOTIFY_TRACES], err);
}

/* Reads all files that the program needs, and closes them. */
static int prepare(struct notify *notify, const struct arguments *arguments, error *err)
{
    notify->attempts_max = (unsigned) arguments->attempts;
    if (arguments->webhook &&
        (place_read("webhook", arguments->webhook, &notify->places[NOTIFY_WEBHOOK], err) < 0 ||
         read_secret(notify, arguments, err) < 0))
        return -1;
    if (arguments->witness && setting_is_url(arguments->witness) &&
        place_read("log_witness", arguments->witness, &notify->places[NOTIFY_WITNESS], err) < 0)
        return -1;
    if (traces_open(notify, err) < 0 ||
        (arguments->traces && read_traces(notify, arguments->traces, err) < 0))
        return -1;
    if (transfers_open(&notify->loop, arguments->ca_file, delivery_transfer_ended,
                       &notify->transfers, err) < 0)
        return -1;
    close_fd(&arguments->secret);
    close_fd(&arguments->ca_file);
    return resolver_open(&notify->loop, arguments->resolver, &notify->resolver, err);
}

static int serve(struct notify *notify, const struct arguments *arguments, error *err)
{
    if (refuse_io_uring(err) < 0)
        return -1;
    if (sodium_init() < 0 || uv_loop_init(&notify->loop) < 0 ||
        uv_timer_init(&notify->loop, &notify->turn) < 0)
        return fail(err, ERR_SYSTEM, "make the event loop");
    if (prepare(notify, arguments, err) < 0 || confine_outside(err) < 0 ||
        link_open(notify, arguments->daemon, err) < 0)
        return -1;
    notify->turn.data = notify;
    (void) uv_run(&notify->loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int count, char **words)
{
    static struct notify notify;
    error err = { 0 };
    struct arguments arguments = { 0 };
    signals_outlive();
    (void) signal(SIGINT, SIG_IGN); /* Ctrl-C is for our parent; this program ends after it */
    if (read_arguments(count, words, &arguments, &err) == 0 &&
        serve(&notify, &arguments, &err) == 0)
        return 0;
    (void) fprintf(stderr, "glovebox-notify: %s\n", err.text);
    return err.code == ERR_BAD_REQUEST ? EXIT_MISCONFIGURED : 125;
}
