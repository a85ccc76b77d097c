/* collector_test.c - a sandbox's init that lies, cheats and babbles. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/collector.h"
#include "engine/sandbox/frame_reader.h"

#include <stdlib.h>
#include <string.h>

static struct blob_store *blobs;
static struct limits limits;

/* One frame, as bytes. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static size_t put(unsigned char *bytes, uint16_t kind, uint32_t id, uint16_t stream,
                  const void *payload, size_t size)
{
    struct inside_frame frame = {
        .size = (uint32_t) size, .kind = kind, .id = id, .stream = stream
    };
    memcpy(bytes, &frame, sizeof frame);
    if (size > 0)
        memcpy(bytes + sizeof frame, payload, size);
    return sizeof frame + size;
}

static int hear(void *context, const struct inside_frame *frame, const unsigned char *payload,
                error *err)
{
    return harvest_frame(context, frame, payload, err) < 0 ? -1 : 0;
}

/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static int feed(struct inside_reader *reader, struct harvest *harvest, const void *bytes,
                size_t size, size_t piece, error *err)
{
    for (size_t at = 0; at < size;) {
        size_t room;
        unsigned char *place = inside_reader_room(reader, &room);
        size_t here = size - at < piece ? size - at : piece;
        here = here < room ? here : room;
        memcpy(place, (const unsigned char *) bytes + at, here);
        at += here;
        if (inside_reader_took(reader, here, hear, harvest, err) < 0)
            return -1;
    }
    return 0;
}

static void begin(struct inside_reader *reader, struct harvest *harvest)
{
    error err;
    limits_init(&limits);
    limits.artifacts = 100;
    limits.artifact_files = 2;
    if (!blobs)
        require(sodium_init() >= 0 &&
                    blobs_open(NULL, &(struct blob_bounds){ 1 << 20, 100 }, &blobs, &err) == 0,
                "blobs");
    memset(reader, 0, sizeof *reader);
    harvest_init(harvest, &limits, "data", blobs);
    struct inside_hello hello = { .version = INSIDE_VERSION };
    unsigned char bytes[64];
    size_t size = put(bytes, INSIDE_HELLO, 0, 0, &hello, sizeof hello);
    require(feed(reader, harvest, bytes, size, 1, &err) == 0, "hello: %s", err.text);
}

static size_t put_file(unsigned char *bytes, const char *path, uint64_t size)
{
    unsigned char payload[512];
    struct inside_file file = { .size = size, .mode = 0100644 };
    memcpy(payload, &file, sizeof file);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a payload is not a text */
    memcpy(payload + sizeof file, path, strlen(path));
    return put(bytes, INSIDE_FILE, ID_COLLECT, 0, payload, sizeof file + strlen(path));
}

TEST(a_file_comes_in)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    error err = { 0 };
    unsigned char bytes[2000];
    for (size_t piece = 1; piece < 200; piece += 50) {
        begin(&reader, &harvest);
        harvest.phase = HARVEST_COLLECTING;
        size_t size = put_file(bytes, "a/plot.png", 6);
        size += put(bytes + size, INSIDE_DATA, ID_COLLECT, 0, "abc", 3);
        size += put(bytes + size, INSIDE_DATA, ID_COLLECT, 0, "def", 3);
        size += put(bytes + size, INSIDE_END, ID_COLLECT, 0, NULL, 0);
        expect(feed(&reader, &harvest, bytes, size, piece, &err) == 0, "%s", err.text);
        expect(harvest.artifact_count == 1 && harvest.artifacts[0].size == 6 &&
                   strcmp(harvest.artifacts[0].path, "a/plot.png") == 0,
               "%zu artifacts", harvest.artifact_count);
        harvest_done(&harvest);
    }
}

