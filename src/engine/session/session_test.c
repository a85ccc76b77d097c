/* session_test.c - a session from its sandbox to its end: its operations, and which deadline ends
 * it when. */
#include "engine/session/session.h"

#include "engine/session/contexts.h"
#include "engine/session/fake_engine_test.h"
#include "engine/session/session_internal.h"

static struct session *session;
static unsigned ended, frames, told;

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    (void) context;
    (void) payload;
    frames++;
    return frame->kind == AGENT_ENTRY ? fail(err, ERR_PROTOCOL, "no entry was asked for") : 0;
}

static void on_ended(void *context, const error *why)
{
    (void) context;
    expect(why && why->text[0], "an operation is told why");
    ended++;
}

static void on_changed(void *context, struct session *of)
{
    (void) context;
    (void) of;
    told++;
}

static struct session_listener listener = { .changed = on_changed };

static void begin(const char *text)
{
    ended = frames = told = 0;
    fake_begin();
    session = fake_session(text);
    session_listen(session, &listener);
}

static void end(void)
{
    session_unlisten(session, &listener);
    fake_end();
}

static struct session_operation operation(void)
{
    return (struct session_operation){ .frame = on_frame, .ended = on_ended };
}

TEST(a_session_keeps_its_sandbox_until_it_ends)
{
    error why;
    begin("{\"policy\":\"data\"}");
    expect(session->state == SESSION_RUNNING && fake_order(0, AGENT_KEEP), "it keeps it");
    expect(fake.pool.in_use == 1 && engine.sessions.alive == 1, "one slot, one session");
    (void) fail(&why, ERR_CONFLICT, "it was deleted");
    session_end(session, END_DELETED, &why);
    session_end(session, END_LOST, &why); /* the first end counts */
    fake_pass(100);
    expect(session->state == SESSION_ENDED && session->end == END_DELETED, "end %u", session->end);
    expect(told == 1 && fake.releases == 1 && fake.pool.in_use == 0, "told %u, released %u", told,
           fake.releases);
    struct session *found = NULL;
    expect(sessions_look(&engine.sessions, &engine.accounts.local, session->id, &found, &why) ==
                   0 &&
               found == session,
           "its tombstone is there");
    expect(sessions_enter(&engine.sessions, &engine.accounts.local, session->id, &found, &why) <
                   0 &&
               why.code == ERR_CONFLICT,
           "nobody enters it: %s", why.text);
    end();
}

TEST(operations_hear_what_is_theirs_and_nothing_after_their_end)
{
    struct session_operation one = operation(), other = operation();
    error err;
    begin("{\"policy\":\"data\"}");
    require(session_begin(session, &one, &err) == 0 && session_begin(session, &other, &err) == 0,
            "%s", err.text);
    expect(one.id != other.id && one.id >= 32 && other.id >= 32, "ids %u, %u", one.id, other.id);
    fake_done(0, one.id, 0);
    fake_done(0, 31, 0); /* an id that no operation has */
    expect(frames == 1, "%u frames", frames);
    session_done(session, &one);
    session_done(session, &one);
    fake_done(0, one.id, 0);
    expect(frames == 1 && session->operation_count == 1, "%u frames, %u under way", frames,
           session->operation_count);
    other.hears_denials = true;
    fake_says(0, AGENT_DENIAL, 0, &(struct agent_denial){ .call = 1 }, sizeof(struct agent_denial));
    expect(frames == 2, "a denial belongs to whatever runs: %u frames", frames);
    static const char entry[sizeof(struct agent_entry) + 1]; /* one byte too many */
    fake_says(0, AGENT_ENTRY, other.id, entry, sizeof entry);
    expect(session->state == SESSION_ENDED && session->end == END_LOST, "misbehaviour ends it");
    expect(ended == 1, "%u operations are told", ended);
    end();
}

TEST(so_many_operations_are_under_way_at_most)
{
    static struct session_operation many[SESSION_OPERATIONS_MAX + 1];
    error err = { 0 };
    begin("{\"policy\":\"data\"}");
    for_each(one, many)
        *one = operation();
    for (unsigned i = 0; i < SESSION_OPERATIONS_MAX; i++)
        require(session_begin(session, &many[i], &err) == 0, "%s", err.text);
    expect(session_begin(session, &many[SESSION_OPERATIONS_MAX], &err) < 0 && err.code == ERR_BUSY,
           "one more: %s", err.text);
    (void) shutdown(fake.slots[0].stream, SHUT_RDWR);
    fake_turn();
    expect(ended == SESSION_OPERATIONS_MAX && session->end == END_LOST, "%u are told", ended);
    end();
}

