/* zygote.h - what glovebox-spawner asks of a zygote.
 *
 * A zygote is the template's own python3, run by the fork server as
 *     python3 -s /usr/lib/glovebox/zygote.py MODULE…
 * as root of the fork server's user namespace, in the fork server's pid namespace, with the
 * template as its root and this socket (SEQPACKET, packets as in base/packet.h) as its only
 * descriptor next to 0, 1 and 2. It imports the modules, says ZYGOTE_READY, and then forks one
 * interpreter for each ZYGOTE_FORK.
 *
 * The interpreter is a child of the sandbox's own init: init learns its end by waitpid(2), and the
 * zygote has no child to wait for. The messages between interpreter and init are in agent.h
 * (AGENT_INTERPRETER_READY and AGENT_EXECUTE). */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { ZYGOTE_VERSION = 1, ZYGOTE_SOCKET = 3 };

enum zygote_kind {
    ZYGOTE_READY = 1, /* zygote -> spawner: struct zygote_ready, once */
    ZYGOTE_FORK,      /* spawner -> zygote: struct zygote_fork; fds as in enum zygote_fd, then the
                         procs files of the program's group, `groups` of them */
    ZYGOTE_FORKED,    /* zygote -> spawner: struct zygote_forked; one for each ZYGOTE_FORK */
};

enum zygote_fd {
    ZYGOTE_FD_INIT, /* pidfd of the sandbox's init */
    ZYGOTE_FD_STDIN,
    ZYGOTE_FD_STDOUT,
    ZYGOTE_FD_STDERR,
    ZYGOTE_FD_CONTROL, /* SEQPACKET to init, one agent.h frame a message */
    ZYGOTE_FD_FILTER,  /* memfd with the seccomp filter, struct sock_filter[] */
    ZYGOTE_FDS
};

/* What the interpreter runs before it waits for code, so that its first page faults come early. */
enum zygote_prime { ZYGOTE_PRIME_NOTHING, ZYGOTE_PRIME_PRINT, ZYGOTE_PRIME_WORK };

struct zygote_ready {
    uint32_t version;
    uint32_t threads; /* 1, or the zygote may not be used */
    uint64_t warm_us; /* what the imports took */
    uint64_t memory_bytes;
    error err; /* ERR_UNAVAILABLE names the module that could not be imported */
};

struct zygote_fork {
    uint32_t slot;
    uint32_t generation;
    uint32_t groups; /* how many procs files follow */
    uint32_t open_files;
    uint32_t prime;          /* enum zygote_prime */
    uint32_t has_loopback;   /* 1: TCP is not refused, the network namespace has nothing but lo */
    uint64_t disabled_walls; /* test builds only: bits of enum wall that are disabled */
    uint64_t disk_bytes;     /* no file may be larger */
    uint64_t processes;
};

/* The fork has succeeded or failed. Whether the walls stand the interpreter reports itself, over
 * its control socket. */
struct zygote_forked {
    uint32_t slot;
    uint32_t generation;
    int32_t pid; /* as seen inside the sandbox; -1 on failure */
    uint32_t reserved;
    uint64_t took_us;
    error err;
};
