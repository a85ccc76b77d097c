/* step_clock.c - preloaded into gloveboxd: adds the seconds that stand in the file STEP_CLOCK to
 * the clock on the wall. Used by test_once.py. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static long seconds;

/* Before main(), which gives up the right to open files. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STEP_CLOCK");
    char text[32] = "";
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0 && read(file, text, sizeof text - 1) > 0)
        seconds = strtol(text, NULL, 10);
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
        at->tv_sec += seconds;
    return result;
}
