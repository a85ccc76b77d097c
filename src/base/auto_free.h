/* auto_free.h - memory of any type that is freed when the scope of its pointer ends: auto_free long
 * *numbers. Only before a pointer. For text there is auto_text. */
#pragma once

#include <stdlib.h>

/* `variable` is the address of the pointer. */
static inline void free_memory(void *variable)
{
    typedef void *__attribute__((may_alias)) pointer;
    free(*(pointer *) variable);
}

#define auto_free __attribute__((cleanup(free_memory)))
