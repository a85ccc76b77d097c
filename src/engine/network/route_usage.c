/* route_usage.c - see route_usage.h. */
#include "engine/network/route_usage.h"

#include "engine/session/session_registry.h"

#include <stdlib.h>
#include <string.h>

static void add_records(struct way_use *use, const struct way_story *fresh)
{
    struct way_story *story = &use->story;
    size_t room = WAY_USE_ROWS - story->count;
    size_t count = fresh->count < room ? fresh->count : room;
    if (!story->records || !fresh->records) /* memory was missing: they are counted */
        count = 0;
    if (count > 0)
        memcpy(story->records + story->count, fresh->records, count * sizeof *story->records);
    story->count += count;
    story->unlisted += fresh->unlisted - use->unlisted_seen + (fresh->count - count);
    if (fresh->failure)
        story->failure = fresh->failure;
}

static void take(const struct session *session, struct way_use *use)
{
    struct way_story fresh;
    if (!session->way)
        return;
    way_tell(session->way, use->seen, &fresh);
    size_t all = way_record_count(session->way);
    uint64_t unlisted = fresh.unlisted;
    if (!fresh.records && all > use->seen)
        unlisted -= all - use->seen; /* memory was missing: they are counted, once */
    add_records(use, &fresh);
    use->seen = all;
    use->unlisted_seen = unlisted;
    way_story_done(&fresh);
}

void way_use_begin(struct session *session, struct way_use *use)
{
    struct way_story past = { 0 };
    if (session->way) {
        way_tell(session->way, way_record_count(session->way), &past);
        use->story.records = calloc(WAY_USE_ROWS, sizeof *use->story.records);
    }
    use->seen = session->way ? way_record_count(session->way) : 0;
    use->unlisted_seen = past.unlisted;
    use->next = session->way_uses;
    session->way_uses = use;
}

bool way_use_ask(struct session *session, struct way_use *use)
{
    if (!session->way || session->state == SESSION_ENDED)
        return false;
    use->ask = ++session->way_asks;
    way_ask(session->way);
    return use->ask != 0;
}

void way_use_end(struct session *session, struct way_use *use)
{
    take(session, use);
    use->ask = 0;
    for (struct way_use **at = &session->way_uses; *at; at = &(*at)->next)
        if (*at == use) {
            *at = use->next;
            return;
        }
}

void way_use_done(struct way_use *use)
{
    way_story_done(&use->story);
}

void way_uses_take(struct session *session)
{
    for (struct way_use *use = session->way_uses; use; use = use->next) {
        take(session, use);
        use->seen = 0;
        use->unlisted_seen = 0;
    }
}

/* Who is told ends its use. */
static struct way_use *next_answered(const struct session *session)
{
    struct way_use *use = session->way_uses;
    while (use && (use->ask == 0 || use->ask > session->way_answers))
        use = use->next;
    return use;
}

void way_uses_answer(struct session *session)
{
    struct way_use *use;
    while ((use = next_answered(session))) {
        use->ask = 0;
        use->told(use->context);
    }
}

void way_uses_leave(struct session *session)
{
    way_uses_take(session);
    session->way_answers = session->way_asks;
    way_uses_answer(session);
}
