/* list.h - lists by pointers to the next. */
#pragma once

#include <stdbool.h>

/* Takes an item out of the list that begins with `first`. Gives  whether it was in it. */
#define list_remove(first, item, next)     \
    __extension__({                        \
        __typeof__(first) *at_ = &(first); \
        while (*at_ && *at_ != (item))     \
            at_ = &(*at_)->next;           \
        bool is_found_ = *at_ != NULL;     \
        if (is_found_)                     \
            *at_ = (item)->next;           \
        is_found_;                         \
    })

#define list_append(first, item, next)     \
    do {                                   \
        __typeof__(first) *at_ = &(first); \
        while (*at_)                       \
            at_ = &(*at_)->next;           \
        *at_ = (item);                     \
    } while (0)
