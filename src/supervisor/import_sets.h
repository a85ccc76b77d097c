/* import_sets.h - which modules the zygotes of a template import, from its manifest. */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { ZYGOTES_MAX = 4, ZYGOTE_MODULES_MAX = 1024 };

struct zygote_sets {
    size_t count;
    char modules[ZYGOTES_MAX][ZYGOTE_MODULES_MAX]; /* comma between them; "" imports nothing */
};

/* Reads "zygotes" of a manifest, in its order. A template without any has none. */
int zygote_sets_read(const char *manifest, struct zygote_sets *ret_sets, error *err);
