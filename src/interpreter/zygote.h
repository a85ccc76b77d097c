/* zygote.h - serves forks of a warmed interpreter. Knows nothing of Python. */
#pragma once

#include "base/error.h"
#include "contract/zygote.h"
#include "interpreter/image/image.h"

struct packet;

/* Reads ZYGOTE_FORK; the descriptors stay in the packet, in the order of enum zygote_fd. Gives
 * *ret_order as soon as the message has its size, so that a refusal can name the slot.
 * Fails  ERR_PROTOCOL  it is another message, or a number is out of bounds */
int zygote_read_order(const struct packet *packet, struct zygote_fork *ret_order, error *err);

struct zygote_child {
    int control;    /* socket to the sandbox's init */
    uint32_t prime; /* enum zygote_prime */
    uint32_t slot;
    uint32_t generation;
};

enum { ZYGOTE_ENDED = 0, ZYGOTE_IS_CHILD = 1 };

/* Serves ZYGOTE_FORK messages until the spawner has ended.
 * Returns ZYGOTE_ENDED then; ZYGOTE_IS_CHILD in every forked interpreter, with all walls up. An
 * interpreter whose walls do not stand tells init and exits: it never returns from here. */
int zygote_serve(int spawner, const struct zygote_hooks *hooks, struct zygote_child *ret_child,
                 error *err);
