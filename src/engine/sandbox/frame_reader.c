/* frame_reader.c - the table of frames that init may send, with the bounds of their sizes. */
#include "engine/sandbox/frame_reader.h"

#include "base/table.h"

#include <string.h>

enum { TEXT_MAX = 1024 };

static const struct saying {
    size_t min, max;
    bool exists;
} sayings[] = {
/* clang-format off */
#define SAYS(kind, min, max) [AGENT_##kind] = { min, max, true }
    SAYS(HELLO,    sizeof(struct agent_hello),    sizeof(struct agent_hello)),
    SAYS(DONE,     sizeof(struct agent_done),     sizeof(struct agent_done) + TEXT_MAX),
    SAYS(STARTED,  sizeof(struct agent_started),  sizeof(struct agent_started)),
    SAYS(OUTPUT,   1,                              AGENT_PAYLOAD_MAX),
    SAYS(RESULT,   sizeof(struct agent_result),   AGENT_PAYLOAD_MAX),
    SAYS(EXECUTED, sizeof(struct agent_executed), sizeof(struct agent_executed)),
    SAYS(CREDIT,   sizeof(struct agent_amount),   sizeof(struct agent_amount)),
    SAYS(EXITED,   sizeof(struct agent_exited),   sizeof(struct agent_exited)),
    SAYS(STOPPED,  sizeof(struct agent_measured), sizeof(struct agent_measured)),
    SAYS(FILE,     sizeof(struct agent_file) + 1, sizeof(struct agent_file) + AGENT_PATH_MAX),
    SAYS(DATA,     1,                              AGENT_PAYLOAD_MAX),
    SAYS(END,      0,                              0),
    SAYS(SKIPPED,  sizeof(struct agent_skipped),  sizeof(struct agent_skipped) + AGENT_PATH_MAX),
    SAYS(ENTRY,    sizeof(struct agent_entry),    sizeof(struct agent_entry) + 2UL * AGENT_PATH_MAX),
    SAYS(OPENED,   0,                              0),
    SAYS(CHANGE,   sizeof(struct agent_change),   sizeof(struct agent_change) + AGENT_PATH_MAX),
    SAYS(MEASURED, sizeof(struct agent_measured), sizeof(struct agent_measured)),
    SAYS(DENIAL,   sizeof(struct agent_denial),   sizeof(struct agent_denial)),
    SAYS(USED,     sizeof(struct agent_used),     sizeof(struct agent_used)),
#undef SAYS
    /* clang-format on */
};

static int check_header(const struct agent_frame *frame, error *err)
{
    if (frame->kind >= COUNT_OF(sayings) || !sayings[frame->kind].exists)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u", frame->kind);
    const struct saying *saying = &sayings[frame->kind];
    if (frame->size < saying->min || frame->size > saying->max)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent %u bytes in a frame of kind %u",
                    frame->size, frame->kind);
    bool has_stream = frame->kind == AGENT_OUTPUT;
    if (frame->reserved != 0 ||
        (has_stream ? frame->stream < 1 || frame->stream > 2 : frame->stream != 0))
        return fail(err, ERR_PROTOCOL,
                    "glovebox-init sent a frame of kind %u with unexpected fields", frame->kind);
    return 0;
}

static int hear_hello(struct frame_reader *reader, const struct agent_frame *frame,
                      const unsigned char *payload, error *err)
{
    if (reader->said_hello || frame->kind != AGENT_HELLO)
        return fail(err, ERR_PROTOCOL, "glovebox-init did not send one hello, first");
    memcpy(&reader->hello, payload, sizeof reader->hello);
    if (reader->hello.version != AGENT_VERSION)
        return fail(err, ERR_PROTOCOL, "glovebox-init has protocol version %u, gloveboxd has %d",
                    reader->hello.version, AGENT_VERSION);
    reader->said_hello = true;
    return 0;
}

unsigned char *frame_reader_room(struct frame_reader *reader, size_t *ret_room)
{
    *ret_room = sizeof reader->data - reader->size;
    return reader->data + reader->size;
}

int frame_reader_took(struct frame_reader *reader, size_t size, agent_frame_came *came,
                      void *context, error *err)
{
    reader->size += size;
    size_t at = 0;
    int result = 0;
    while (result == 0 && reader->size - at >= sizeof(struct agent_frame)) {
        struct agent_frame frame;
        memcpy(&frame, reader->data + at, sizeof frame);
        result = check_header(&frame, err);
        if (result < 0 || reader->size - at - sizeof frame < frame.size)
            break;
        const unsigned char *payload = reader->data + at + sizeof frame;
        at += sizeof frame + frame.size;
        if (!reader->said_hello || frame.kind == AGENT_HELLO)
            result = hear_hello(reader, &frame, payload, err);
        else
            result = came(context, &frame, payload, err);
    }
    memmove(reader->data, reader->data + at, reader->size - at);
    reader->size -= at;
    return result;
}
