/* read_at_test.c - reads that return less than asked, are interrupted, or fail. */
#include <unistd.h>

/* Replaces the function of the C library. */
static ssize_t pread_in_pieces(int fd, void *to, size_t size, off_t from);
#define pread pread_in_pieces
#include "base/read_at.h"

#include "base/cleanup.h"
#include "base/test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static unsigned call; /* the first call is interrupted; then one byte each */
static int failure;   /* of the fourth call */

static ssize_t pread_in_pieces(int fd, void *to, size_t size, off_t from)
{
    call++;
    errno = call == 1 ? EINTR : failure;
    if (call == 1 || (call == 4 && failure != 0))
        return -1;
    return syscall(SYS_pread64, fd, to, size < 1 ? size : 1, from);
}

TEST(a_file_is_read_to_its_end)
{
    auto_fd file = memfd_create("file", MFD_CLOEXEC);
    char text[8] = "";
    require(write(file, "abcdef", 6) == 6, "a file");
    expect(read_at(file, text, sizeof text, 1) == 5 && memcmp(text, "bcdef", 6) == 0, "%s", text);
    call = 0;
    expect(read_at(file, text, 3, 0) == 3 && memcmp(text, "abcef", 5) == 0, "%s", text);
    call = 0;
    failure = EIO;
    expect(read_at(file, text, 4, 0) == -1 && errno == EIO, "it fails as a whole");
}

TESTS(CASE(a_file_is_read_to_its_end))
