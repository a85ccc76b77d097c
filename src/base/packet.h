/* packet.h - whole messages with descriptors over a SEQPACKET socket. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PACKET_MAX_BYTES = 1024, PACKET_MAX_FDS = 24 };

struct packet {
    uint32_t kind; /* first word of the message */
    size_t size;   /* bytes of the body, without the kind */
    unsigned fds;  /* how many descriptors came with it; the receiver owns them */
    int fd[PACKET_MAX_FDS];
    _Alignas(8) unsigned char body[PACKET_MAX_BYTES];
};

enum { PACKET_CAME = 0, PACKET_NONE = 1, PACKET_CLOSED = 2, PACKET_CUT = 3 };

/* Sends kind, body and descriptors as one message. Borrows the descriptors.
 * Fails  ERR_SYSTEM  EAGAIN if the socket is full, EPIPE if the peer has closed it. */
int packet_send(int socket, uint32_t kind, const void *body, size_t size, const int *fds,
                unsigned fd_count, error *err);

/* Receives one message; descriptors arrive close-on-exec.
 * Returns PACKET_CAME, PACKET_NONE (no message yet, or no memory to receive it: call again),
 *         PACKET_CLOSED (the peer has closed), PACKET_CUT (it came without its descriptors: this
 *         process has reached its limit, recvmsg(2) MSG_CTRUNC; the next may be complete).
 * Fails   ERR_PROTOCOL for a message that is truncated or has too many descriptors, which have been
 *         closed. */
int packet_receive(int socket, struct packet *packet, error *err);

/* Closes the descriptors that were not taken (slots set to -1 are skipped). */
void packet_done(struct packet *packet);

/* Takes descriptor number `index` out of the packet. */
int packet_take_fd(struct packet *packet, unsigned index);

/* Moves the descriptors of any message, also of a stream, into ret_fds. Those that do not fit are
 * closed, since the kernel has opened them in this process already.
 * Returns how many came, which may be more than `max`. */
unsigned take_descriptors(struct msghdr *message, int *ret_fds, unsigned max);
