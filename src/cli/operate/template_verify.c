/* template_verify.c - measures templates, prints the results, and records them. */
#include "cli/operate/template_verify.h"

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/common/audit_event.h"
#include "cli/operate/template_view.h"
#include "template/store.h"
#include "template/verify.h"

#include <linux/ioprio.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Runs at the lowest priority, since a service may be starting. (Not SCHED_IDLE: on a machine that
 * is always busy it would never end.) */
static void yield_to_all(void)
{
    (void) setpriority(PRIO_PROCESS, 0, 19);
    (void) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static int record(const char *state, const char *name, const struct measured_template *found,
                  error *err)
{
    const struct event_field fields[] = { { "digest", found->stated, 0 },
                                          { "measured", found->measured, 0 },
                                          { "template", name, 0 },
                                          { 0 } };
    return tell_audit(state, "template.measured", fields, err);
}

static void say_row(const char *name, const struct measured_template *found, bool json)
{
    if (!found->is_same)
        (void) fprintf(stderr,
                       "glovebox: template '%s' is not what was built: its digest is %s and its "
                       "files give %s; build it again\n",
                       name, found->stated, found->measured);
    if (!json && found->is_same)
        (void) printf("%-12s %s  as it was built\n", name, found->measured);
}

static void add_row(struct json_object *rows, const char *name,
                    const struct measured_template *found)
{
    struct json_object *row = json_object_new_object();
    (void) json_object_object_add(row, "name", json_object_new_string(name));
    (void) json_object_object_add(row, "digest", json_object_new_string(found->stated));
    (void) json_object_object_add(row, "measured", json_object_new_string(found->measured));
    (void) json_object_object_add(row, "same", json_object_new_boolean(found->is_same));
    (void) json_object_array_add(rows, row);
}

/* Returns 1 if the template differs from what was built. */
static int verify_one(const struct template_verification *asked, int store, const char *name,
                      struct json_object *rows, error *err)
{
    struct measured_template found;
    if (template_verify(store, name, &found, err) < 0 ||
        (asked->record && record(asked->state, name, &found, err) < 0))
        return -1;
    say_row(name, &found, asked->json);
    add_row(rows, name, &found);
    return !found.is_same;
}

/* A template that cannot be read does not stop the check of the others. */
static int verify_each(const struct template_verification *asked, int store,
                       struct json_object *manifests, struct json_object *rows)
{
    int status = 0;
    for (size_t i = 0; i < json_object_array_length(manifests); i++) {
        error err;
        int one =
            verify_one(asked, store, template_text(json_object_array_get_idx(manifests, i), "name"),
                       rows, &err);
        if (one < 0)
            (void) complain_of(&err);
        if (one != 0)
            status = 1;
    }
    return status;
}

int template_verify_all(const struct template_verification *asked, error *err)
{
    auto_json manifests = NULL;
    auto_fd store = store_open(asked->state, false, err);
    if (store < 0 || (!asked->name && store_list(store, &manifests, err) < 0))
        return -1;
    if (asked->record)
        yield_to_all();
    auto_json rows = json_object_new_array();
    int status = asked->name ? verify_one(asked, store, asked->name, rows, err)
                             : verify_each(asked, store, manifests, rows);
    if (status >= 0 && asked->json)
        template_print_json(rows);
    return status;
}
