/* restore.c - see restore.h. */
#include "engine/snapshot/restore.h"
#include "engine/sandbox/agent_error.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "model/limits.h"
#include "json/reader.h"

#include <string.h>

enum { FILL_FILES = 9, SAID_MAX = 400, LOST_MAX = 4096 };

static const char restorer[] = "/usr/lib/glovebox/glovebox-restore";

/* Returns 1: the sandbox is not used any more. */
static int over(struct restore *fill, const error *why)
{
    if (fill->is_lost)
        return 1;
    if (fill->is_over && !why)
        return 0;
    fill->is_over = true;
    fill->is_lost = why != NULL;
    fill->told(fill->user, why); /* may free it */
    return why ? 1 : 0;
}

static void start_restorer(struct restore *fill)
{
    struct agent_start start = { .flags = AGENT_START_RESTORE, .arguments = 1 };
    static const char folder[] = "/workspace";
    auto_bytes payload = { 0 };
    bytes_add(&payload, &start, sizeof start);
    bytes_add(&payload, folder, sizeof folder);
    bytes_add(&payload, restorer, sizeof restorer);
    struct iovec part = { payload.data, payload.size };
    fill->ends = deadline_in(FILL_MS);
    sandbox_send_with(fill->sandbox,
                      &(struct agent_frame){ .kind = AGENT_START, .id = FILL_INTERPRETER }, &part,
                      1, take_fd(&fill->image));
    sandbox_flush(fill->sandbox);
}

static int files_are_there(struct restore *fill, const struct agent_frame *frame,
                           const unsigned char *payload)
{
    error why;
    if (frame->kind != AGENT_DONE)
        return 0; /* other frames report files that could not be made */
    if (error_of_agent(frame, payload, &why) == 0) {
        start_restorer(fill);
        return 0;
    }
    (void) under(&why, "the files could not be written");
    return over(fill, &why);
}

static int interpreter_is_gone(struct restore *fill, const unsigned char *payload)
{
    struct agent_exited exited;
    struct counters now;
    error why;
    memcpy(&exited, payload, sizeof exited);
    counters_read(sandbox_groups(fill->sandbox), &now);
    size_t size = utf8_valid_size((const unsigned char *) fill->said.data, fill->said.size);
    while (size > 0 && fill->said.data[size - 1] == '\n')
        size--;
    char limit[32];
    limit_print(LIMIT_memory, fill->memory, limit, sizeof limit);
    if (exited.signal == 9 && now.memory_kills > 0)
        (void) fail(&why, ERR_LIMIT,
                    "memory was used up at the limit of %s: a copy needs more than its "
                    "interpreter, which shares memory with others; give the session more "
                    "limits.memory_bytes when it begins",
                    limit);
    else if (size > 0)
        (void) fail(&why, ERR_CONFLICT, "the interpreter cannot be copied: %.*s", (int) size,
                    fill->said.data);
    else
        (void) fail(
            &why, ERR_CONFLICT, "the interpreter cannot be copied: the copy ended with %s %d",
            exited.signal ? "signal" : "status", exited.signal ? exited.signal : exited.exit_code);
    return over(fill, &why);
}

static uint32_t count_of(struct json_object *json, const char *name)
{
    enum { COUNT_MAX = 100000 };
    struct json_object *value = json_member(json, name);
    int64_t count = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;
    return count < 0 ? 0 : count > COUNT_MAX ? COUNT_MAX : (uint32_t) count;
}

static void hear_lost(struct restore *fill, const struct agent_frame *frame,
                      const unsigned char *payload)
{
    auto_json json = NULL;
    const size_t head = sizeof(struct agent_result);
    error err;
    fill->has_lost = true; /* only one is read: it may send them as fast as it can */
    if (json_read((const char *) payload + head, frame->size - head, &json, &err) == 0 &&
        json_object_is_type(json, json_type_object)) {
        fill->threads = count_of(json, "threads");
        fill->descriptors = count_of(json, "descriptors");
    }
}

static int hear_interpreter(struct restore *fill, const struct agent_frame *frame,
                            const unsigned char *payload)
{
    struct agent_started started;
    error why;
    size_t room = SAID_MAX - fill->said.size;
    switch (frame->kind) {
    case AGENT_STARTED:
        memcpy(&started, payload, sizeof started);
        fill->pid = started.pid;
        return 0;
    case AGENT_OUTPUT:
        if (!fill->is_secret)
            bytes_add(&fill->said, payload, frame->size < room ? frame->size : room);
        return 0;
    case AGENT_RESULT:
        if (!fill->has_lost && frame->size > sizeof(struct agent_result) && frame->size <= LOST_MAX)
            hear_lost(fill, frame, payload);
        return 0;
    case AGENT_EXECUTED:
        return over(fill, NULL);
    case AGENT_EXITED:
        return interpreter_is_gone(fill, payload);
    case AGENT_DONE:
        if (error_of_agent(frame, payload, &why) == 0)
            return 0;
        why.code = ERR_UNAVAILABLE;
        (void) under(&why, "the interpreter could not be started");
        return over(fill, &why);
    default:
        return 0;
    }
}

/* Until the restore has ended nothing else uses the sandbox: other frames are those of an
 * interpreter that came with it. */
static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct restore *fill = context;
    (void) err;
    if (frame->id == FILL_FILES)
        return files_are_there(fill, frame, payload);
    return frame->id == FILL_INTERPRETER ? hear_interpreter(fill, frame, payload) : 0;
}

static void on_broken(void *context, const error *cause)
{
    (void) over(context, cause);
}

void restore_begin(struct restore *fill, struct sandbox *sandbox, int image, int files)
{
    struct sandbox_user user = { .context = fill, .frame = on_frame, .broken = on_broken };
    fill->sandbox = sandbox;
    fill->image = image;
    fill->ends = deadline_in(FILL_MAX_MS);
    sandbox_use(sandbox, &user);
    sandbox_send(sandbox, &(struct agent_frame){ .kind = AGENT_KEEP }, NULL, 0);
    sandbox_send_with(sandbox, &(struct agent_frame){ .kind = AGENT_LOAD, .id = FILL_FILES }, NULL,
                      0, files);
    sandbox_flush(sandbox);
}

void restore_look(struct restore *fill)
{
    error why;
    if (!fill->sandbox || fill->is_over || !deadline_has_passed(fill->ends))
        return;
    (void) fail(&why, ERR_TIMEOUT, "the copy did not run within %d s",
                (fill->image < 0 ? FILL_MS : FILL_MAX_MS) / 1000);
    (void) over(fill, &why);
}

void restore_done(struct restore *fill)
{
    if (!fill->sandbox)
        return;
    fill->is_over = fill->is_lost = true;
    close_fd(&fill->image);
    fill->image = -1;
    bytes_done(&fill->said);
}
