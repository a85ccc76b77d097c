/* log_files.c - reads the files of the log. */
#include "cli/common/log_files.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/common/inputs.h"
#include "cli/options.h"
#include "ledger/segment.h"
#include "ledger/statement.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct log_arguments, name)

/* clang-format off */
#define WHERE \
    { "log",   0, "FOLDER", VALUES_FOLDER, "the folder of the log, or of a copy of it", store_text, FIELD(log) }, \
    { "state", 0, "FOLDER", VALUES_FOLDER, "the state folder, whose log is meant",      store_text, FIELD(state) }

static const struct option_row log_rows[] = {
    WHERE,
    { "json",       0,   NULL,     VALUES_NONE,   "verify, tail, search: the same for programs",        store_switch, FIELD(json) },
    { "public-key", 0,   "FILE",   VALUES_FILE,   "verify, key: the public key, as you have kept it",   store_text,   FIELD(key) },
    { "key",        0,   "FILE",   VALUES_FILE,   NULL,                                                 store_text,   FIELD(key) }, /* its older name */
    { "checkpoint", 0,   "FILE",   VALUES_FILE,   "verify: a checkpoint that you have kept; the log must go on from it", store_text, FIELD(checkpoint) },
    { "witness",    0,   "FILE",   VALUES_FILE,   "verify: the file that --log-witness has kept; the log must go on from all of it", store_text, FIELD(witness) },
    { "signatures", 0,   NULL,     VALUES_NONE,   "verify: check the signature of every record",        store_switch, FIELD(signatures) },
    { "all",        0,   NULL,     VALUES_NONE,   "verify: each thing that is wrong in a line of its own", store_switch, FIELD(all) },
    { "count",      'n', "N",      VALUES_NONE,   "tail: how many records; default: 20",                store_text,   FIELD(count) },
    { "out",        'o', "PLACE",  VALUES_FILE,   "export, checkpoint, key: the new folder, or a file instead of stdout", store_text, FIELD(out) },
    { "pem",        0,   NULL,     VALUES_NONE,   "key: as PEM",                                        store_switch, FIELD(pem) },
};

static const struct option_row receipt_rows[] = {
    WHERE,
    { "json",       0,   NULL,     VALUES_NONE,   "list, show, verify: the same for programs",          store_switch, FIELD(json) },
    { "count",      'n', "N",      VALUES_NONE,   "list: how many; default: 20",                        store_text,   FIELD(count) },
    { "public-key", 0,   "FILE",   VALUES_FILE,   "verify, export: the public key, as you have kept it", store_text,  FIELD(key) },
    { "key",        0,   "FILE",   VALUES_FILE,   NULL,                                                 store_text,   FIELD(key) },
    { "bundle",     0,   NULL,     VALUES_NONE,   "export: with the proof that it stands in the log",   store_switch, FIELD(bundle) },
    { "out",        'o', "FILE",   VALUES_FILE,   "export: write here instead of stdout",               store_text,   FIELD(out) },
};

const struct option_table log_option_table = {
    .verb = "log",
    .examples = "  glovebox log verify                      is everything there, unchanged?\n"
                "  glovebox log verify --public-key kept.pub --checkpoint kept.txt\n"
                "  glovebox log tail -n 5                   the last records\n"
                "  glovebox log search status:limit data    records with all of these words\n"
                "  glovebox log export --out FOLDER         a copy that verifies by itself\n"
                "  glovebox log checkpoint                  the signed size and root, to be kept\n"
                "  glovebox log key --pem                   the public key, to be kept\n"
                "  glovebox log rotate-key                  another key signs from now on\n",
    .usage = "verify|tail|search|export|checkpoint|key|rotate-key [OPTIONS] [WORD…]",
    .more = "Works on the files alone; no daemon is asked. Exit status 1: something does not\n"
            "fit.\n",
    OPTION_ROWS(log_rows),
};

