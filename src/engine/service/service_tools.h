/* service_tools.h - describes, for a model, the policy that its code runs under. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct tool_words {
    const char *policy; /* NULL: the caller's default */
    struct bytes text;  /* added to */
    bool has_network;   /* the policy allows connections */
};

/* A number that changes when the texts of an account may have changed. */
uint64_t service_tool_words_version(const struct service *service);

/* Fails  ERR_NOT_FOUND, ERR_UNAVAILABLE  as policies_find(). */
int service_tool_words(const struct service *service, const struct caller *caller,
                       struct tool_words *words, error *err);
