/* collector_test.c - frames of a sandbox's init that break the protocol. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/collector.h"
#include "engine/sandbox/frame_reader.h"

#include <fcntl.h>
#include <string.h>

static struct blob_store *blobs;
static struct limits limits;

/* One frame, as bytes. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static size_t put(unsigned char *bytes, uint16_t kind, uint32_t id, uint16_t stream,
                  const void *payload, size_t size)
{
    struct agent_frame frame = {
        .size = (uint32_t) size, .kind = kind, .id = id, .stream = stream
    };
    memcpy(bytes, &frame, sizeof frame);
    if (size > 0)
        memcpy(bytes + sizeof frame, payload, size);
    return sizeof frame + size;
}

static int hear(void *context, const struct agent_frame *frame, const unsigned char *payload,
                error *err)
{
    return collector_frame(context, frame, payload, err) < 0 ? -1 : 0;
}

/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static int feed(struct frame_reader *reader, struct collector *collector, const void *bytes,
                size_t size, size_t piece, error *err)
{
    for (size_t at = 0; at < size;) {
        size_t room;
        unsigned char *place = frame_reader_room(reader, &room);
        size_t here = size - at < piece ? size - at : piece;
        here = here < room ? here : room;
        memcpy(place, (const unsigned char *) bytes + at, here);
        at += here;
        if (frame_reader_took(reader, here, hear, collector, err) < 0)
            return -1;
    }
    return 0;
}

static void begin(struct frame_reader *reader, struct collector *collector)
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
    collector_init(collector, &limits, "data", blobs);
    struct agent_hello hello = { .version = AGENT_VERSION };
    unsigned char bytes[64];
    size_t size = put(bytes, AGENT_HELLO, 0, 0, &hello, sizeof hello);
    require(feed(reader, collector, bytes, size, 1, &err) == 0, "hello: %s", err.text);
}

static size_t put_file(unsigned char *bytes, const char *path, uint64_t size)
{
    unsigned char payload[512];
    struct agent_file file = { .size = size, .mode = 0100644 };
    memcpy(payload, &file, sizeof file);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a payload is not a text */
    memcpy(payload + sizeof file, path, strlen(path));
    return put(bytes, AGENT_FILE, ID_COLLECT, 0, payload, sizeof file + strlen(path));
}

TEST(a_file_comes_in)
{
    static struct frame_reader reader;
    static struct collector collector;
    error err = { 0 };
    unsigned char bytes[2000];
    for (size_t piece = 1; piece < 200; piece += 50) {
        begin(&reader, &collector);
        collector.phase = COLLECTOR_COLLECTING;
        size_t size = put_file(bytes, "a/plot.png", 6);
        size += put(bytes + size, AGENT_DATA, ID_COLLECT, 0, "abc", 3);
        size += put(bytes + size, AGENT_DATA, ID_COLLECT, 0, "def", 3);
        size += put(bytes + size, AGENT_END, ID_COLLECT, 0, NULL, 0);
        expect(feed(&reader, &collector, bytes, size, piece, &err) == 0, "%s", err.text);
        collector_write(&collector);
        expect(collector_keep(&collector, &err) == 0 && collector.kept == 1 &&
                   collector.artifacts[0].size == 6 &&
                   strcmp(collector.artifacts[0].path, "a/plot.png") == 0,
               "%zu artifacts", collector.artifact_count);
        collector_done(&collector);
    }
}

TEST(a_file_is_not_longer_than_it_said)
{
    static struct frame_reader reader;
    static struct collector collector;
    error err = { 0 };
    unsigned char bytes[600];
    begin(&reader, &collector);
    collector.phase = COLLECTOR_COLLECTING;
    size_t size = put_file(bytes, "plot.png", 6);
    size += put(bytes + size, AGENT_DATA, ID_COLLECT, 0, "abc", 3);
    size += put(bytes + size, AGENT_DATA, ID_COLLECT, 0, "defg", 4);
    expect(feed(&reader, &collector, bytes, size, size, &err) < 0, "it is taken");
    collector_done(&collector);
}

