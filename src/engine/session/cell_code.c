/* cell_code.c - sends the code of a cell to its interpreter. */
#include "engine/session/contexts.h"

#include "base/clock.h"
#include "engine/run/import_scan.h"

#include <stdio.h>
#include <string.h>

enum { FRAME_CODE_MAX = AGENT_PAYLOAD_MAX - 1024 };

static void path_of_code(const struct context *context, char *path, size_t size)
{
    (void) snprintf(path, size, "/run/%s.%u", context->id, context->process.id);
}

/* A new interpreter gets its folder and environment; it may change them later. Cells have no stdin:
 * that of a forked interpreter is closed here, a driver has none. `path` is the file with the code,
 * NULL: the code is in the frame. */
static void send_execute(struct run *run, const char *path)
{
    struct context *context = run->cell->context;
    const struct run_request *given = run->cell->request.given;
    bool is_driver = context->kind->driver != NULL;
    bool is_fresh = context->is_fresh && !is_driver; /* a driver got them when it started */
    struct agent_execute execute = { .mode = AGENT_MODE_CELL,
                                     .arguments = path ? 1 : 0,
                                     .variables = is_fresh ? context->variables.count : 0,
                                     .code_size = path ? 0 : (uint32_t) given->code.text_size };
    const char *texts[] = { is_fresh ? context->folder : "", is_driver && path ? path : "", path };
    auto_bytes payload = { 0 };
    bytes_add(&payload, &execute, sizeof execute);
    for (unsigned i = 0; i < (path ? 3 : 2); i++)
        bytes_add(&payload, texts[i], strlen(texts[i]) + 1);
    if (is_fresh)
        bytes_add(&payload, context->variables.text.data, context->variables.text.size);
    if (!path)
        bytes_add(&payload, given->code.text, given->code.text_size);
    if (is_fresh)
        session_send(context->session, &context->process, AGENT_END, NULL, 0);
    session_order(context->session, &context->process, AGENT_EXECUTE, payload.data, payload.size);
    cell_code_is_sent(run);
}

static int on_file(void *from, const struct agent_frame *frame, const unsigned char *payload,
                   error *err)
{
    struct run *run = from;
    struct context *context = run->cell->context;
    struct agent_done done;
    if (frame->kind != AGENT_DONE)
        return fail(err, ERR_PROTOCOL, "glovebox-init answered a file with a frame of kind %u",
                    frame->kind);
    session_done(context->session, &context->file);
    memcpy(&done, payload, sizeof done);
    if (done.os == 0) {
        char path[CONTEXT_ID_SIZE + 32];
        path_of_code(context, path, sizeof path);
        send_execute(run, path);
        return 0;
    }
    error why;
    (void) fail(&why, ERR_SYSTEM, "the code of the cell could not be written: %.*s",
                (int) (frame->size - sizeof done), (const char *) payload + sizeof done);
    why.os = done.os;
    cell_end_unwritten(run, &why);
    return 0;
}

/* Code that does not fit into the frame, or is for a driver, is written to a file first. */
static int send_file(struct run *run, error *err)
{
    static unsigned char piece[AGENT_PAYLOAD_MAX / 3 * 3];
    struct context *context = run->cell->context;
    const struct payload *code = &run->cell->request.given->code;
    struct agent_put put = { .size = code->size,
                             .mtime_ns = wall_clock_ms() * 1000000,
                             .mode = 0644,
                             .flags = AGENT_PUT_SYSTEM };
    char path[CONTEXT_ID_SIZE + 32];
    path_of_code(context, path, sizeof path);
    context->file = (struct session_operation){ .context = run, .frame = on_file };
    if (session_begin(context->session, &context->file, err) < 0)
        return -1;
    struct iovec parts[2] = { { &put, sizeof put }, { path + 1, strlen(path + 1) } };
    session_send(context->session, &context->file, AGENT_PUT, parts, 2);
    for (uint64_t at = 0; at < code->size;) {
        size_t size = payload_read(code, at, piece, sizeof piece);
        struct iovec part = { piece, size };
        if (size == 0)
            break;
        session_send(context->session, &context->file, AGENT_DATA, &part, 1);
        at += size;
    }
    session_order(context->session, &context->file, AGENT_END, NULL, 0);
    return 0;
}

int cell_send_code(struct run *run, error *err)
{
    const struct context *context = run->cell->context;
    const struct payload *code = &run->cell->request.given->code;
    size_t size = code->text_size + context->variables.text.size + strlen(context->folder);
    if (!context->kind->driver)
        imports_count(run->plan.template, run->plan.policy, code->text, code->text_size);
    if (context->kind->driver || size >= FRAME_CODE_MAX)
        return send_file(run, err);
    send_execute(run, NULL);
    return 0;
}