TEST(idle_and_lifetime_deadlines_end_a_session)
{
    static const struct {
        const char *what, *text;
        int64_t touch_ms; /* it is used then; 0: never */
        int64_t lives_ms; /* so long, and not a second longer */
        enum session_end end;
        bool is_held;
    } facts[] = {
        { "idle", "{\"idle_seconds\":10}", 0, 10000, END_IDLE, false },
        { "used", "{\"idle_seconds\":10}", 9000, 19000, END_IDLE, false },
        { "age", "{\"idle_seconds\":100,\"ttl_seconds\":20}", 15000, 20000, END_AGE, false },
        { "held", "{\"idle_seconds\":10,\"ttl_seconds\":40}", 0, 40000, END_AGE, true },
    };
    for_each(fact, facts) {
        begin(fact->text);
        if (fact->is_held)
            session_hold(session);
        if (fact->touch_ms > 0) {
            fake_pass(fact->touch_ms);
            session_touch(session);
        }
        int64_t left_ms = fact->lives_ms - fact->touch_ms;
        for (; left_ms > 1; left_ms -= left_ms > 1000 ? 1000 : left_ms - 1)
            fake_pass(left_ms > 1000 ? 1000 : left_ms - 1);
        expect(session->state == SESSION_RUNNING, "%s: it has ended too early", fact->what);
        fake_pass(1001);
        expect(session->state == SESSION_ENDED && session->end == fact->end, "%s: end %u",
               fact->what, session->end);
        end();
    }
}

TEST(a_pause_refuses_work_and_stops_the_clocks)
{
    struct session_operation one = operation();
    error err = { 0 };
    begin("{\"idle_seconds\":10,\"ttl_seconds\":20}");
    fake_pass(5000);
    require(session_pause(session, false, &err) == 0, "%s", err.text);
    expect(session->state == SESSION_PAUSED && fake_signal(0) == 19,
           "there is no freezer: SIGSTOP");
    expect(session_begin(session, &one, &err) < 0 && err.code == ERR_CONFLICT, "%s", err.text);
    for (int i = 0; i < 60; i++)
        fake_pass(1000);
    expect(session->state == SESSION_PAUSED, "a minute is nothing");
    require(session_resume(session, &err) == 0, "%s", err.text);
    expect(fake_signal(0) == 18, "SIGCONT");
    fake_pass(9000);
    session_touch(session);
    expect(session->state == SESSION_RUNNING, "it had 15 s left");
    for (int i = 0; i < 7; i++)
        fake_pass(1000);
    expect(session->state == SESSION_ENDED && session->end == END_AGE, "end %u", session->end);
    end();
}

static bool may_live(uint64_t seconds)
{
    struct session_request more = { .has_ttl = true, .ttl_ms = 1000 * seconds };
    error err = { 0 };
    bool is_granted = session_change(session, &more, &err) == 0;
    expect(is_granted || err.code == ERR_LIMIT, "%s", err.text);
    return is_granted;
}

/* Its age is counted by the clock of deadlines, so that a step of the wall clock does not change
 * it. */
TEST(no_time_to_live_leads_beyond_the_age_that_the_policy_allows)
{
    error err = { 0 };
    begin("{\"idle_seconds\":1000,\"ttl_seconds\":100}");
    const struct policy *policy = session->plan.policy;
    static struct policy brief;
    brief = *policy;
    brief.sessions.values[SESSIONS_AGE] = 200000;
    session->plan.policy = &brief;
    for (int i = 0; i < 60; i++)
        fake_pass(1000);
    expect(may_live(140) && !may_live(141), "a minute of its 200 s is over");
    session->created_ms += 3600000; /* as if the clock had been set back an hour */
    expect(may_live(140) && !may_live(141), "the clock was set back");
    session->created_ms -= 7200000;
    expect(may_live(140) && !may_live(141), "the clock was set forward");
    require(session_pause(session, false, &err) == 0, "%s", err.text);
    for (int i = 0; i < 60; i++)
        fake_pass(1000);
    require(session_resume(session, &err) == 0, "%s", err.text);
    expect(may_live(140) && !may_live(141), "a pause is no part of it");
    session->plan.policy = policy;
    end();
}

TEST(a_paused_session_that_uses_the_processor_is_lost)
{
    error err;
    begin("{\"policy\":\"data\"}");
    require(session_pause(session, false, &err) == 0, "%s", err.text);
    fake_pass(1000);
    fake_use_cpu(60000000);
    fake_pass(1001);
    expect(session->state == SESSION_ENDED && session->end == END_LOST, "state %u", session->state);
    end();
}

