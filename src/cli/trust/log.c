/* log.c - `glovebox log`: shows and copies the log of receipts, from its files alone. */
#include "cli/trust/log.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/audit_event.h"
#include "cli/common/inputs.h"
#include "cli/options.h"
#include "cli/trust/log_verify.h"
#include "ledger/chain.h"
#include "ledger/segment.h"
#include "model/limits.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_NOTHING_FOUND = 1, TAIL_COUNT = 20 };

typedef int answer(const struct log_arguments *arguments, int folder, error *err);

static answer tail, search, export_log, print_checkpoint, print_key, rotate_key;

static const struct verb {
    const char *name;
    answer *answer;
} verbs[] = {
    { "verify", log_verify_answer }, { "tail", tail },     { "search", search },
    { "export", export_log },        { "key", print_key }, { "checkpoint", print_checkpoint },
    { "rotate-key", rotate_key },
};

/* --- tail, search ----------------------------------------------------------------------------- */

struct looking {
    const struct log_arguments *arguments;
    uint64_t found, skipped;
    bool is_of_receipts;
};

static int show_record(struct looking *looking, const struct record *record, error *err)
{
    struct found_receipt found;
    if (receipt_take(record->data, record->size, &found, err) < 0)
        return under(err, "record %" PRIu64, record->index);
    looking->found++;
    if (looking->arguments->json && looking->is_of_receipts)
        (void) printf("%c%s", looking->found == 1 ? '[' : ',', bytes_text(&found.envelope.payload));
    else if (looking->arguments->json)
        (void) printf("%s\n", bytes_text(&found.envelope.payload));
    else
        print_record_line(record->index, found.payload);
    found_receipt_done(&found);
    return 0;
}

/* Does a record have the word? NAME:VALUE is a member, any other word may be anywhere. */
static bool has_word(const struct bytes *payload, const char *word)
{
    char member[256];
    const char *colon = strchr(word, ':');
    if (colon && (size_t) (colon - word) < 64 && strlen(colon) < 128) {
        (void) snprintf(member, sizeof member, "\"%.*s\":\"%s\"", (int) (colon - word), word,
                        colon + 1);
        if (memmem(payload->data, payload->size, member, strlen(member)))
            return true;
        (void) snprintf(member, sizeof member, "\"%.*s\":%s", (int) (colon - word), word,
                        colon + 1);
        return memmem(payload->data, payload->size, member, strlen(member));
    }
    return memmem(payload->data, payload->size, word, strlen(word));
}

static int search_record(void *context, const struct record *record, error *err)
{
    struct looking *looking = context;
    auto_envelope envelope = { 0 };
    if (envelope_read(record->data, record->size, &envelope, err) < 0)
        return under(err, "record %" PRIu64, record->index);
    bool has_all = true;
    for (int i = 0; i < looking->arguments->operand_count; i++)
        has_all = has_all && has_word(&envelope.payload, looking->arguments->operands[i]);
    return has_all ? show_record(looking, record, err) : 0;
}

static int search(const struct log_arguments *arguments, int folder, error *err)
{
    struct looking looking = { .arguments = arguments };
    if (segments_each(folder, 0, search_record, &looking, err) < 0)
        return -1;
    return looking.found > 0 ? 0 : EXIT_NOTHING_FOUND;
}

/* An unreadable record is wanted as well; show_record() says what is wrong with it. */
static bool is_wanted(const struct looking *looking, const struct record *record)
{
    auto_envelope envelope = { 0 };
    error unused;
    if (!looking->is_of_receipts ||
        envelope_read(record->data, record->size, &envelope, &unused) < 0)
        return true;
    return has_word(&envelope.payload, "\"predicateType\"");
}

static int count_record(void *context, const struct record *record, error *err)
{
    struct looking *looking = context;
    (void) err;
    looking->found += is_wanted(looking, record);
    return 0;
}

static int tail_record(void *context, const struct record *record, error *err)
{
    struct looking *looking = context;
    if (!is_wanted(looking, record))
        return 0;
    if (looking->skipped == 0)
        return show_record(looking, record, err);
    looking->skipped--;
    return 0;
}

/* Reads the newest two segments, since the last one may have just begun. */
static int show_last(const struct log_arguments *arguments, int folder, bool is_of_receipts,
                     error *err)
{
    struct looking looking = { .arguments = arguments, .is_of_receipts = is_of_receipts };
    auto_free uint64_t *firsts = NULL;
    size_t segments = 0;
    if (segments_list(folder, &firsts, &segments, err) < 0)
        return -1;
    uint64_t first = segments == 0 ? 0 : firsts[segments > 1 ? segments - 2 : 0];
    uint64_t count = TAIL_COUNT;
    error unused;
    if (arguments->count && limit_parse(LIMIT_processes, arguments->count, &count, &unused) < 0)
        return fail(err, ERR_BAD_REQUEST, "--count takes a whole number such as 20, not '%.40s'",
                    arguments->count);
    if (segments_each(folder, first, count_record, &looking, err) < 0)
        return -1;
    looking.skipped = looking.found > count ? looking.found - count : 0;
    looking.found = 0;
    if (segments_each(folder, first, tail_record, &looking, err) < 0)
        return -1;
    if (is_of_receipts && arguments->json)
        (void) puts(looking.found > 0 ? "]" : "[]");
    return 0;
}

