/* inputs.c - sends a run's inputs into its sandbox: files, stdin, code. They are read straight from
 * the request, and only a bounded amount is queued at a time. */
#include "base/clock.h"
#include "engine/network/trust_bundle.h"
#include "engine/run/run.h"

#include <string.h>

/* A multiple of 3, so that base64 is split between whole groups. */
enum { PIECE = AGENT_PAYLOAD_MAX / 3 * 3 };

struct input {
    const struct payload *content;
    const char *path;
    uint32_t flags, mode;
};

/* The inputs in order: certificates, files, stdin, code. Returns false after the last. */
static bool input_at(const struct run *run, size_t index, const struct payload *certificates,
                     struct input *ret_input)
{
    const struct run_request *request = run->request;
    if (run->certificates.size > 0 && index-- == 0) {
        *ret_input = (struct input){ certificates, CERTIFICATES_PATH, AGENT_PUT_SYSTEM, 0444 };
        return true;
    }
    if (index < request->file_count) {
        const struct request_file *file = &request->files[index];
        *ret_input =
            (struct input){ &file->content, file->path, file->read_only ? AGENT_PUT_READ_ONLY : 0,
                            file->read_only ? 0444 : 0644 };
        return true;
    }
    index -= request->file_count;
    if (request->has_stdin && run->plan.set < 0 && index-- == 0) {
        *ret_input = (struct input){ &request->stdin_content, "run/stdin", AGENT_PUT_SYSTEM, 0444 };
        return true;
    }
    if (request->has_code && !run->plan.code_is_in_frame && index == 0) {
        *ret_input = (struct input){ &request->code, run->plan.code_path,
                                     run->plan.code_is_system ? AGENT_PUT_SYSTEM : 0, 0644 };
        return true;
    }
    return false;
}

static void send_put(struct run *run, uint32_t id, const struct input *input)
{
    struct agent_put put = { .size = input->content->size,
                             .mtime_ns = wall_clock_ms() * 1000000,
                             .mode = input->mode,
                             .flags = input->flags };
    struct iovec parts[2] = { { &put, sizeof put },
                              { (void *) (uintptr_t) input->path, strlen(input->path) } };
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_PUT, .id = id }, parts, 2);
    run->collector.loads_open++;
}

/* Returns true when the whole file was sent. */
static bool send_piece(struct run *run, uint32_t id, const struct input *input)
{
    static unsigned char piece[PIECE];
    size_t size = payload_read(input->content, run->input_offset, piece, sizeof piece);
    if (size > 0) {
        struct iovec part = { piece, size };
        sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_DATA, .id = id }, &part, 1);
        run->input_offset += size;
    }
    if (run->input_offset < input->content->size)
        return false;
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_END, .id = id }, NULL, 0);
    return true;
}

void run_load(struct run *run)
{
    struct input input;
    struct payload certificates;
    if (run_plan_intercepts(&run->plan) && run->certificates.size == 0)
        return; /* the certificates have not come from glovebox-egress */
    payload_from_text(&certificates, bytes_text(&run->certificates), run->certificates.size);
    while (sandbox_has_room(run->sandbox) && !run->inputs_are_sent) {
        if (!input_at(run, run->next_input, &certificates, &input)) {
            run->inputs_are_sent = true;
            if (run->next_input == 0)
                break; /* all files in the workspace at the end are the program's */
            run->collector.loads_open++;
            sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_SEAL, .id = ID_SEAL },
                         NULL, 0);
            break;
        }
        uint32_t id = ID_FIRST_FILE + (uint32_t) run->next_input;
        if (!run->input_is_open) {
            run->input_is_open = true;
            run->input_offset = 0;
            send_put(run, id, &input);
        }
        if (send_piece(run, id, &input)) {
            run->input_is_open = false;
            run->next_input++;
        }
    }
}

/* Sends all of stdin at once: it is no more than init accepts without credit. */
void run_send_stdin(struct run *run)
{
    const struct run_request *request = run->request;
    static unsigned char piece[AGENT_PAYLOAD_MAX];
    struct agent_frame frame = { .kind = AGENT_DATA, .id = ID_INTERPRETER };
    size_t size = request && request->has_stdin
                      ? payload_read(&request->stdin_content, 0, piece, sizeof piece / 3 * 3)
                      : 0;
    struct iovec part = { piece, size };
    if (size > 0)
        sandbox_send(run->sandbox, &frame, &part, 1);
    frame.kind = AGENT_END;
    sandbox_send(run->sandbox, &frame, NULL, 0);
}

void run_start_program(struct run *run, uint32_t id)
{
    struct bytes *payload = id == ID_COMPILER ? &run->plan.compile : &run->plan.program;
    struct iovec part = { payload->data, payload->size };
    run->collector.running = id;
    run->collector.has_started = run->collector.has_exited = false;
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_START, .id = id }, &part, 1);
    sandbox_flush(run->sandbox);
}
