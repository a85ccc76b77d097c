/* witness_output.c - see witness_output.h. */
#include "engine/audit/witness_output.h"

#include "base/auto_free.h"
#include "engine/observe/log.h"
#include "engine/observe/notify_client.h"
#include "ledger/witness.h"
#include "policy/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* At the start only the end of the file is read, which has the newest checkpoints. */
static const off_t read_max = (off_t) 64 << 20;

static int open_file(struct witness_output *link, error *err)
{
    struct stat status;
    link->file =
        open(link->place, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (link->file < 0)
        return fail(err, errno == ENOSPC || errno == EDQUOT ? ERR_SYSTEM : ERR_BAD_REQUEST,
                    "log_witness: the file '%s' cannot be opened to read and to add to it: %s; "
                    "its folder must exist and be accessible to gloveboxd",
                    link->place, strerrordesc_np(errno));
    link->is_file = fstat(link->file, &status) == 0 && S_ISREG(status.st_mode);
    return 0;
}

int witness_output_open(struct witness_output *link, const char *place,
                        struct notify_client *notify_client, error *err)
{
    *link = (struct witness_output){ .place = place, .file = -1 };
    if (setting_is_url(place)) {
        link->far = notify_client;
        return notify_client
                   ? 0
                   : fail(err, ERR_BAD_REQUEST, "a witness by HTTP needs glovebox-notify");
    }
    link->is_syslog = strcmp(place, "syslog") == 0;
    if (!link->is_syslog)
        return open_file(link, err);
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
    link->file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->file < 0 ||
        connect(link->file, (const struct sockaddr *) &address, sizeof address) < 0)
        return fail_os(err, "reach syslog at /dev/log as the witness");
    return 0;
}

static int compare(const struct witness_output *link, int folder, struct ledger *ledger,
                   const struct iovec *seen, error *err)
{
    uint64_t count = 0;
    auto_free struct key_chain *chain = malloc(sizeof *chain);
    if (!chain)
        return fail(err, ERR_SYSTEM, "no memory for the log's keys");
    struct witness_order order = { .chain = chain,
                                   .key = ledger_key(ledger),
                                   .tree = ledger_tree(ledger),
                                   .records = ledger_size(ledger) };
    int result = key_chain_read(folder, chain, err);
    if (result == 0 && key_chain_number(chain, order.key->id) < 0)
        chain->count = 0;
    if (result == 0)
        result = witness_check(&order, seen->iov_base, seen->iov_len, &count, err);
    if (result < 0) {
        error cause = *err;
        return fail(err, ERR_UNAVAILABLE,
                    "the witness '%s' contradicts the log: %s; restore the newer log, or find the "
                    "cause and then set another witness (log_witness)",
                    link->place, cause.text);
    }
    if (count == 0)
        log_event(WITNESS_OTHER_LOG, TEXT("witness", link->place));
    return 0;
}

int witness_output_check(const struct witness_output *link, int folder, struct ledger *ledger,
                         error *err)
{
    struct stat status;
    if (!link->is_file)
        return 0;
    if (fstat(link->file, &status) < 0)
        return fail_os(err, "get the size of the witness '%s'", link->place);
    if (status.st_size == 0)
        return 0;
    off_t from = status.st_size > read_max ? status.st_size - read_max : 0;
    from -= from % sysconf(_SC_PAGESIZE);
    size_t size = (size_t) (status.st_size - from);
    char *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, link->file, from);
    if (text == MAP_FAILED)
        return fail_os(err, "read the witness '%s'", link->place);
    int result = compare(link, folder, ledger, &(struct iovec){ text, size }, err);
    if (result == 0 && !witness_is_whole(text, size) &&
        write(link->file, WITNESS_TORN, sizeof WITNESS_TORN - 1) < 0)
        result = fail_os(err, "append to the witness '%s'", link->place);
    (void) munmap(text, size);
    return result;
}

/* Syslog gets one line: the lines of the note are joined by tabs, which the note does not
 * contain. */
void witness_output_tell(void *context, const char *text, size_t size)
{
    const struct witness_output *link = context;
    char line[CHECKPOINT_SIZE + 48];
    int used = (int) size;
    if (link->far) {
        notify_client_checkpoint(link->far, text, size);
        return;
    }
    if (link->is_syslog) {
        used = snprintf(line, sizeof line, "<13>glovebox: checkpoint\t%s", text);
        for (char *at = line; *at; at++)
            if (*at == '\n')
                *at = '\t';
        text = line;
    }
    if (write(link->file, text, (size_t) used) != used)
        log_event(WITNESS_FAILED, TEXT("cause", strerrordesc_np(errno)));
}