TEST(a_session_without_a_sandbox_ends_with_the_cause)
{
    static const struct {
        const char *what, *failure, *says;
    } facts[] = {
        { "a build that fails", "no namespace", "build a sandbox: no namespace" },
        { "a build that hangs", NULL, "its sandbox was not built in 60 s" },
    };
    for_each(fact, facts) {
        struct session_request request;
        error err;
        fake_begin();
        fake.build_failure = fact->failure;
        fake.builds_wait = !fact->failure;
        require(session_request_read(fake_json("{}"), true, &request, &err) == 0, "%s", err.text);
        request.place->account = &engine.accounts.local;
        require(session_create(&engine.sessions, &request, NULL, &session, &err) == 0, "%s",
                err.text);
        expect(session->state == SESSION_STARTING, "%s: state %u", fact->what, session->state);
        fake_pass(59000);
        fake_pass(2000);
        expect(session->state == SESSION_ENDED && session->end == END_FAILED, "%s: end %u",
               fact->what, session->end);
        expect(strstr(session->why.text, fact->says), "%s: %s", fact->what, session->why.text);
        if (fake.builds_wait)
            fake_answer_build(&fake.last_build); /* too late: it goes back */
        fake_pass(100);
        expect(fake.pool.in_use == 0, "%s: %u slots are in use", fact->what, fake.pool.in_use);
        fake_end();
    }
}

TEST(a_session_waits_for_a_slot)
{
    error why;
    struct session *all[FAKE_SLOTS + 1];
    fake_begin();
    for (unsigned i = 0; i <= FAKE_SLOTS; i++)
        all[i] = fake_session("{}");
    expect(all[FAKE_SLOTS - 1]->state == SESSION_RUNNING, "every slot is taken");
    expect(all[FAKE_SLOTS]->state == SESSION_STARTING && all[FAKE_SLOTS]->waits_for_room,
           "one waits");
    (void) fail(&why, ERR_CONFLICT, "it was deleted");
    session_end(all[2], END_DELETED, &why);
    fake_pass(100);
    expect(all[FAKE_SLOTS]->state == SESSION_RUNNING, "it is in state %u", all[FAKE_SLOTS]->state);
    struct session *late = fake_session("{}"), *later = fake_session("{}");
    session_end(all[3], END_DELETED, &why);
    fake_pass(100);
    expect(late->state == SESSION_RUNNING && later->waits_for_room, "the first of two");
    session_end(all[4], END_DELETED, &why);
    fake_pass(100);
    expect(later->state == SESSION_RUNNING, "and then the second: state %u", later->state);
    late = fake_session("{}");
    fake_pass(59000);
    expect(late->state == SESSION_STARTING, "it is in state %u after 59 s", late->state);
    fake_pass(2000);
    expect(late->state == SESSION_ENDED && late->why.code == ERR_BUSY &&
               strstr(late->why.text, "every sandbox slot of this machine, which all its services "
                                      "of glovebox share, is taken, and none became free in 60 s; "
                                      "try again later, or end a session"),
           "it is in state %u: %s", late->state, late->why.text);
    fake_end();
}

TEST(processor_time_is_charged_once_in_whole_milliseconds)
{
    static const struct {
        uint64_t used_us, charged_ms; /* by the counters; by then, in all */
    } facts[] = { { 900, 0 }, { 2700, 2 }, { 2999, 2 }, { 3100, 3 }, { 4000, 4 } };
    begin("{}");
    for_each(fact, facts) {
        fake_use_cpu(fact->used_us);
        session_charge(session);
        expect(engine.accounts.local.cpu_ms == fact->charged_ms, "%llu us: %llu ms are charged",
               (unsigned long long) fact->used_us,
               (unsigned long long) engine.accounts.local.cpu_ms);
    }
    end();
}

/* How many seconds pass until so much is charged; -1: more than `most`. */
static int seconds_until(uint64_t charged_ms, int most)
{
    for (int i = 0; i <= most; i++, fake_pass(1000))
        if (engine.accounts.local.cpu_ms >= charged_ms)
            return i;
    return -1;
}

TEST(what_runs_between_cells_is_charged_also_after_a_long_rest)
{
    struct session_operation one = operation();
    error err;
    begin("{\"idle_seconds\":3600,\"ttl_seconds\":7200}");
    fake_use_cpu(4000);
    expect(seconds_until(4, 100) < 0, "nothing of its client has run yet");
    require(session_begin(session, &one, &err) == 0, "%s", err.text);
    session_done(session, &one);
    fake_use_cpu(5000);
    expect(seconds_until(5, 15) >= 0, "a program that goes on at once is not charged in 15 s");
    for (int i = 0; i < 600; i++)
        fake_pass(1000);
    fake_use_cpu(10000);
    expect(seconds_until(10, 85) >= 0, "one that begins after ten minutes is not charged in 85 s");
    fake_use_cpu(15000);
    expect(seconds_until(15, 15) >= 0, "and goes on, and is not charged in 15 s");
    end();
}

