/* step_clock.c - preloaded into gloveboxd: adds the seconds that stand in the file STEP_CLOCK,
 * which a test may write anew at any time, to the clock on the wall. Used by test_once.py and
 * test_clock_steps.py. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static const char *seconds = "0"; /* of the file, which is never longer than a page */

/* Before main(), which gives up the right to open files. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STEP_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *text = file >= 0 ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (text != MAP_FAILED)
        seconds = text;
    if (file >= 0)
        (void) close(file);
}

SEEN int clock_gettime(clockid_t clock, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, at);
    if (result == 0 && clock == CLOCK_REALTIME)
        at->tv_sec += strtol(seconds, NULL, 10);
    return result;
}