const struct option_table receipt_option_table = {
    .verb = "receipt",
    .examples = "  glovebox receipt list -n 5               the last ones\n"
                "  glovebox receipt show rcp_…              what a receipt says\n"
                "  glovebox receipt verify run.json --public-key kept.pub\n"
                "  glovebox receipt export rcp_… --bundle --out run.json\n",
    .usage = "list|show|verify|export [OPTIONS] [ID|FILE]",
    .more = "Works on the files alone; no daemon is asked. Exit status 1: it does not verify;\n"
            "125: it cannot be read.\n",
    OPTION_ROWS(receipt_rows),
};
/* clang-format on */

/* The options of each verb besides --state, and --log if it only reads. Options that would have no
 * effect are refused. */
static const struct taking {
    const struct option_table *table;
    const char *verb;
    int operands_min, operands_max;
    bool is_writing; /* writes to the log of a state, as its user; so it does not take --log */
} takings[] = {
    /* clang-format off */
    { &log_option_table,     "verify",     0, 0 },
    { &log_option_table,     "tail",       0, 0 },
    { &log_option_table,     "search",     0, OPERANDS_MAX },
    { &log_option_table,     "export",     0, 0 },
    { &log_option_table,     "checkpoint", 0, 0 },
    { &log_option_table,     "key",        0, 0 },
    { &log_option_table,     "rotate-key", 0, 0, .is_writing = true },
    { &receipt_option_table, "list",       0, 0 },
    { &receipt_option_table, "show",       1, 1 },
    { &receipt_option_table, "verify",     1, 1 },
    { &receipt_option_table, "export",     1, 1 },
    /* clang-format on */
};

static const struct taking *find_taking(const struct option_table *table, const char *verb,
                                        error *err)
{
    for_each(taking, takings)
        if (taking->table == table && strcmp(taking->verb, verb) == 0)
            return taking;
    (void) no_such_verb(table->verb, verb, err);
    return NULL;
}

static int check_words(const struct taking *taking, const struct log_arguments *arguments,
                       error *err)
{
    if (taking->is_writing && arguments->log)
        return fail(err, ERR_BAD_REQUEST,
                    "%s %s takes no --log: it changes the log of a state, and no copy; say which: "
                    "--state FOLDER",
                    taking->table->verb, taking->verb);
    if (arguments->operand_count < taking->operands_min)
        return fail(err, ERR_BAD_REQUEST, "which receipt? give its id, or a file");
    if (arguments->operand_count > taking->operands_max)
        return fail(err, ERR_BAD_REQUEST, "%s %s takes no '%.40s'; see glovebox help %s",
                    taking->table->verb, taking->verb, arguments->operands[taking->operands_max],
                    taking->table->verb);
    return 0;
}

int log_arguments_read(struct log_arguments *arguments, int argc, char **argv, const char *verb,
                       error *err)
{
    const struct option_table *table =
        strcmp(verb, "log") == 0 ? &log_option_table : &receipt_option_table;
    struct words words = { argc, argv, 2 };
    *arguments = (struct log_arguments){ 0 };
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        options_print_help(table, stdout);
        return OPTIONS_HELP;
    }
    const struct taking *taking = find_taking(table, verb_meant(verb, argv[1]), err);
    if (!taking)
        return -1;
    while (words.next < argc) {
        int outcome = options_read(table, arguments, &words, err);
        if (outcome != OPTIONS_TAKEN)
            return outcome;
        if (words.next == argc)
            break;
        if (arguments->operand_count == OPERANDS_MAX)
            return fail(err, ERR_BAD_REQUEST, "more than %d words", OPERANDS_MAX);
        arguments->operands[arguments->operand_count++] = argv[words.next++];
    }
    return options_check(table, &words, taking->verb, err) < 0
               ? -1
               : check_words(taking, arguments, err);
}

