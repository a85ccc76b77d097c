/* list.h - singly linked lists. */
#pragma once

#include <stdbool.h>

/* Removes an item from the list that begins with `first`. Gives  whether it was in the list. */
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
