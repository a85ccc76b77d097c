/* service_artifacts.c - see service_artifacts.h. */
#include "engine/service/service_artifacts.h"

#include "engine/schedule/accounts.h"
#include "engine/store/blobs.h"

int service_artifact_check(const struct service *service, const struct caller *caller,
                           const char *sha256, struct artifact_check **ret_check, error *err)
{
    struct blob_check *check = NULL;
    int result = blob_check(service->blobs, caller->account->owner, sha256, &check, err);
    *ret_check = (struct artifact_check *) check;
    return result;
}

void artifact_check_await(struct artifact_check *check, void (*done)(void *user, const error *why),
                          void *user)
{
    blob_check_tell((struct blob_check *) check, done, user);
}

int service_artifact_open(const struct service *service, const struct caller *caller,
                          const char *sha256, struct artifact_file *ret_file, error *err)
{
    struct blob_view view;
    if (blob_open(service->blobs, caller->account->owner, sha256, &view, err) < 0)
        return -1;
    *ret_file = (struct artifact_file){ view.fd, view.size, view.mime };
    return 0;
}
