/* checkpoints_test.c - checkpoints: when one is ready, how much disk space they may use, and when
 * that is free again. */
#include "engine/session/checkpoints.h"

#include "contract/image.h"
#include "engine/session/contexts.h"
#include "engine/session/fake_engine_test.h"
#include "engine/session/session_internal.h"

#include <errno.h>

static struct session *session;
static struct context *context;
static unsigned told;
static bool has_failed;
static char cause[sizeof((error *) NULL)->text];

static void on_made(void *user, struct session_checkpoint *checkpoint, const error *why)
{
    (void) user;
    (void) checkpoint;
    told++;
    has_failed = why != NULL;
    (void) snprintf(cause, sizeof cause, "%s", why ? why->text : "");
}

static void begin(void)
{
    told = 0;
    has_failed = false;
    fake_begin();
    session = fake_session("{\"policy\":\"data\"}");
    context = fake_context(session, "python");
    (void) fake_cell_begins(context, "{\"code\":\"a = 1\"}");
    fake_cell_ends(0, AGENT_INTERPRETER, 0);
}

static int make(const char *name, struct session_checkpoint **ret_checkpoint, error *err)
{
    const struct session_checkpoint_order order = {
        .context = context, .name = name, .asker = &engine.accounts.local, .told = on_made
    };
    return session_checkpoint_make(session, &order, ret_checkpoint, err);
}

/* What the sandbox writes: the smallest complete image, and `files` bytes. */
static void write_copy(bool is_whole, size_t files)
{
    static char block[65536];
    const struct image_head head = { .magic = IMAGE_MAGIC, .version = IMAGE_VERSION };
    const struct image_end end = { .magic = IMAGE_END };
    const struct fake_frame *image = fake_order(0, AGENT_IMAGE);
    const struct fake_frame *save = fake_order(0, AGENT_SAVE);
    require(image && save && image->fd >= 0 && save->fd >= 0, "a copy is asked for");
    require(write(image->fd, &head, sizeof head) == sizeof head, "the head");
    if (is_whole)
        require(write(image->fd, &end, sizeof end) == sizeof end, "the end");
    for (size_t left = files; left > 0;) {
        size_t size = left < sizeof block ? left : sizeof block;
        ssize_t written = write(save->fd, block, size);
        if (written < 0 && errno == EPIPE)
            break; /* gloveboxd has refused the rest: the test looks at what it says */
        require(written == (ssize_t) size, "the files");
        left -= size;
        fake_turn();
    }
    (void) close(image->fd);
    (void) close(save->fd);
    ((struct fake_frame *) (uintptr_t) image)->fd = ((struct fake_frame *) (uintptr_t) save)->fd =
        -1;
    fake_cell_ends(0, AGENT_INTERPRETER, 0);
    fake_done(0, save->id, 0);
}

static struct session_checkpoint *make_whole(const char *name)
{
    struct session_checkpoint *checkpoint = NULL;
    unsigned before = told;
    error err;
    require(make(name, &checkpoint, &err) == 0, "%s", err.text);
    write_copy(true, 1000);
    fake_until(told > before);
    require(!has_failed, "%s", cause);
    return checkpoint;
}

TEST(a_checkpoint_is_there_when_both_parts_are_on_disk)
{
    struct session_checkpoint *made = NULL, *found = NULL;
    error err = { 0 };
    begin();
    require(make("first", &made, &err) == 0, "%s", err.text);
    expect(session_checkpoint_find(session, "first", &found, &err) < 0 && err.code == ERR_CONFLICT,
           "it is not ready: %s", err.text);
    expect(session_holds(session) == SESSION_IS_COPIED, "the session is being copied");
    write_copy(true, 1000);
    fake_until(told == 1);
    expect(!has_failed && made->is_ready, "%s", cause);
    expect(session_checkpoint_find(session, "first", &found, &err) == 0 && found == made,
           "by name");
    expect(session_checkpoint_find(session, made->id, &found, &err) == 0 && found == made, "by id");
    expect(session_checkpoint_find(session, "", &found, &err) < 0 && err.code == ERR_NOT_FOUND,
           "not by no name");
    expect(session_checkpoint_find(session, "second", &found, &err) < 0 &&
               strstr(err.text, "it has first"),
           "%s", err.text);
    uint64_t bytes = sizeof(struct image_head) + sizeof(struct image_end) + 1000;
    expect(session_checkpoint_bytes(made) == bytes &&
               engine.sessions.session_checkpoint_bytes == bytes,
           "%llu bytes", (unsigned long long) engine.sessions.session_checkpoint_bytes);
    expect(session_holds(session) == 0, "nothing is held");
    fake_end();
}

