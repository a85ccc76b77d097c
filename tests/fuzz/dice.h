/* dice.h - a fuzzer's bytes, taken one after the other; messages that are made of them; and a count
 * of open descriptors, because whatever a message carries must be taken or closed. */
#pragma once

#include "base/packet.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct dice {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t dice_byte(struct dice *dice)
{
    if (dice->left == 0)
        return 0;
    dice->left--;
    return *dice->at++;
}

/* Changes up to three bytes of a body that would be right as it is: single fields go out of bounds
 * one at a time, which wholly random bytes hardly ever do. */
static inline void dice_change(struct dice *dice, void *body, size_t size)
{
    for (unsigned changes = dice_byte(dice) % 4; changes > 0; changes--) {
        size_t where = dice_byte(dice) | (size_t) dice_byte(dice) << 8;
        ((unsigned char *) body)[where % size] = dice_byte(dice);
    }
}

static inline unsigned descriptors_open(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    (void) closedir(folder);
    return count;
}

/* Sends a message as any process could: of any size, with any number of descriptors. */
static inline void send_anything(int socket, uint32_t kind, const void *body, size_t size,
                                 const int *fds, unsigned fd_count)
{
    enum { FDS_MAX = PACKET_MAX_FDS + 4 };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control = { 0 };
    struct iovec parts[2] = { { &kind, sizeof kind }, { (void *) (uintptr_t) body, size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    assert(fd_count <= FDS_MAX);
    if (fd_count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    (void) sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}
