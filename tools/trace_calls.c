/* Linked into the gloveboxd of tools/trace-request, which is compiled with -finstrument-functions:
 * writes the address of every function that the main thread enters to TRACE_FILE. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))

struct trace {
    uint64_t anchor; /* where trace_anchor() lies: addresses are relative to it */
    uint64_t count;
    uint64_t entered[];
};

enum { ENTRIES_MAX = TRACE_BYTES / sizeof(uint64_t) - 2 };

static struct trace *trace;
static __thread int is_main;

QUIET void trace_anchor(void);
QUIET void __cyg_profile_func_enter(void *function, void *caller);
QUIET void __cyg_profile_func_exit(void *function, void *caller);
QUIET int __wrap_MHD_queue_response(void *connection, unsigned status, void *response);
/* Weak, because Meson links trial programs with this file, which have no libmicrohttpd. */
__attribute__((weak)) int __real_MHD_queue_response(void *connection, unsigned status,
                                                    void *response);

void trace_anchor(void)
{
}

__attribute__((constructor)) QUIET static void trace_begin(void)
{
    int fd = open(TRACE_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *memory = mmap(NULL, TRACE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void) close(fd);
    if (memory == MAP_FAILED)
        return;
    trace = memory;
    trace->anchor = (uint64_t) trace_anchor;
    is_main = 1;
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void) caller;
    if (trace && is_main && trace->count < ENTRIES_MAX)
        trace->entered[trace->count++] = (uint64_t) function;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void) function;
    (void) caller;
}

/* The answer goes to libmicrohttpd: an entry of its own, so that the trace of a request has an end.
 */
int __wrap_MHD_queue_response(void *connection, unsigned status, void *response)
{
    __cyg_profile_func_enter((void *) (uintptr_t) trace_anchor, NULL);
    return __real_MHD_queue_response(connection, status, response);
}