TEST(an_image_without_its_end_is_no_checkpoint)
{
    struct session_checkpoint *made = NULL;
    error err;
    begin();
    require(make("first", &made, &err) == 0, "%s", err.text);
    write_copy(false, 10);
    fake_until(told == 1);
    expect(has_failed && strstr(cause, "ended early"), "%s", cause);
    expect(session->session_checkpoint_count == 0 && !session->checkpoints, "it is gone");
    fake_until(engine.sessions.session_checkpoint_bytes == 0);
    fake_end();
}

static void fail_copy(const char *what, int image, int files)
{
    struct session_checkpoint *made = NULL;
    error err;
    begin();
    require(make("", &made, &err) == 0, "%s", err.text);
    const struct fake_frame *save = fake_order(0, AGENT_SAVE);
    require(save, "a copy is asked for");
    fake_cell_ends(0, AGENT_INTERPRETER, image);
    fake_done(0, save->id, files);
    fake_until(told > 0);
    fake_pass(1000);
    expect(told == 1 && has_failed, "%s: told %u times", what, told);
    expect(engine.sessions.session_checkpoint_count == 0, "%s: it counts", what);
    expect(session->state == SESSION_RUNNING && context->state == CONTEXT_IDLE,
           "%s: the context is in state %u", what, context->state);
    fake_end();
}

TEST(a_failed_copy_is_reported_once)
{
    fail_copy("the image", EAGAIN, 0);
    fail_copy("the files", 0, EIO);
}

TEST(names_and_numbers_are_bounded)
{
    struct session_checkpoint *made = NULL;
    error err = { 0 };
    begin();
    expect(session_checkpoint_find(session, "x", &made, &err) < 0 &&
               strstr(err.text, "'x'; it has none"),
           "%s", err.text);
    (void) make_whole("first");
    expect(make("first", &made, &err) < 0 && err.code == ERR_CONFLICT, "a name twice: %s",
           err.text);
    session_checkpoint_remove(make_whole("second"));
    fake_turn();
    (void) make_whole("third");
    expect(session_checkpoint_find(session, "x", &made, &err) < 0 &&
               strstr(err.text, "it has third, first"),
           "%s", err.text);
    for (int i = 2; i < CHECKPOINTS_MAX; i++)
        (void) make_whole("");
    expect(make("", &made, &err) < 0 && err.code == ERR_BUSY, "one more: %s", err.text);
    expect(session->session_checkpoint_count == CHECKPOINTS_MAX && told == CHECKPOINTS_MAX + 1,
           "%u are there", session->session_checkpoint_count);
    session_checkpoint_remove(session->checkpoints);
    fake_turn();
    (void) make_whole("again");
    fake_end();
}

TEST(the_disk_of_all_is_bounded_while_they_are_written)
{
    struct session_checkpoint *made = NULL;
    error err;
    begin();
    engine.sessions.session_checkpoint_bytes_max = 100000;
    require(make("", &made, &err) == 0, "%s", err.text);
    write_copy(true, 200000);
    fake_until(told == 1);
    expect(has_failed && strstr(cause, "checkpoints_mib"), "%s", cause);
    fake_until(engine.sessions.session_checkpoint_bytes == 0);
    expect(engine.accounts.local.session_checkpoint_bytes == 0, "%llu bytes of the account",
           (unsigned long long) engine.accounts.local.session_checkpoint_bytes);
    fake_end();
}

TEST(a_checkpoint_that_is_held_outlives_its_removal)
{
    struct session_checkpoint *found = NULL;
    error err;
    begin();
    struct session_checkpoint *made = make_whole("first");
    checkpoint_retain(made);
    session_checkpoint_remove(made);
    fake_turn();
    expect(session_checkpoint_find(session, "first", &found, &err) < 0, "it is not found");
    expect(session_checkpoint_image_is_whole(made), "what holds it still reads it");
    expect(engine.sessions.session_checkpoint_bytes == 0, "its room is free already");
    checkpoint_release(made);
    fake_turn();
    fake_end();
}

TEST(the_end_of_a_session_ends_its_checkpoints)
{
    struct session_checkpoint *made = NULL;
    error err;
    begin();
    (void) make_whole("first");
    require(make("second", &made, &err) == 0, "%s", err.text);
    fake_turn();
    (void) fail(&err, ERR_CONFLICT, "it was deleted");
    session_end(session, END_DELETED, &err);
    fake_until(engine.sessions.session_checkpoint_bytes == 0);
    expect(told == 2 && has_failed, "the one that was being made is told: %u", told);
    expect(engine.sessions.session_checkpoint_count == 0, "%u are left",
           engine.sessions.session_checkpoint_count);
    fake_end();
}

TESTS(CASE(a_checkpoint_is_there_when_both_parts_are_on_disk),
      CASE(an_image_without_its_end_is_no_checkpoint), CASE(a_failed_copy_is_reported_once),
      CASE(names_and_numbers_are_bounded), CASE(the_disk_of_all_is_bounded_while_they_are_written),
      CASE(a_checkpoint_that_is_held_outlives_its_removal),
      CASE(the_end_of_a_session_ends_its_checkpoints))