int log_write_out(const struct log_arguments *arguments, const void *data, size_t size, error *err)
{
    if (!arguments->out)
        return fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0
                   ? 0
                   : fail_os(err, "write to stdout");
    FILE *file = fopen(arguments->out, "we");
    if (!file)
        return fail_os(err, "write '%s'", arguments->out);
    bool is_written = fwrite(data, 1, size, file) == size;
    if (fclose(file) != 0)
        is_written = false;
    return is_written ? 0 : fail_os(err, "write '%s'", arguments->out);
}

int log_folder_open(const struct log_arguments *arguments, int *ret_folder, error *err)
{
    auto_text state = NULL;
    auto_text folder = NULL;
    if (arguments->log) {
        if (format_text(&folder, err, "%s", arguments->log) < 0)
            return -1;
    } else if (path_of_state(arguments->state, &state, err) < 0 ||
               format_text(&folder, err, "%s/daemon/log", state) < 0) {
        return -1;
    }
    *ret_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder < 0 && errno == EACCES)
        return fail(err, ERR_UNAVAILABLE,
                    "'%s' is closed to you; run this as root, or on a copy (--log FOLDER)", folder);
    if (*ret_folder < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "there is no log at '%s': nothing has run with this state folder; name another "
                    "with --state FOLDER, or the log with --log FOLDER",
                    folder);
    return *ret_folder < 0 ? fail_os(err, "open the folder of the log '%s'", folder) : 0;
}