/* Each of these ends the sandbox. */
TEST(an_init_that_misbehaves_is_found_out)
{
    static const struct {
        const char *what;
        unsigned phase;
        uint16_t kind;
        uint32_t id;
        uint16_t stream;
        const char *payload;
        size_t size;
    } facts[] = {
        { "an order of ours", HARVEST_RUNNING, INSIDE_PUT, 1, 0, "", 0 },
        { "a kind that does not exist", HARVEST_RUNNING, 999, 1, 0, "", 0 },
        { "a second hello", HARVEST_RUNNING, INSIDE_HELLO, 0, 0, "\1\0\0\0\0\0\0\0", 8 },
        { "output before anything runs", HARVEST_LOADING, INSIDE_OUTPUT, ID_PROGRAM, 1, "x", 1 },
        { "output of another process", HARVEST_RUNNING, INSIDE_OUTPUT, 77, 1, "x", 1 },
        { "output on a third stream", HARVEST_RUNNING, INSIDE_OUTPUT, ID_PROGRAM, 3, "x", 1 },
        { "empty output", HARVEST_RUNNING, INSIDE_OUTPUT, ID_PROGRAM, 1, "", 0 },
        { "a file while code runs", HARVEST_RUNNING, INSIDE_DATA, ID_COLLECT, 0, "x", 1 },
        { "data of no file", HARVEST_COLLECTING, INSIDE_DATA, ID_COLLECT, 0, "x", 1 },
        { "an end of no file", HARVEST_COLLECTING, INSIDE_END, ID_COLLECT, 0, "", 0 },
        { "an exit of what was not started", HARVEST_RUNNING, INSIDE_EXITED, ID_PROGRAM, 0,
          "\0\0\0\0\0\0\0\0", 8 },
        { "an answer that was not asked for", HARVEST_LOADING, INSIDE_DONE, 99, 0,
          "\0\0\0\0\0\0\0\0", 8 },
        { "a short struct", HARVEST_RUNNING, INSIDE_STOPPED, ID_STOP, 0, "x", 1 },
        { "a stray stream", HARVEST_RUNNING, INSIDE_STARTED, ID_PROGRAM, 1, "\0\0\0\0\0\0\0\0", 8 },
        { "a listing", HARVEST_COLLECTING, INSIDE_MEASURED, ID_COLLECT, 0, "x", 1 },
    };
    static struct inside_reader reader;
    static struct harvest harvest;
    unsigned char bytes[256];
    for_each(fact, facts) {
        error err = { 0 };
        begin(&reader, &harvest);
        harvest.phase = fact->phase;
        size_t size = put(bytes, fact->kind, fact->id, fact->stream, fact->payload, fact->size);
        expect(feed(&reader, &harvest, bytes, size, size, &err) < 0 && err.code == ERR_PROTOCOL,
               "%s: '%s'", fact->what, err.text);
        harvest_done(&harvest);
    }
}

/* A child that the code has left behind holds the same socket. */
TEST(a_result_after_the_end_of_the_code_is_left_out)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    unsigned char bytes[256];
    static const unsigned phases[] = { HARVEST_RUNNING, HARVEST_COLLECTING };
    struct {
        struct inside_result head;
        char text[2];
    } result = { { .what = INSIDE_RESULT_VALUE, .last = 1 }, { '{', '}' } };
    for_each(phase, phases) {
        error err = { 0 };
        begin(&reader, &harvest);
        harvest.phase = *phase;
        harvest.running = ID_INTERPRETER;
        harvest.has_started = harvest.has_exited = true;
        size_t size = put(bytes, INSIDE_RESULT, ID_INTERPRETER, 0, &result,
                          sizeof result.head + sizeof result.text);
        expect(feed(&reader, &harvest, bytes, size, size, &err) == 0, "phase %u: %s", *phase,
               err.text);
        expect(harvest.results.size == 0, "phase %u: %zu bytes", *phase, harvest.results.size);
        harvest_done(&harvest);
    }
}

TEST(artifacts_keep_to_what_was_granted)
{
    static const struct {
        const char *path;
        uint64_t size;
        int result;
    } facts[] = {
        { "fits", 100, 0 },         { "larger", 101, -1 },  { "huge", UINT64_MAX, -1 },
        { "../escape", 1, -1 },     { "/absolute", 1, -1 }, { "a\nb", 1, -1 },
        { "not \xff text", 1, -1 },
    };
    static struct inside_reader reader;
    static struct harvest harvest;
    unsigned char bytes[1024];
    for_each(fact, facts) {
        error err = { 0 };
        begin(&reader, &harvest);
        harvest.phase = HARVEST_COLLECTING;
        size_t size = put_file(bytes, fact->path, fact->size);
        expect(feed(&reader, &harvest, bytes, size, size, &err) == fact->result, "%s: %s",
               fact->path, err.text);
        harvest_done(&harvest);
    }
}

TEST(denials_are_counted_by_target)
{
    static struct harvest harvest;
    static struct inside_reader reader;
    begin(&reader, &harvest);
    struct inside_denial call = { .call = 41 /* socket */, .arguments = { 2, 1, 0 } };
    for (int i = 0; i < 3; i++)
        denials_add_call(&harvest.denials, &call, "data");
    call.arguments[0] = 38; /* AF_ALG */
    denials_add_call(&harvest.denials, &call, "data");
    call = (struct inside_denial){ .call = 101 /* ptrace */ };
    denials_add_call(&harvest.denials, &call, "data");
    const struct denials *denials = &harvest.denials;
    require(denials->count == 3, "%zu rows", denials->count);
    expect(denials->rows[0].count == 3 && strcmp(denials->rows[0].layer, "network") == 0,
           "network");
    expect(strcmp(denials->rows[1].target, "socket(AF_ALG, SOCK_STREAM)") == 0, "%s",
           denials->rows[1].target);
    expect(strcmp(denials->rows[2].target, "ptrace") == 0, "%s", denials->rows[2].target);
    char name[16];
    for (int i = 0; i < 2 * DENIALS_MOST; i++) {
        (void) snprintf(name, sizeof name, "n%d", i);
        denials_add(&harvest.denials, "artifact", name, "", 1);
    }
    expect(denials->count == DENIALS_MOST && denials->unlisted == DENIALS_MOST + 3,
           "%zu rows, %d more", denials->count, (int) denials->unlisted);
    harvest_done(&harvest);
}

