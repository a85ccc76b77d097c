/* floor.c - what a warm run cannot do without: an answer by the same HTTP library, an interpreter
 * that has been prewarmed and waits, and one signature and write for a receipt. No sandbox, no
 * limit, no counter, no JSON. tests/bench/floor.py puts it beside a warm run.
 *
 * floor LISTENING INTERPRETER OUTPUT LOG: descriptors; the path asked for is how much is done:
 * /echo, /run, /proved. */
#include <microhttpd.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CODE_MAX = 4096, ANSWER = 1400, RECORD = 4800, STATEMENT = 3400 };

static struct floor {
    int interpreter; /* SOCK_SEQPACKET: code goes there, and one byte comes when it has ended */
    int output;      /* the other end of its stdout */
    int log;
    off_t log_end;
    unsigned char key[crypto_sign_SECRETKEYBYTES];
} machine;

struct request {
    char code[CODE_MAX];
    size_t size;
};

static bool run(const struct request *request, char *output, size_t room)
{
    char word;
    return send(machine.interpreter, request->code, request->size, MSG_NOSIGNAL) > 0 &&
           recv(machine.interpreter, &word, 1, 0) == 1 && read(machine.output, output, room) > 0;
}

/* As much hashing as a receipt's record takes: its statement is signed, the record joins a tree. */
static bool prove(const char *output)
{
    static unsigned char record[RECORD];
    unsigned char hash[crypto_hash_sha256_BYTES];
    memcpy(record, output, ANSWER);
    (void) crypto_sign_detached(record + STATEMENT, NULL, record, STATEMENT, machine.key);
    (void) crypto_hash_sha256(hash, record, sizeof record);
    struct iovec parts[] = { { hash, sizeof hash }, { record, sizeof record } };
    ssize_t wrote = pwritev(machine.log, parts, 2, machine.log_end);
    machine.log_end += wrote > 0 ? wrote : 0;
    return wrote > 0;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *path,
                              const struct request *request)
{
    static char body[ANSWER];
    bool is_well = true;
    if (strcmp(path, "/echo") != 0)
        is_well = run(request, body, sizeof body);
    if (is_well && strcmp(path, "/proved") == 0)
        is_well = prove(body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof body, body, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result queued = MHD_queue_response(connection, is_well ? 200 : 500, response);
    MHD_destroy_response(response);
    return queued;
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's own signature */
static enum MHD_Result take(void *context, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *data, size_t *size,
                            void **ret_request)
{
    (void) context;
    (void) method;
    (void) version;
    struct request *request = *ret_request;
    if (!request) {
        *ret_request = calloc(1, sizeof *request);
        return *ret_request ? MHD_YES : MHD_NO;
    }
    if (*size == 0)
        return answer(connection, path, request);
    if (*size > sizeof request->code - request->size)
        return MHD_NO;
    memcpy(request->code + request->size, data, *size);
    request->size += *size;
    *size = 0;
    return MHD_YES;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libmicrohttpd's own signature */
static void completed(void *context, struct MHD_Connection *connection, void **request,
                      enum MHD_RequestTerminationCode why)
{
    (void) context;
    (void) connection;
    (void) why;
    free(*request);
    *request = NULL;
}

int main(int count, char **arguments)
{
    unsigned char public[crypto_sign_PUBLICKEYBYTES];
    if (count != 5 || sodium_init() < 0 || crypto_sign_keypair(public, machine.key) < 0)
        return 1;
    int listening = (int) strtol(arguments[1], NULL, 10);
    machine.interpreter = (int) strtol(arguments[2], NULL, 10);
    machine.output = (int) strtol(arguments[3], NULL, 10);
    machine.log = (int) strtol(arguments[4], NULL, 10);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, take, NULL, MHD_OPTION_LISTEN_SOCKET,
                         listening, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    while (daemon && MHD_run_wait(daemon, -1) == MHD_YES)
        ;
    return 1;
}