static int read_log_key(int folder, struct public_key *ret_key, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    auto_fd file = folder < 0 ? -1 : openat(folder, "key.pub", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail(err, ERR_NOT_FOUND, "no public key is known; give one: --public-key FILE");
    if (read_to_end(file, "key.pub", &text, &size, err) < 0)
        return -1;
    return public_key_read(text, ret_key, err) < 0 ? under(err, "key.pub") : 0;
}

int log_key_read(const struct log_arguments *arguments, int folder, struct public_key *ret_key,
                 bool *ret_is_own, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    struct public_key own;
    error unused;
    *ret_is_own = !arguments->key;
    if (!arguments->key)
        return read_log_key(folder, ret_key, err);
    if (read_input_file(arguments->key, &text, &size, err) < 0)
        return -1;
    if (public_key_read(text, ret_key, err) < 0)
        return under(err, "%s", arguments->key);
    /* PEM has no name: use that of the log's own key, if it is the same key. */
    if (ret_key->is_bare && read_log_key(folder, &own, &unused) == 0 &&
        strcmp(own.id, ret_key->id) == 0)
        public_key_fill(ret_key, own.name);
    return 0;
}

/* --- receipts --------------------------------------------------------------------------------- */

void found_receipt_done(struct found_receipt *found)
{
    bytes_done(&found->text);
    envelope_done(&found->envelope);
    (void) json_object_put(found->payload);
    (void) json_object_put(found->bundle);
}

int receipt_take(const char *text, size_t size, struct found_receipt *ret_found, error *err)
{
    struct found_receipt found = { 0 };
    static const char bundle_begin[] = "{\"checkpoint\":";
    if (size > sizeof bundle_begin && memcmp(text, bundle_begin, sizeof bundle_begin - 1) == 0) {
        found.bundle = json_tokener_parse(text);
        json_object *envelope = member_at(found.bundle, "envelope");
        if (!envelope) {
            found_receipt_done(&found);
            return fail(err, ERR_BAD_REQUEST, "it begins as a receipt with its proof, and is none");
        }
        bytes_add_text(&found.text,
                       json_object_to_json_string_ext(
                           envelope, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    } else {
        bytes_add(&found.text, text, size);
        if (size > 0 && text[size - 1] == '\n')
            found.text.size--;
    }
    if (envelope_read(found.text.data, found.text.size, &found.envelope, err) < 0) {
        found_receipt_done(&found);
        return -1;
    }
    found.payload = json_tokener_parse(bytes_text(&found.envelope.payload));
    if (!found.payload) {
        found_receipt_done(&found);
        return fail(err, ERR_BAD_REQUEST, "what was signed is no JSON");
    }
    *ret_found = found;
    return 0;
}

static int find_in_file(const char *path, struct found_receipt *ret_found, error *err)
{
    auto_text text = NULL;
    size_t size = 0;
    if (strncmp(path, "rcp_", 4) == 0 && access(path, F_OK) < 0)
        return fail(err, ERR_NOT_FOUND,
                    "'%.60s' is no id of a receipt, and there is no such file; see glovebox "
                    "receipt list",
                    path);
    if (read_input_file(path, &text, &size, err) < 0)
        return -1;
    if (receipt_take(text, size, ret_found, err) == 0)
        return 0;
    (void) under(err, "%s", path);
    return RECEIPT_IS_NONE;
}

int receipt_find(const struct log_arguments *arguments, const char *name,
                 struct found_receipt *ret_found, error *err)
{
    uint64_t index;
    error none;
    int folder;
    if (receipt_read_id(name, &index, &none) < 0)
        return find_in_file(name, ret_found, err);
    if (log_folder_open(arguments, &folder, err) < 0)
        return -1;
    auto_fd owned = folder;
    auto_bytes record = { 0 };
    int result = segments_read(owned, index, &record, err);
    if (result < 0 && err->code != ERR_NOT_FOUND)
        return err->code == ERR_SYSTEM ? -1 : RECEIPT_IS_NONE;
    if (result == 0) {
        if (receipt_take(record.data, record.size, ret_found, err) < 0)
            return RECEIPT_IS_NONE;
        const char *id = text_at(ret_found->payload, "predicate.id");
        if (strcmp(*id ? id : text_at(ret_found->payload, "id"), name) == 0)
            return 0;
        found_receipt_done(ret_found);
    }
    return fail(err, ERR_NOT_FOUND,
                "no receipt of this log has the id %s; see glovebox receipt list, or name another "
                "log: --log FOLDER",
                name);
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_object *member_at(json_object *object, const char *path)
{
    char name[64];
    while (object && *path) {
        size_t size = strcspn(path, ".");
        if (size >= sizeof name || !json_object_is_type(object, json_type_object))
            return NULL;
        memcpy(name, path, size);
        name[size] = '\0';
        json_object *next = NULL;
        if (!json_object_object_get_ex(object, name, &next))
            return NULL;
        object = next;
        path += size + (path[size] == '.');
    }
    return object;
}

const char *text_at(json_object *object, const char *path)
{
    json_object *value = member_at(object, path);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

int64_t number_at(json_object *object, const char *path)
{
    return json_object_get_int64(member_at(object, path));
}

void print_record_line(uint64_t index, json_object *payload)
{
    char moment[TIMESTAMP_SIZE];
    const char *event = text_at(payload, "event");
    if (*event) {
        (void) timestamp_write(number_at(payload, "at_ms"), moment);
        (void) printf("%8" PRIu64 "  %s  %s  event    %s  ", index, moment, text_at(payload, "id"),
                      event);
        print_harmless(stdout, json_object_to_json_string_ext(member_at(payload, "facts"),
                                                              JSON_C_TO_STRING_PLAIN));
        (void) putchar('\n');
        return;
    }
    bool is_lost = strcmp(text_at(payload, "predicateType"), PREDICATE_LOST) == 0;
    json_object *execution =
        member_at(payload, is_lost ? "predicate.opened.execution" : "predicate.execution");
    (void) timestamp_write(number_at(payload, "predicate.times.written_ms"), moment);
    (void) printf("%8" PRIu64 "  %s  %s  %-8s %-16s %s  %s\n", index, moment,
                  text_at(payload, "predicate.id"), text_at(execution, "kind"),
                  text_at(payload, "predicate.outcome.status"), text_at(execution, "id"),
                  text_at(payload, "predicate.policy.name"));
}