static bool is_told(const struct denials *denials, const char *layer, const char *says)
{
    for (size_t i = 0; i < denials->count; i++)
        if (strcmp(denials->rows[i].layer, layer) == 0 && strstr(denials->rows[i].message, says))
            return true;
    return false;
}

TEST(files_that_could_not_be_collected_are_told)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    unsigned char bytes[256];
    error err = { 0 };
    struct {
        struct inside_done done;
        char text[16];
    } done = { { .os = 5 }, "list a folder" };
    begin(&reader, &harvest);
    harvest.phase = HARVEST_COLLECTING;
    size_t size =
        put(bytes, INSIDE_DONE, ID_COLLECT, 0, &done, sizeof done.done + strlen(done.text));
    expect(feed(&reader, &harvest, bytes, size, size, &err) == 0, "%s", err.text);
    expect(is_told(&harvest.denials, "artifact", "list a folder"), "%zu denials",
           harvest.denials.count);
    harvest_done(&harvest);
}

TEST(a_result_that_is_too_large_to_show_is_told_once)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    static unsigned char bytes[INSIDE_PAYLOAD_MOST + 64];
    static unsigned char payload[INSIDE_PAYLOAD_MOST];
    struct inside_result head = { .what = INSIDE_RESULT_DISPLAY };
    error err = { 0 };
    begin(&reader, &harvest);
    harvest.phase = HARVEST_RUNNING;
    harvest.running = ID_INTERPRETER;
    harvest.has_started = true;
    memset(payload, 'x', sizeof payload);
    for (int piece = 0; piece < 300; piece++) { /* 18 MiB: twice what is shown */
        head.last = piece == 299;
        memcpy(payload, &head, sizeof head);
        size_t size = put(bytes, INSIDE_RESULT, ID_INTERPRETER, 0, payload, sizeof payload);
        require(feed(&reader, &harvest, bytes, size, size, &err) == 0, "%s", err.text);
    }
    expect(harvest.results.size == 0, "%zu bytes", harvest.results.size);
    expect(harvest.denials.count == 1 && harvest.denials.rows[0].count == 1 &&
               is_told(&harvest.denials, "output", "8 MiB"),
           "%zu denials", harvest.denials.count);
    harvest_done(&harvest);
}

/* Comma and tab stand between: readers of the stream find each by them. */
TEST(results_stand_one_behind_the_other)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    unsigned char bytes[256];
    struct {
        struct inside_result head;
        char text[20];
    } result = { { .what = INSIDE_RESULT_DISPLAY, .last = 1 }, "{\"data\":{\"a/b\":[1]}}" };
    error err = { 0 };
    begin(&reader, &harvest);
    harvest.phase = HARVEST_RUNNING;
    harvest.running = ID_INTERPRETER;
    harvest.has_started = true;
    size_t size = put(bytes, INSIDE_RESULT, ID_INTERPRETER, 0, &result, sizeof result);
    for (int i = 0; i < 2; i++)
        require(feed(&reader, &harvest, bytes, size, size, &err) == 0, "%s", err.text);
#define ONE "{\"main\":false,\"data\":{\"a/b\":[1]},\"chart\":null}"
    expect(strcmp(bytes_text(&harvest.results), ONE ",\t" ONE) == 0, "%s",
           bytes_text(&harvest.results));
    harvest_done(&harvest);
}

/* What comes to nothing was looked at all the same: so much and no more of it. */
TEST(what_is_looked_at_is_bounded)
{
    static struct inside_reader reader;
    static struct harvest harvest;
    static unsigned char bytes[INSIDE_PAYLOAD_MOST + 64];
    static unsigned char payload[INSIDE_PAYLOAD_MOST];
    struct inside_result head = { .what = INSIDE_RESULT_DISPLAY, .last = 1 };
    error err = { 0 };
    begin(&reader, &harvest);
    harvest.phase = HARVEST_RUNNING;
    harvest.running = ID_INTERPRETER;
    harvest.has_started = true;
    memset(payload, ' ', sizeof payload);
    memcpy(payload, &head, sizeof head);
    size_t size = put(bytes, INSIDE_RESULT, ID_INTERPRETER, 0, payload, sizeof payload);
    for (int i = 0; i < 1000; i++)
        require(feed(&reader, &harvest, bytes, size, size, &err) == 0, "%s", err.text);
    expect(harvest.results_looked <= 16UL << 20 && harvest.results_looked > 15UL << 20, "%d bytes",
           (int) harvest.results_looked);
    expect(is_told(&harvest.denials, "output", "8 MiB"), "%zu denials", harvest.denials.count);
    harvest_done(&harvest);
}

TESTS(CASE(results_stand_one_behind_the_other), CASE(what_is_looked_at_is_bounded),
      CASE(files_that_could_not_be_collected_are_told),
      CASE(a_result_that_is_too_large_to_show_is_told_once), CASE(a_file_comes_in),
      CASE(an_init_that_misbehaves_is_found_out),
      CASE(a_result_after_the_end_of_the_code_is_left_out),
      CASE(artifacts_keep_to_what_was_granted), CASE(denials_are_counted_by_target))