TEST(a_file_that_is_cut_is_given_up_with_its_descriptor)
{
    static struct frame_reader reader;
    static struct collector collector;
    static unsigned char bytes[1200000], piece[40000];
    error err = { 0 };
    begin(&reader, &collector);
    limits.artifacts = 2 << 20;
    collector.phase = COLLECTOR_COLLECTING;
    size_t size = put_file(bytes, "plot.png", 2000000);
    for (unsigned i = 0; i < 29; i++) /* a small file has no descriptor before its end */
        size += put(bytes + size, AGENT_DATA, ID_COLLECT, 0, piece, sizeof piece);
    (void) feed(&reader, &collector, bytes, size, size, &err);
    collector_write(&collector);
    int fd = collector.writer.fd;
    collector_done(&collector);
    expect(fd >= 0 && fcntl(fd, F_GETFD) < 0, "descriptor %d", fd);
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
        { "an order of ours", COLLECTOR_RUNNING, AGENT_PUT, 1, 0, "", 0 },
        { "a kind that does not exist", COLLECTOR_RUNNING, 999, 1, 0, "", 0 },
        { "a second hello", COLLECTOR_RUNNING, AGENT_HELLO, 0, 0, "\1\0\0\0\0\0\0\0", 8 },
        { "output before anything runs", COLLECTOR_LOADING, AGENT_OUTPUT, ID_PROGRAM, 1, "x", 1 },
        { "output of another process", COLLECTOR_RUNNING, AGENT_OUTPUT, 77, 1, "x", 1 },
        { "output on a third stream", COLLECTOR_RUNNING, AGENT_OUTPUT, ID_PROGRAM, 3, "x", 1 },
        { "empty output", COLLECTOR_RUNNING, AGENT_OUTPUT, ID_PROGRAM, 1, "", 0 },
        { "a file while code runs", COLLECTOR_RUNNING, AGENT_DATA, ID_COLLECT, 0, "x", 1 },
        { "data of no file", COLLECTOR_COLLECTING, AGENT_DATA, ID_COLLECT, 0, "x", 1 },
        { "an end of no file", COLLECTOR_COLLECTING, AGENT_END, ID_COLLECT, 0, "", 0 },
        { "an exit of what was not started", COLLECTOR_RUNNING, AGENT_EXITED, ID_PROGRAM, 0,
          "\0\0\0\0\0\0\0\0", 8 },
        { "an answer that was not asked for", COLLECTOR_LOADING, AGENT_DONE, 99, 0,
          "\0\0\0\0\0\0\0\0", 8 },
        { "a short struct", COLLECTOR_RUNNING, AGENT_STOPPED, ID_STOP, 0, "x", 1 },
        { "a stray stream", COLLECTOR_RUNNING, AGENT_STARTED, ID_PROGRAM, 1, "\0\0\0\0\0\0\0\0",
          8 },
        { "a listing", COLLECTOR_COLLECTING, AGENT_MEASURED, ID_COLLECT, 0, "x", 1 },
    };
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[256];
    for_each(fact, facts) {
        error err = { 0 };
        begin(&reader, &collector);
        collector.phase = fact->phase;
        size_t size = put(bytes, fact->kind, fact->id, fact->stream, fact->payload, fact->size);
        expect(feed(&reader, &collector, bytes, size, size, &err) < 0 && err.code == ERR_PROTOCOL,
               "%s: '%s'", fact->what, err.text);
        collector_done(&collector);
    }
}

/* A program that has started; returns the collector's answer to its end. */
static int hear_exit(int32_t exit_code, int32_t signal, struct collector *collector)
{
    static struct frame_reader reader;
    error err = { 0 };
    struct agent_exited exited = { exit_code, signal };
    struct agent_frame frame = { .size = sizeof exited, .kind = AGENT_EXITED, .id = ID_PROGRAM };
    begin(&reader, collector);
    collector->phase = COLLECTOR_RUNNING;
    collector->running = ID_PROGRAM;
    collector->has_started = true;
    return collector_frame(collector, &frame, (const unsigned char *) &exited, &err);
}

TEST(a_program_ends_once_with_an_exit_code_or_a_signal)
{
    static const struct {
        int32_t exit_code, signal;
        bool is_possible;
    } facts[] = {
        { 0, 0, true },    { 255, 0, true },  { -1, 1, true },    { -1, 64, true },
        { 256, 0, false }, { -2, 0, false },  { -1, 0, false },   { 0, 9, false },
        { -1, 65, false }, { -1, -1, false }, { 255, 64, false },
    };
    static struct collector collector;
    for_each(fact, facts) {
        int heard = hear_exit(fact->exit_code, fact->signal, &collector);
        expect(heard == (fact->is_possible ? COLLECTOR_ENDED : -1) &&
                   collector.has_exited == fact->is_possible,
               "exit code %d, signal %d: %d", fact->exit_code, fact->signal, heard);
        collector_done(&collector);
    }
    error err = { 0 };
    struct agent_exited exited = { 0 };
    struct agent_frame frame = { .size = sizeof exited, .kind = AGENT_EXITED, .id = ID_PROGRAM };
    (void) hear_exit(0, 0, &collector);
    expect(collector_frame(&collector, &frame, (const unsigned char *) &exited, &err) < 0 &&
               err.code == ERR_PROTOCOL,
           "a second end");
    collector_done(&collector);
}

