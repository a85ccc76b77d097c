/* libc_stubs.c - the names that a table may use for numbers: what is not here is a mistake in the
 * table.
 */
#include "table.h"

#include "base/table.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Newer than the headers of the oldest machine that builds us. */
#define PR_SCHED_CORE_NUMBER       62
#define PR_SET_MEMORY_MERGE_NUMBER 67
#define MPTCP_NUMBER               262
#define SO_PASSPIDFD_NUMBER        76
#define SO_PEERPIDFD_NUMBER        77

#define WORD(name)  \
    {               \
#name, name \
    }

/* clang-format off */
static const struct word {
    const char *name;
    uint64_t value;
} words[] = {
    WORD(F_SETLEASE),
    WORD(F_NOTIFY),
    WORD(S_IFMT),
    WORD(S_IFBLK),
    WORD(S_IFCHR),
    WORD(POSIX_FADV_DONTNEED),
    WORD(MS_SYNC),
    WORD(MAP_HUGETLB),
    WORD(MADV_MERGEABLE),
    WORD(MFD_HUGETLB),
    WORD(SHM_HUGETLB),
    WORD(PRIO_PROCESS),
    WORD(PRIO_PGRP),
    WORD(PR_SET_MM),
    WORD(PR_SET_PTRACER),
    { "PR_SCHED_CORE", PR_SCHED_CORE_NUMBER },
    { "PR_SET_MEMORY_MERGE", PR_SET_MEMORY_MERGE_NUMBER },
    WORD(SECCOMP_SET_MODE_FILTER),
    WORD(SECCOMP_FILTER_FLAG_NEW_LISTENER),
    WORD(SECCOMP_IOCTL_NOTIF_RECV),
    WORD(SECCOMP_IOCTL_NOTIF_SEND),
    WORD(SECCOMP_IOCTL_NOTIF_ID_VALID),
    WORD(AF_UNIX),
    WORD(AF_INET),
    WORD(AF_INET6),
    WORD(AF_NETLINK),
    WORD(NETLINK_ROUTE),
    WORD(SOCK_STREAM),
    WORD(SOCK_DGRAM),
    WORD(SOL_SOCKET),
    WORD(SO_ATTACH_FILTER),
    WORD(SO_ATTACH_BPF),
    WORD(SO_ATTACH_REUSEPORT_CBPF),
    WORD(SO_ATTACH_REUSEPORT_EBPF),
    WORD(SO_RCVBUF),
    WORD(SO_ZEROCOPY),
    { "SO_PASSPIDFD", SO_PASSPIDFD_NUMBER },
    { "SO_PEERPIDFD", SO_PEERPIDFD_NUMBER },
    WORD(MSG_OOB),
    WORD(IPPROTO_TCP),
    WORD(IPPROTO_UDP),
    { "IPPROTO_MPTCP", MPTCP_NUMBER },
    WORD(TCP_ULP),
    WORD(TCP_ZEROCOPY_RECEIVE),
    WORD(UDP_ENCAP),
    WORD(TIOCSTI),
    WORD(TIOCLINUX),
    WORD(TIOCSETD),
    WORD(TIOCCONS),
    WORD(TIOCGPTN),
    WORD(TIOCSPTLCK),
    WORD(TIOCGPTLCK),
    /* struct termios2 is in a kernel header that cannot stand beside the C library's. */
    { "TCGETS2", 0x802c542a },
    { "TCSETS2", 0x402c542b },
    { "TCSETSW2", 0x402c542c },
    { "TCSETSF2", 0x402c542d },
    WORD(FS_IOC_GETFLAGS),
    WORD(FS_IOC_SETFLAGS),
    WORD(FS_IOC_FSSETXATTR),
    WORD(SIOCGIFNAME),
    WORD(SIOCGIFCONF),
    WORD(SIOCGIFFLAGS),
    WORD(SIOCGIFADDR),
    WORD(SIOCGIFBRDADDR),
    WORD(SIOCGIFNETMASK),
    WORD(SIOCGIFMTU),
    WORD(SIOCGIFHWADDR),
    WORD(SIOCGIFINDEX),
    { "SCHED_OTHER", 0 },
    { "SCHED_BATCH", 3 },
    { "SCHED_IDLE", 5 },
    { "SCHED_POLICY", 0xbfffffff }, /* mask: all but SCHED_RESET_ON_FORK */
    { "SOCK_TYPE", 0xf },           /* mask: all but SOCK_CLOEXEC and SOCK_NONBLOCK */
    { "IOPRIO_WHO_PROCESS", 1 },
    /* Every CLONE_NEW* flag. 0x80 is CLONE_NEWTIME, which shares its byte with the exit signal. */
    { "CLONE_NEW_ANY", 0x7e020080 },
}, errors[] = {
    WORD(EPERM),       WORD(ENOSYS),      WORD(EINVAL),      WORD(ENOTTY), WORD(ENOMEM),
    WORD(ENETUNREACH), WORD(ENOPROTOOPT), WORD(EAFNOSUPPORT), WORD(EPROTONOSUPPORT),
    WORD(EOPNOTSUPP),
    WORD(ENOBUFS),
};

/* clang-format on */

static int find_word(const struct word *table, size_t count, const char *name, uint64_t *ret_value)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *ret_value = table[i].value;
            return 0;
        }
    }
    return -1;
}

int word_value(const char *name, uint64_t *ret_value)
{
    return find_word(words, COUNT_OF(words), name, ret_value);
}

int error_value(const char *name, uint64_t *ret_value)
{
    return find_word(errors, COUNT_OF(errors), name, ret_value);
}
