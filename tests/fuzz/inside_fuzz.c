/* inside_fuzz.c - any bytes as what a sandbox's init says: nothing of it may harm gloveboxd, keep
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

enum { BYTES_MOST = 64 * 1024, OUTPUT_MOST = 1000, ARTIFACTS_MOST = 4096, FILES_MOST = 8 };

static struct blob_store *blobs;
static struct inside_reader reader;
static struct harvest harvest;

/* What the run would do next, so that the fuzzer comes through every phase. */
static int hear(void *context, const struct inside_frame *frame, const unsigned char *payload,
                error *err)
{
    (void) context;
    int event = harvest_frame(&harvest, frame, payload, err);
    if (event == HARVEST_LOADED) {
        harvest.phase = HARVEST_RUNNING;
        harvest.running = ID_PROGRAM;
    } else if (event == HARVEST_ENDED || event == HARVEST_STOPPED || event == HARVEST_NOT_STARTED) {
        harvest.phase = HARVEST_COLLECTING;
    }
    return event < 0 ? -1 : event == HARVEST_COLLECTED;
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
        assert(harvest.output[i].head_size + harvest.output[i].tail_size <= OUTPUT_MOST);
    assert(harvest.artifact_count <= FILES_MOST && harvest.file_bytes <= ARTIFACTS_MOST);
    for (size_t i = 0; i < harvest.artifact_count; i++)
        assert(request_check_path(harvest.artifacts[i].path, strlen(harvest.artifacts[i].path),
                                  &err) == 0);
    assert(harvest.denials.count <= DENIALS_MOST);
    check_json(&harvest.results, true);
    check_json(&harvest.failure, false);
    for (size_t i = 0; i < harvest.denials.count; i++)
        assert(strlen(harvest.denials.rows[i].target) < DENIAL_TARGET_SIZE);
}

static int feed(const uint8_t *data, size_t size, size_t piece)
{
    error err;
    while (size > 0) {
        size_t room;
        unsigned char *place = inside_reader_room(&reader, &room);
        assert(room > 0);
        size_t here = size < piece ? size : piece;
        here = here < room ? here : room;
        memcpy(place, data, here);
        data += here;
        size -= here;
        int result = inside_reader_took(&reader, here, hear, NULL, &err);
        if (result != 0)
            return result;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        struct inside_frame frame;
        struct inside_hello hello;
    } hello = { { .kind = INSIDE_HELLO, .size = sizeof(struct inside_hello) },
                { .version = INSIDE_VERSION } };
    static const struct blob_bounds bounds = { .bytes = 1 << 20, .count = 4096 };
    static struct limits limits;
    error err;
    if (size < 2)
        return 0;
    if (!blobs) {
        if (sodium_init() < 0 || blobs_open(NULL, &bounds, &blobs, &err) < 0)
            abort();
        limits_init(&limits);
        limits.output = OUTPUT_MOST;
        limits.artifacts = ARTIFACTS_MOST;
        limits.artifact_files = FILES_MOST;
    }
    memset(&reader, 0, sizeof reader);
    harvest_init(&harvest, &limits, "data", blobs);
    harvest.loads_open = 3;
    if (data[0] % 4 == 1) {
        harvest.phase = HARVEST_RUNNING;
        harvest.running = ID_PROGRAM;
    } else if (data[0] % 4 == 2) {
        harvest.phase = HARVEST_COLLECTING;
    } else if (data[0] % 4 == 3) {
        harvest.phase = HARVEST_RUNNING;
        harvest.running = ID_INTERPRETER;
        harvest.has_started = true;
    }
    if (feed((const uint8_t *) &hello, sizeof hello, sizeof hello) == 0)
        (void) feed(data + 2, size - 2, 1 + data[1] * 37U);
    check_harvest();
    harvest_done(&harvest);
    return 0;
}
