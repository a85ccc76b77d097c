/* verify.c - reads the log that the daemons of a seed have left: it is whole, and each run that
 * began has one receipt in it, the one that was answered. */
#include "simulate.h"

#include "base/cleanup.h"
#include "ledger/envelope.h"
#include "ledger/key.h"
#include "ledger/segment.h"
#include "ledger/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct reading {
    unsigned receipts[SIM_RUNS_MAX];
    bool has_answered[SIM_RUNS_MAX]; /* the receipt that its answer named */
};

static void on_problem(void *context, const char *what, const char *why)
{
    (void) context;
    finding("the log does not verify: %s: %s", what, why);
}

static bool has_text(const struct bytes *payload, const char *before, const char *text)
{
    char words[RUN_TEXT * 2 + 32];
    int size = snprintf(words, sizeof words, "%s%s\"", before, text);
    return text[0] && memmem(payload->data, payload->size, words, (size_t) size);
}

static int read_record(void *context, const struct record *record, error *err)
{
    struct reading *reading = context;
    struct envelope envelope;
    if (envelope_read(record->data, record->size, &envelope, err) < 0)
        return -1;
    bool is_receipt = strcmp(envelope.type, TYPE_STATEMENT) == 0;
    for (unsigned i = 0; is_receipt && i < world->run_count; i++) {
        if (!has_text(&envelope.payload, "\"id\":\"", world->runs[i].id))
            continue;
        reading->receipts[i]++;
        reading->has_answered[i] |=
            has_text(&envelope.payload, "\"id\":\"", world->runs[i].receipt);
    }
    envelope_done(&envelope);
    return 0;
}

static void check_runs(const struct reading *reading)
{
    for (unsigned i = 0; i < world->run_count; i++) {
        const struct sim_run *run = &world->runs[i];
        trace("%s of order %u: %u receipts", run->id, run->order, reading->receipts[i]);
        if (reading->receipts[i] > 1)
            finding("%s has %u receipts", run->id, reading->receipts[i]);
        if (run->is_executed && reading->receipts[i] == 0 && !run->may_lack_receipt)
            finding("%s ran and has no receipt", run->id);
        if (run->receipt[0] && !reading->has_answered[i] && !run->may_lack_receipt)
            finding("%s was answered with receipt %s, which is not in the log", run->id,
                    run->receipt);
    }
}

static int read_key(int folder, struct public_key *ret_key, error *err)
{
    char text[KEY_TEXT_SIZE + 8] = "";
    auto_fd file = openat(folder, "key.pub", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0)
        return fail_os(err, "read the key of the log");
    return public_key_read(text, ret_key, err);
}

void verify_log(void)
{
    static struct reading reading;
    char path[200];
    error err;
    struct public_key key;
    struct verify_report report = { 0 };
    memset(&reading, 0, sizeof reading);
    (void) snprintf(path, sizeof path, "%s/log", places.state);
    auto_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || read_key(folder, &key, &err) < 0) {
        finding("the log has no key");
        return;
    }
    struct verify_order order = {
        .folder = folder, .key = &key, .every_signature = one_in(10), .problem = on_problem
    };
    if (log_verify(&order, &report, &err) < 0)
        finding("the log cannot be verified: %s", err.text);
    else if (report.covered != report.size)
        finding("the last checkpoint covers %llu records of %llu",
                (unsigned long long) report.covered, (unsigned long long) report.size);
    if (segments_each(folder, 0, read_record, &reading, &err) < 0)
        finding("the log cannot be read: %s", err.text);
    trace("the log has %llu records", (unsigned long long) report.size);
    check_runs(&reading);
}
