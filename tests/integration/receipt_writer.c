/* receipt_writer.c - writes receipts as gloveboxd does, as fast as it can, to be killed at any
 * moment:
 *
 *     receipt_writer FOLDER COUNT SYNC_EVERY
 *
 * Each execution is noted, its receipt is written, and only then it is answered: a line on stdout
 * with its id and the index of its record. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "ledger/envelope.h"
#include "ledger/intents.h"
#include "ledger/statement.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ledger *ledger;
static struct intents *intents;

static void say(const char *word, const char *id, uint64_t index)
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s %s %" PRIu64 "\n", word, id, index);
    if (write(STDOUT_FILENO, line, (size_t) size) != size)
        exit(1);
}

static int execute(error *err)
{
    char id[37] = "run_";
    unsigned char chance[16];
    randombytes_buf(chance, sizeof chance);
    (void) sodium_bin2hex(id + 4, sizeof id - 4, chance, sizeof chance);
    struct fact_file code = { .name = "code", .bytes = 8 };
    (void) sodium_bin2hex(code.sha256, sizeof code.sha256, (unsigned char[32]){ 7 }, 32);
    static const struct opening_key nonce = { { 0 } };
    struct receipt_facts facts = { .id = id,
                                   .nonce = &nonce,
                                   .kind = "run",
                                   .language = "python",
                                   .inputs = &code,
                                   .input_count = 1,
                                   .policy = { "data", "sha256:0" },
                                   .template = { "python", "sha256:0" },
                                   .walls = UINT64_MAX,
                                   .verdict = { RUN_OK, FAULT_NONE, LIMITS },
                                   .submitted_ms = wall_clock_ms() };
    struct fact_place machine = { .version = "test", .kernel = "test" };
    struct statement_place place = { .origin = ledger_key(ledger)->name, .at_ms = wall_clock_ms() };
    auto_bytes opened = { 0 };
    auto_bytes statement = { 0 };
    struct intent intent = { .id = id, .opened = &opened };
    unsigned note = 0;
    if (statement_write_opened(&facts, &opened, err) < 0 ||
        intents_note(intents, &intent, &note, err) < 0)
        return -1;
    say("noted", id, 0);
    if (ledger_begin(ledger, &place.before, err) < 0)
        return -1;
    receipt_make_id(place.before.size, place.id);
    if (statement_write(&facts, &machine, &place, &statement, err) < 0 ||
        ledger_commit(ledger, TYPE_STATEMENT, &statement, err) < 0)
        return -1;
    intents_strike(intents, note);
    say("answered", id, place.before.size);
    return 0;
}

static int write_all(const char *path, unsigned long count, unsigned long sync_every, error *err)
{
    static const struct ledger_settings settings = { .segment_max = 256 * 1024, .reserve = 65536 };
    unsigned lost;
    auto_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_os(err, "open '%s'", path);
    if (ledger_open(folder, &settings, &ledger, err) < 0 ||
        intents_recover(folder, ledger, &lost, err) < 0 ||
        intents_open(folder, ledger, &intents, err) < 0)
        return -1;
    say("open", "-", ledger_size(ledger));
    for (unsigned long i = 0; i < count; i++)
        if (execute(err) < 0 ||
            (sync_every > 0 && i % sync_every == 0 && ledger_sync(ledger, err) < 0))
            return -1;
    intents_close(intents);
    ledger_close(ledger);
    return 0;
}

int main(int argc, char **argv)
{
    error err;
    if (argc != 4 || sodium_init() < 0)
        return 2;
    if (write_all(argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), &err) == 0)
        return 0;
    (void) fprintf(stderr, "receipt_writer: %s\n", err.text);
    return 1;
}
