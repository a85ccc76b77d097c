/* verify.c - see verify.h. digest.c computes the digest. */
#include "template/verify.h"

#include "base/cleanup.h"
#include "template/build.h"
#include "template/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

int template_measure(int place, struct json_object *manifest, struct measured_template *ret,
                     error *err)
{
    /* A manifest has the recipe's keys, and the digest is over some of them. */
    struct build_request request = { .recipe = manifest };
    struct build build = { .request = &request };
    struct json_object *digest = json_object_object_get(manifest, "digest");
    auto_fd root = openat(place, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        return fail_os(err, "open the template's root");
    build.root = root;
    if (digest_tree(&build, err) < 0)
        return -1;
    (void) snprintf(ret->stated, sizeof ret->stated, "%.71s",
                    json_object_is_type(digest, json_type_string) ? json_object_get_string(digest)
                                                                  : "");
    (void) snprintf(ret->measured, sizeof ret->measured, "%s", build.digest);
    ret->is_same = strcmp(ret->stated, ret->measured) == 0;
    return 0;
}

int template_verify(int store, const char *name, struct measured_template *ret, error *err)
{
    auto_json manifest = NULL;
    if (store_manifest(store, name, &manifest, err) < 0)
        return -1;
    /* While this is locked, a new build does not remove these files (store.h). */
    auto_fd place = openat(store, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = place < 0 || flock(place, LOCK_SH | LOCK_NB) < 0
                     ? fail_os(err, "hold the template")
                     : template_measure(place, manifest, ret, err);
    return result < 0 ? under(err, "template '%s'", name) : 0;
}