TEST(a_program_starts_once)
{
    static struct frame_reader reader;
    static struct collector collector;
    struct agent_started started = { 0 };
    const unsigned char *payload = (const unsigned char *) &started;
    struct agent_frame frame = { .size = sizeof started, .kind = AGENT_STARTED, .id = ID_PROGRAM };
    error err = { 0 };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_RUNNING;
    collector.running = ID_PROGRAM;
    frame.id = ID_PROGRAM + 1;
    expect(collector_frame(&collector, &frame, payload, &err) < 0, "another process");
    frame.id = ID_PROGRAM;
    expect(collector_frame(&collector, &frame, payload, &err) == COLLECTOR_STARTED, "%s", err.text);
    expect(collector_frame(&collector, &frame, payload, &err) < 0 && err.code == ERR_PROTOCOL,
           "a second start");
    collector_done(&collector);
}

TEST(output_is_kept_by_stream)
{
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[128];
    error err = { 0 };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_RUNNING;
    size_t size = put(bytes, AGENT_OUTPUT, ID_PROGRAM, 1, "out", 3);
    size += put(bytes + size, AGENT_OUTPUT, ID_PROGRAM, 2, "error", 5);
    expect(feed(&reader, &collector, bytes, size, size, &err) == 0, "%s", err.text);
    expect(collector.output[0].total == 3 && memcmp(collector.output[0].head, "out", 3) == 0,
           "stdout has %d bytes", (int) collector.output[0].total);
    expect(collector.output[1].total == 5 && memcmp(collector.output[1].head, "error", 5) == 0,
           "stderr has %d bytes", (int) collector.output[1].total);
    collector_done(&collector);
}

