/* branch_floor.c - what the memory of a branch costs without a branch: memory that a process gets
 * for the first time, touched or filled from another process through a pipe.
 * tests/bench/branch_floor.py puts it beside the rest that precedes it.
 *
 * branch_floor: reads lines of WAY MIB, as "copy 170", and writes the milliseconds of each.
 *   touch  one byte of each page of 4 KiB; huge  the same with huge pages asked for
 *   copy   from the other process into pages of 4 KiB; copyhuge  into huge ones */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, SOURCE = 256 * MIB, PAGE = 4096, PIPE = MIB };

static unsigned char *map(size_t size, bool is_huge)
{
    unsigned char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, size, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
        _exit(2);
    return memory;
}

/* The process that is branched: its memory stays mapped between the copies. Ends with `orders`. */
static void serve(int orders, int out)
{
    size_t size;
    unsigned char *source = map(SOURCE, false);
    for (size_t i = 0; i < SOURCE; i++)
        source[i] = (unsigned char) (i * 2654435761U >> 24);
    while (read(orders, &size, sizeof size) == sizeof size)
        for (size_t done = 0; done < size;) {
            ssize_t wrote = write(out, source + done, size - done);
            if (wrote <= 0)
                _exit(2);
            done += (size_t) wrote;
        }
    _exit(0);
}

static void fill(unsigned char *memory, size_t size, int orders, int in)
{
    if (write(orders, &size, sizeof size) != sizeof size)
        _exit(2);
    for (size_t done = 0; done < size;) {
        ssize_t got = read(in, memory + done, size - done);
        if (got <= 0)
            _exit(2);
        done += (size_t) got;
    }
}

static double now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

int main(void)
{
    int orders[2], bytes[2];
    if (pipe2(orders, O_CLOEXEC) < 0 || pipe2(bytes, O_CLOEXEC) < 0)
        return 2;
    (void) fcntl(bytes[0], F_SETPIPE_SZ, PIPE);
    pid_t source = fork();
    if (source == 0) {
        (void) close(orders[1]);
        (void) close(bytes[0]);
        serve(orders[0], bytes[1]);
    }
    (void) close(bytes[1]); /* if it ends, so does the reading */
    char line[64];
    while (source > 0 && fgets(line, sizeof line, stdin)) {
        const char *number = strchr(line, ' ');
        size_t size = number ? strtoul(number, NULL, 10) * MIB : 0;
        if (size == 0 || size > SOURCE)
            return 2;
        bool is_copy = strncmp(line, "copy", 4) == 0, is_huge = strstr(line, "huge") != NULL;
        double began = now_ms();
        unsigned char *memory = map(size, is_huge);
        if (is_copy)
            fill(memory, size, orders[1], bytes[0]);
        for (size_t i = 0; !is_copy && i < size; i += PAGE)
            memory[i] = 1;
        (void) printf("%.3f\n", now_ms() - began);
        (void) fflush(stdout);
        (void) munmap(memory, size);
    }
    return source > 0 ? 0 : 2;
}