static int tail(const struct log_arguments *arguments, int folder, error *err)
{
    return show_last(arguments, folder, false, err);
}

int log_show_receipts(const struct log_arguments *arguments, error *err)
{
    auto_fd folder = -1;
    return log_folder_open(arguments, &folder, err) < 0 ? -1
                                                        : show_last(arguments, folder, true, err);
}

/* --- copies ----------------------------------------------------------------------------------- */

static int copy_file(int from, int to, const char *name, error *err)
{
    auto_fd source = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_fd target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (source < 0 || target < 0)
        return fail_os(err, "copy '%s'", name);
    char block[8192];
    for (;;) {
        ssize_t got = read(source, block, sizeof block);
        if (got == 0)
            return 0;
        if (got < 0 || write(target, block, (size_t) got) != got)
            return fail_os(err, "copy '%s'", name);
    }
}

/* Copies the checkpoint first: segments may grow while they are copied, and still verify. */
static int export_log(const struct log_arguments *arguments, int folder, error *err)
{
    static const char *const files[] = { "checkpoint", "key.pub" };
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (!arguments->out)
        return fail(err, ERR_BAD_REQUEST, "say where to: --out FOLDER (a new one)");
    if (mkdir(arguments->out, 0755) < 0)
        return errno == EEXIST
                   ? fail(err, ERR_BAD_REQUEST,
                          "'%.100s' is there already; --out makes a new folder", arguments->out)
                   : fail_os(err, "make the folder '%s'", arguments->out);
    auto_fd target = open(arguments->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target < 0)
        return fail_os(err, "open the folder '%s'", arguments->out);
    for_each(file, files)
        if (copy_file(folder, target, *file, err) < 0)
            return -1;
    if (segments_list(folder, &firsts, &count, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(firsts[i], name);
        result = copy_file(folder, target, name, err);
    }
    if (result == 0 && faccessat(folder, "key.chain", F_OK, 0) == 0)
        result = copy_file(folder, target, "key.chain", err);
    return result < 0 ? -1 : copy_file(folder, target, "tree", err);
}

static int print_checkpoint(const struct log_arguments *arguments, int folder, error *err)
{
    static const char name[] = "checkpoint";
    auto_text text = NULL;
    size_t size = 0;
    auto_fd file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return fail_os(err, "open the log's '%s'", name);
    if (read_to_end(file, name, &text, &size, err) < 0)
        return -1;
    return log_write_out(arguments, text, size, err);
}

static int print_key(const struct log_arguments *arguments, int folder, error *err)
{
    struct public_key key;
    bool is_own;
    char text[KEY_TEXT_SIZE + 1] = ""; /* and '\n' */
    if (log_key_read(arguments, folder, &key, &is_own, err) < 0)
        return -1;
    (arguments->pem ? public_key_print_pem : public_key_print)(&key, text);
    size_t size = strlen(text);
    if (!arguments->pem)
        text[size++] = '\n';
    return log_write_out(arguments, text, size, err);
}

/* Runs as the user of the log, as gloveboxd does, which reads the new key before its next
 * record. */
static int rotate_key(const struct log_arguments *arguments, int folder, error *err)
{
    static struct key_chain chain;
    auto_text state = NULL;
    if (path_of_state(arguments->state, &state, err) < 0 || tell_rotated_key(state, err) < 0)
        return -1;
    if (key_chain_read(folder, &chain, err) < 0 || chain.count == 0)
        return fail(err, ERR_UNAVAILABLE,
                    "the log '%s/daemon/log' has a new key, but does not show which: glovebox log "
                    "verify names what is wrong",
                    state);
    const struct chain_link *last = &chain.links[chain.count - 1];
    (void) printf("the log '%s/daemon/log' has a new key, named by the last record of the old one: "
                  "%s → %s\n",
                  state, last->from.label, last->to.label);
    return 0;
}

int command_log(int argc, char **argv)
{
    error err = { 0 };
    struct log_arguments arguments;
    int outcome = log_arguments_read(&arguments, argc, argv, "log", &err);
    if (outcome != OPTIONS_TAKEN)
        return outcome == OPTIONS_HELP ? 0 : complain_of(&err);
    for_each(verb, verbs) {
        auto_fd folder = -1;
        if (strcmp(verb->name, argv[1]) != 0)
            continue;
        if (log_folder_open(&arguments, &folder, &err) < 0)
            break;
        int status = verb->answer(&arguments, folder, &err);
        return status < 0 ? complain_of(&err) : status;
    }
    return complain_of(&err);
}