/* A child of the code shares its socket. */
TEST(a_result_after_the_end_of_the_code_is_left_out)
{
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[256];
    static const unsigned phases[] = { COLLECTOR_RUNNING, COLLECTOR_COLLECTING };
    struct {
        struct agent_result head;
        char text[2];
    } result = { { .what = AGENT_RESULT_VALUE, .last = 1 }, { '{', '}' } };
    for_each(phase, phases) {
        error err = { 0 };
        begin(&reader, &collector);
        collector.phase = *phase;
        collector.running = ID_INTERPRETER;
        collector.has_started = collector.has_exited = true;
        size_t size = put(bytes, AGENT_RESULT, ID_INTERPRETER, 0, &result,
                          sizeof result.head + sizeof result.text);
        expect(feed(&reader, &collector, bytes, size, size, &err) == 0, "phase %u: %s", *phase,
               err.text);
        expect(collector.results.size == 0, "phase %u: %zu bytes", *phase, collector.results.size);
        collector_done(&collector);
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
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[1024];
    for_each(fact, facts) {
        error err = { 0 };
        begin(&reader, &collector);
        collector.phase = COLLECTOR_COLLECTING;
        size_t size = put_file(bytes, fact->path, fact->size);
        expect(feed(&reader, &collector, bytes, size, size, &err) == fact->result, "%s: %s",
               fact->path, err.text);
        collector_done(&collector);
    }
}

TEST(denials_are_counted_by_target)
{
    static struct collector collector;
    static struct frame_reader reader;
    begin(&reader, &collector);
    struct agent_denial call = { .call = 41 /* socket */, .arguments = { 2, 1, 0 } };
    for (int i = 0; i < 3; i++)
        denials_add_call(&collector.denials, &call, "data");
    call.arguments[0] = 38; /* AF_ALG */
    denials_add_call(&collector.denials, &call, "data");
    call = (struct agent_denial){ .call = 101 /* ptrace */ };
    denials_add_call(&collector.denials, &call, "data");
    const struct denials *denials = &collector.denials;
    require(denials->count == 3, "%zu rows", denials->count);
    expect(denials->rows[0].count == 3 && strcmp(denials->rows[0].layer, "network") == 0,
           "network");
    expect(strcmp(denials->rows[1].target, "socket(AF_ALG, SOCK_STREAM)") == 0, "%s",
           denials->rows[1].target);
    expect(strcmp(denials->rows[2].target, "ptrace") == 0, "%s", denials->rows[2].target);
    char name[16];
    for (int i = 0; i < 2 * DENIALS_MAX; i++) {
        (void) snprintf(name, sizeof name, "n%d", i);
        denials_add(&collector.denials, DENIAL_COUNT, name, "", 1);
    }
    expect(denials->count == DENIALS_MAX && denials->unlisted == DENIALS_MAX + 3,
           "%zu rows, %d more", denials->count, (int) denials->unlisted);
    collector_done(&collector);
}

static bool is_told(const struct denials *denials, const char *layer, const char *says)
{
    for (size_t i = 0; i < denials->count; i++)
        if (strcmp(denials->rows[i].layer, layer) == 0 && strstr(denials->rows[i].message, says))
            return true;
    return false;
}

TEST(files_that_could_not_be_collected_are_reported)
{
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[256];
    error err = { 0 };
    struct {
        struct agent_done done;
        char text[16];
    } done = { { .os = 5 }, "list a folder" };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_COLLECTING;
    size_t size =
        put(bytes, AGENT_DONE, ID_COLLECT, 0, &done, sizeof done.done + strlen(done.text));
    expect(feed(&reader, &collector, bytes, size, size, &err) == 0, "%s", err.text);
    expect(is_told(&collector.denials, "artifact", "list a folder"), "%zu denials",
           collector.denials.count);
    collector_done(&collector);
}

TEST(an_oversized_display_result_is_reported_once)
{
    static struct frame_reader reader;
    static struct collector collector;
    static unsigned char bytes[AGENT_PAYLOAD_MAX + 64];
    static unsigned char payload[AGENT_PAYLOAD_MAX];
    struct agent_result head = { .what = AGENT_RESULT_DISPLAY };
    error err = { 0 };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_RUNNING;
    collector.running = ID_INTERPRETER;
    collector.has_started = true;
    memset(payload, 'x', sizeof payload);
    for (int piece = 0; piece < 300; piece++) { /* 18 MiB: twice what is shown */
        head.last = piece == 299;
        memcpy(payload, &head, sizeof head);
        size_t size = put(bytes, AGENT_RESULT, ID_INTERPRETER, 0, payload, sizeof payload);
        require(feed(&reader, &collector, bytes, size, size, &err) == 0, "%s", err.text);
    }
    expect(collector.results.size == 0, "%zu bytes", collector.results.size);
    expect(collector.denials.count == 1 && collector.denials.rows[0].count == 1 &&
               is_told(&collector.denials, "output", "8 MiB"),
           "%zu denials", collector.denials.count);
    collector_done(&collector);
}

/* Comma and tab separate results, so that readers of the stream can find each. */
TEST(results_stand_one_behind_the_other)
{
    static struct frame_reader reader;
    static struct collector collector;
    unsigned char bytes[256];
    struct {
        struct agent_result head;
        char text[20];
    } result = { { .what = AGENT_RESULT_DISPLAY, .last = 1 }, "{\"data\":{\"a/b\":[1]}}" };
    error err = { 0 };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_RUNNING;
    collector.running = ID_INTERPRETER;
    collector.has_started = true;
    size_t size = put(bytes, AGENT_RESULT, ID_INTERPRETER, 0, &result, sizeof result);
    for (int i = 0; i < 2; i++)
        require(feed(&reader, &collector, bytes, size, size, &err) == 0, "%s", err.text);
#define ONE "{\"main\":false,\"data\":{\"a/b\":[1]},\"chart\":null}"
    expect(strcmp(bytes_text(&collector.results), ONE ",\t" ONE) == 0, "%s",
           bytes_text(&collector.results));
    collector_done(&collector);
}

/* Bytes without a result count too: only so many are parsed. */
TEST(what_is_looked_at_is_bounded)
{
    static struct frame_reader reader;
    static struct collector collector;
    static unsigned char bytes[AGENT_PAYLOAD_MAX + 64];
    static unsigned char payload[AGENT_PAYLOAD_MAX];
    struct agent_result head = { .what = AGENT_RESULT_DISPLAY, .last = 1 };
    error err = { 0 };
    begin(&reader, &collector);
    collector.phase = COLLECTOR_RUNNING;
    collector.running = ID_INTERPRETER;
    collector.has_started = true;
    memset(payload, ' ', sizeof payload);
    memcpy(payload, &head, sizeof head);
    size_t size = put(bytes, AGENT_RESULT, ID_INTERPRETER, 0, payload, sizeof payload);
    for (int i = 0; i < 1000; i++)
        require(feed(&reader, &collector, bytes, size, size, &err) == 0, "%s", err.text);
    expect(collector.results_looked <= 16UL << 20 && collector.results_looked > 15UL << 20,
           "%d bytes", (int) collector.results_looked);
    expect(is_told(&collector.denials, "output", "8 MiB"), "%zu denials", collector.denials.count);
    collector_done(&collector);
}

TESTS(CASE(a_file_is_not_longer_than_it_said), CASE(results_stand_one_behind_the_other),
      CASE(what_is_looked_at_is_bounded), CASE(files_that_could_not_be_collected_are_reported),
      CASE(an_oversized_display_result_is_reported_once), CASE(a_file_comes_in),
      CASE(a_file_that_is_cut_is_given_up_with_its_descriptor),
      CASE(an_init_that_misbehaves_is_found_out),
      CASE(a_program_ends_once_with_an_exit_code_or_a_signal), CASE(a_program_starts_once),
      CASE(output_is_kept_by_stream), CASE(a_result_after_the_end_of_the_code_is_left_out),
      CASE(artifacts_keep_to_what_was_granted), CASE(denials_are_counted_by_target))
