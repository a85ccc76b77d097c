/* frame_reader.c - the table of what init can say, with the least and most bytes of each. */
#include "engine/sandbox/frame_reader.h"

#include "base/table.h"

#include <string.h>

enum { TEXT_MOST = 1024 };

static const struct saying {
    size_t least, most;
    bool exists;
} sayings[] = {
/* clang-format off */
#define SAYS(kind, least, most) [INSIDE_##kind] = { least, most, true }
    SAYS(HELLO,    sizeof(struct inside_hello),    sizeof(struct inside_hello)),
    SAYS(DONE,     sizeof(struct inside_done),     sizeof(struct inside_done) + TEXT_MOST),
    SAYS(STARTED,  sizeof(struct inside_started),  sizeof(struct inside_started)),
    SAYS(OUTPUT,   1,                              INSIDE_PAYLOAD_MOST),
    SAYS(RESULT,   sizeof(struct inside_result),   INSIDE_PAYLOAD_MOST),
    SAYS(EXECUTED, sizeof(struct inside_executed), sizeof(struct inside_executed)),
    SAYS(CREDIT,   sizeof(struct inside_amount),   sizeof(struct inside_amount)),
    SAYS(EXITED,   sizeof(struct inside_exited),   sizeof(struct inside_exited)),
    SAYS(STOPPED,  sizeof(struct inside_measured), sizeof(struct inside_measured)),
    SAYS(FILE,     sizeof(struct inside_file) + 1, sizeof(struct inside_file) + INSIDE_PATH_MOST),
    SAYS(DATA,     1,                              INSIDE_PAYLOAD_MOST),
    SAYS(END,      0,                              0),
    SAYS(SKIPPED,  sizeof(struct inside_skipped),  sizeof(struct inside_skipped) + INSIDE_PATH_MOST),
    SAYS(ENTRY,    sizeof(struct inside_entry),    sizeof(struct inside_entry) + 2UL * INSIDE_PATH_MOST),
    SAYS(OPENED,   0,                              0),
    SAYS(CHANGE,   sizeof(struct inside_change),   sizeof(struct inside_change) + INSIDE_PATH_MOST),
    SAYS(MEASURED, sizeof(struct inside_measured), sizeof(struct inside_measured)),
    SAYS(DENIAL,   sizeof(struct inside_denial),   sizeof(struct inside_denial)),
#undef SAYS
    /* clang-format on */
};

static int check_header(const struct inside_frame *frame, error *err)
{
    if (frame->kind >= COUNT_OF(sayings) || !sayings[frame->kind].exists)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u", frame->kind);
    const struct saying *saying = &sayings[frame->kind];
    if (frame->size < saying->least || frame->size > saying->most)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent %u bytes in a frame of kind %u",
                    frame->size, frame->kind);
    bool has_stream = frame->kind == INSIDE_OUTPUT;
    if (frame->reserved != 0 ||
        (has_stream ? frame->stream < 1 || frame->stream > 2 : frame->stream != 0))
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u with stray fields",
                    frame->kind);
    return 0;
}

static int hear_hello(struct inside_reader *reader, const struct inside_frame *frame,
                      const unsigned char *payload, error *err)
{
    if (reader->said_hello || frame->kind != INSIDE_HELLO)
        return fail(err, ERR_PROTOCOL, "glovebox-init did not say hello first and once");
    memcpy(&reader->hello, payload, sizeof reader->hello);
    if (reader->hello.version != INSIDE_VERSION)
        return fail(err, ERR_PROTOCOL, "glovebox-init speaks version %u, this is %d",
                    reader->hello.version, INSIDE_VERSION);
    reader->said_hello = true;
    return 0;
}

unsigned char *inside_reader_room(struct inside_reader *reader, size_t *ret_room)
{
    *ret_room = sizeof reader->data - reader->size;
    return reader->data + reader->size;
}

int inside_reader_took(struct inside_reader *reader, size_t size, inside_frame_came *came,
                       void *context, error *err)
{
    reader->size += size;
    size_t at = 0;
    int result = 0;
    while (result == 0 && reader->size - at >= sizeof(struct inside_frame)) {
        struct inside_frame frame;
        memcpy(&frame, reader->data + at, sizeof frame);
        result = check_header(&frame, err);
        if (result < 0 || reader->size - at - sizeof frame < frame.size)
            break;
        const unsigned char *payload = reader->data + at + sizeof frame;
        at += sizeof frame + frame.size;
        if (!reader->said_hello || frame.kind == INSIDE_HELLO)
            result = hear_hello(reader, &frame, payload, err);
        else
            result = came(context, &frame, payload, err);
    }
    memmove(reader->data, reader->data + at, reader->size - at);
    reader->size -= at;
    return result;
}
