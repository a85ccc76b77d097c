/* template_watch.c - inotify(7) on the folder of templates. Two templates that are exchanged by
 * rename are one change. */
#include "daemon/template_watch.h"

#include "base/cleanup.h"
#include "engine/observe/log.h"

#include <string.h>

/* One command causes several events, so the folder is read 20 ms after the last of them. Retired
 * templates are checked each second. */
enum { SETTLED_MS = 20, RETIRED_EVERY_MS = 1000, BLIND_EVERY_MS = 5000 };

static int tell(const struct template *template, int spawner, error *err)
{
    const struct spawn_template told = { .template = template->index,
                                         .sets = (uint32_t) template->set_count };
    auto_fd modules = template_modules(template, err);
    const int fds[] = { template->held, modules };
    return modules < 0 ? -1 : spawner_template(spawner, &told, fds, err);
}

int template_watch_tell(const struct templates *templates, int spawner, bool warm, error *err)
{
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++) {
        struct template *template = templates->list[i];
        if (!template)
            continue;
        if (!warm)
            template->set_count = 0;
        if (tell(template, spawner, err) < 0)
            return under(err, "tell glovebox-spawner of template %s", template->name);
    }
    return 0;
}

/* One parked sandbox shape per policy, with the policy's own limits, and per zygote of its
 * template. */
void template_watch_keep(const struct template_watch *watch)
{
    for (size_t i = 0; i < watch->policies->count; i++) {
        const struct policy *policy = policies_at(watch->policies, i);
        int index = policy ? templates_find(watch->templates, policy->template) : -1;
        if (index < 0 || strcmp(policy->name, "extended") == 0)
            continue;
        size_t sets = watch->templates->list[index]->set_count;
        for (size_t set = 0; set < sets; set++) {
            struct lease lease = { .template = (uint32_t) index,
                                   .network = SPAWN_NETWORK_NONE,
                                   .set = (int) set,
                                   .limits = &policy->limits };
            pool_keep(watch->pool, &lease);
        }
    }
}

static void look_in(struct template_watch *watch, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *) &watch->look) || uv_timer_get_due_in(&watch->look) > ms)
        (void) uv_timer_start(&watch->look, watch->look.timer_cb, ms, 0);
}

void template_watch_told(void *context, int index, const char *name, const error *cause)
{
    struct template_watch *watch = context;
    const struct template *template = index < 0 ? NULL : watch->templates->list[index];
    error err;
    if (!template) {
        log_event(TEMPLATE_REFUSED, TEXT("template", name), TEXT("cause", cause->text));
        return;
    }
    if (template->is_retired) {
        log_event(TEMPLATE_RETIRED, TEXT("template", name), TEXT("digest", template->digest));
        (void) pool_forget(watch->pool, template->index);
        return;
    }
    if (tell(template, watch->spawner, &err) < 0) {        /* the socket to the spawner is full */
        templates_drop(watch->templates, template->index); /* and find it again in a second */
        watch->has_changed = true;
        look_in(watch, RETIRED_EVERY_MS);
        return;
    }
    log_event(TEMPLATE_ADDED, TEXT("template", name), TEXT("digest", template->digest));
    template_watch_keep(watch);
}

/* Returns whether it has ended. */
static bool end_retired(struct template_watch *watch, const struct template *template)
{
    const struct spawn_template gone = { .template = template->index };
    error err;
    if (pool_forget(watch->pool, template->index) > 0 ||
        !deadline_has_passed(template->rests_until) ||
        spawner_template(watch->spawner, &gone, NULL, &err) < 0)
        return false;
    log_event(TEMPLATE_ENDED, TEXT("template", template->name), TEXT("digest", template->digest));
    templates_drop(watch->templates, template->index);
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    struct template_watch *watch = timer->data;
    if (!watch->pool->spawner->is_open)
        return; /* gloveboxd is ending */
    if (watch->has_changed || watch->is_blind) {
        watch->has_changed = false;
        templates_look(watch->templates);
    }
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++) {
        const struct template *template = watch->templates->list[i];
        if (template && template->is_retired && !end_retired(watch, template))
            look_in(watch, RETIRED_EVERY_MS);
    }
    if (watch->is_blind)
        look_in(watch, BLIND_EVERY_MS);
}

static void on_change(uv_fs_event_t *event, const char *name, int events, int status)
{
    (void) name;
    (void) events;
    struct template_watch *watch = event->data;
    if (status < 0)
        return;
    watch->has_changed = true;
    look_in(watch, SETTLED_MS);
}

void template_watch_open(struct template_watch *watch, uv_loop_t *loop)
{
    (void) uv_timer_init(loop, &watch->look);
    (void) uv_fs_event_init(loop, &watch->folder);
    watch->look.data = watch->folder.data = watch;
    watch->look.timer_cb = on_timer;
    watch->is_open = true;
    int watched = uv_fs_event_start(&watch->folder, on_change, watch->templates->folder, 0);
    watch->is_blind = watched < 0;
    if (watched < 0)
        log_event(TEMPLATES_UNWATCHED, TEXT("cause", uv_strerror(watched)));
    watch->has_changed = true;
    look_in(watch, SETTLED_MS); /* for changes between template_watch_tell() and the watch */
    uv_unref((uv_handle_t *) &watch->look);
    uv_unref((uv_handle_t *) &watch->folder);
}

void template_watch_close(struct template_watch *watch)
{
    if (!watch->is_open)
        return;
    watch->is_open = false;
    uv_close((uv_handle_t *) &watch->look, NULL);
    uv_close((uv_handle_t *) &watch->folder, NULL);
}