TEST(an_unused_session_ends_on_time)
{
    begin("{\"idle_seconds\":100,\"ttl_seconds\":7200}");
    for (int i = 0; i < 97; i++)
        fake_pass(1000);
    session_touch(session);
    for (int i = 0; i < 99; i++)
        fake_pass(1000);
    expect(session->state == SESSION_RUNNING, "it ended a second too soon");
    fake_pass(1001);
    expect(session->state == SESSION_ENDED && session->end == END_IDLE, "end %u", session->end);
    end();
}

static uint64_t next_look_ms(void)
{
    uv_update_time(&fake.loop);
    return uv_timer_get_due_in(&engine.sessions.timer);
}

TEST(sessions_that_nothing_uses_are_looked_at_every_fifth_second)
{
    error err;
    begin("{\"idle_seconds\":100,\"ttl_seconds\":7200}");
    expect(next_look_ms() <= 1000, "it has just begun: %llu ms",
           (unsigned long long) next_look_ms());
    for (int i = 0; i < 7; i++)
        fake_pass(1000);
    expect(next_look_ms() > 1000, "nothing uses it: %llu ms", (unsigned long long) next_look_ms());
    session_touch(session);
    expect(next_look_ms() <= 1000, "it is used: %llu ms", (unsigned long long) next_look_ms());
    for (int i = 0; i < 7; i++)
        fake_pass(1000);
    expect(next_look_ms() > 1000, "and rests: %llu ms", (unsigned long long) next_look_ms());
    require(session_pause(session, false, &err) == 0, "%s", err.text);
    expect(next_look_ms() <= 1000, "what is paused is watched: %llu ms",
           (unsigned long long) next_look_ms());
    end();
    begin("{\"idle_seconds\":100,\"ttl_seconds\":7200}");
    engine.accounts.local.key.id[0] = 'k'; /* without a key there is no bound */
    engine.accounts.defaults.cpu_seconds_per_day = 100;
    for (int i = 0; i < 7; i++)
        fake_pass(1000);
    expect(next_look_ms() <= 1000, "with a bound of the day: %llu ms",
           (unsigned long long) next_look_ms());
    engine.accounts.local.key.id[0] = '\0';
    engine.accounts.defaults.cpu_seconds_per_day = 0;
    end();
}

TEST(a_session_in_another_sandbox_is_charged_what_it_uses_there)
{
    error why;
    struct session_operation one = operation();
    (void) fail(&why, ERR_CONFLICT, "it was rolled back");
    begin("{}");
    fake_use_cpu(5000);
    session_charge(session);
    struct session *other = fake_session("{}");
    struct sandbox *fresh = other->sandbox;
    other->sandbox = NULL;
    session_end(other, END_DELETED, &why);
    require(session_begin(session, &one, &why) == 0, "%s", why.text);
    session_hold(session);
    session_move(session, fresh, session->start, &why);
    expect(session->state == SESSION_STARTING && ended == 1 && session->holds == 0,
           "what was under way has ended");
    expect(engine.accounts.local.cpu_ms == 5, "%llu ms are charged",
           (unsigned long long) engine.accounts.local.cpu_ms);
    fake_use_cpu(6000); /* every sandbox of the test has the same counters */
    session_charge(session);
    expect(engine.accounts.local.cpu_ms == 6, "%llu ms are charged",
           (unsigned long long) engine.accounts.local.cpu_ms);
    end();
}

TESTS(CASE(a_session_keeps_its_sandbox_until_it_ends),
      CASE(operations_hear_what_is_theirs_and_nothing_after_their_end),
      CASE(so_many_operations_are_under_way_at_most),
      CASE(idle_and_lifetime_deadlines_end_a_session),
      CASE(a_pause_refuses_work_and_stops_the_clocks),
      CASE(no_time_to_live_leads_beyond_the_age_that_the_policy_allows),
      CASE(a_paused_session_that_uses_the_processor_is_lost),
      CASE(a_session_without_a_sandbox_ends_with_the_cause), CASE(a_session_waits_for_a_slot),
      CASE(processor_time_is_charged_once_in_whole_milliseconds),
      CASE(what_runs_between_cells_is_charged_also_after_a_long_rest),
      CASE(an_unused_session_ends_on_time),
      CASE(sessions_that_nothing_uses_are_looked_at_every_fifth_second),
      CASE(a_session_in_another_sandbox_is_charged_what_it_uses_there))
