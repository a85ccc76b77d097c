/* agent_fuzz.c - any bytes as what a sandbox's init says: nothing of it may harm gloveboxd, keep
 * more than the limits grant, or name a file that lies outside of the workspace.
 *
 * The first byte says in which phase the run is, the second in how large pieces the bytes come. */
#include "engine/run/collector.h"
#include "engine/run/run_request.h"
#include "engine/sandbox/frame_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024, OUTPUT_MAX = 1000, ARTIFACTS_MAX = 4096, FILES_MAX = 8 };

static struct blob_store *blobs;
static struct frame_reader reader;
static struct collector collector;

/* What the run would do next, so that the fuzzer comes through every phase. */
static int hear(void *context, const struct agent_frame *frame, const unsigned char *payload,
                error *err)
{
    (void) context;
    int event = collector_frame(&collector, frame, payload, err);
    if (event == COLLECTOR_LOADED) {
        collector.phase = COLLECTOR_RUNNING;
        collector.running = ID_PROGRAM;
    } else if (event == COLLECTOR_ENDED || event == COLLECTOR_STOPPED ||
               event == COLLECTOR_NOT_STARTED) {
        collector.phase = COLLECTOR_COLLECTING;
    }
    return event < 0 ? -1 : event == COLLECTOR_COLLECTED;
}

/* What goes into the result as it is must be JSON, and without line ends: events are lines. */
static void check_json(const struct bytes *json, bool is_list)
{
    struct bytes whole = { 0 };
    if (json->size == 0)
        return;
    assert(!memchr(json->data, '\n', json->size));
    if (is_list)
        bytes_add_text(&whole, "[");
    bytes_add(&whole, json->data, json->size);
    if (is_list)
        bytes_add_text(&whole, "]");
    struct json_object *value = json_tokener_parse(bytes_text(&whole));
    assert(value);
    (void) json_object_put(value);
    bytes_done(&whole);
}

static void check_harvest(void)
{
    error err;
    for (int i = 0; i < 2; i++)
        assert(collector.output[i].head_size + collector.output[i].tail_size <= OUTPUT_MAX);
    assert(collector.artifact_count <= FILES_MAX && collector.file_bytes <= ARTIFACTS_MAX);
    for (size_t i = 0; i < collector.artifact_count; i++)
        assert(request_check_path(collector.artifacts[i].path, strlen(collector.artifacts[i].path),
                                  &err) == 0);
    assert(collector.denials.count <= DENIALS_MAX);
    check_json(&collector.results, true);
    check_json(&collector.failure, false);
    for (size_t i = 0; i < collector.denials.count; i++)
        assert(strlen(collector.denials.rows[i].target) < DENIAL_TARGET_SIZE);
}

static int feed(const uint8_t *data, size_t size, size_t piece)
{
    error err;
    while (size > 0) {
        size_t room;
        unsigned char *place = frame_reader_room(&reader, &room);
        assert(room > 0);
        size_t here = size < piece ? size : piece;
        here = here < room ? here : room;
        memcpy(place, data, here);
        data += here;
        size -= here;
        int result = frame_reader_took(&reader, here, hear, NULL, &err);
        if (result != 0)
            return result;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        struct agent_frame frame;
        struct agent_hello hello;
    } hello = { { .kind = AGENT_HELLO, .size = sizeof(struct agent_hello) },
                { .version = AGENT_VERSION } };
    static const struct blob_bounds bounds = { .bytes = 1 << 20, .count = 4096 };
    static struct limits limits;
    error err;
    if (size < 2)
        return 0;
    if (!blobs) {
        if (sodium_init() < 0 || blobs_open(NULL, &bounds, &blobs, &err) < 0)
            abort();
        limits_init(&limits);
        limits.output = OUTPUT_MAX;
        limits.artifacts = ARTIFACTS_MAX;
        limits.artifact_files = FILES_MAX;
    }
    memset(&reader, 0, sizeof reader);
    collector_init(&collector, &limits, "data", blobs);
    collector.loads_open = 3;
    if (data[0] % 4 == 1) {
        collector.phase = COLLECTOR_RUNNING;
        collector.running = ID_PROGRAM;
    } else if (data[0] % 4 == 2) {
        collector.phase = COLLECTOR_COLLECTING;
    } else if (data[0] % 4 == 3) {
        collector.phase = COLLECTOR_RUNNING;
        collector.running = ID_INTERPRETER;
        collector.has_started = true;
    }
    if (feed((const uint8_t *) &hello, sizeof hello, sizeof hello) == 0)
        (void) feed(data + 2, size - 2, 1 + data[1] * 37U);
    collector_write(&collector);
    (void) collector_keep(&collector, &err);
    check_harvest();
    collector_done(&collector);
    return 0;
}
