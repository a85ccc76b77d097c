/* service_catalog.h - the policies and templates of this daemon. */
#pragma once

#include "engine/service/service.h"

#include <stddef.h>

enum { CATALOG_NAME_SIZE = 64, CATALOG_LANGUAGES_MAX = 16 };

/* The policy for requests of this caller that name none. */
void service_default_policy(const struct service *service, const struct caller *caller,
                            char ret_name[CATALOG_NAME_SIZE]);

struct policy_entry {
    const char *name, *digest, *description;
    const char *json; /* the effective policy, with all that it extends */
};

/* Leaves out policies whose file is faulty. */
void service_each_policy(const struct service *service,
                         void (*each)(void *context, const struct policy_entry *entry),
                         void *context);

struct template_entry {
    const char *name, *digest, *description;
    size_t language_count;
    const char *languages[CATALOG_LANGUAGES_MAX];
};

void service_each_template(const struct service *service,
                           void (*each)(void *context, const struct template_entry *entry),
                           void *context);
