/* service_processes_test.c - programs of a session, where the test plays init: the order of a
 * watch's events, signals, input, lists, and invalid requests. */
#include "engine/service/fake_session_test.h"

#include "engine/process/processes.h"
#include "engine/service/service_processes.h"

#include <errno.h>
#include <signal.h>

int __wrap_process_proof_begin(struct process *process, struct account *account,
                               const struct bytes *order, error *err);
int __wrap_process_proof_end(struct process *process, struct session *session, error *err);
int __wrap_account_check_log(const struct accounts *accounts, const struct account *account,
                             error *err);

static bool is_unproved; /* no receipt can be written */

int __wrap_process_proof_begin(struct process *process, struct account *account,
                               const struct bytes *order, error *err)
{
    (void) process;
    (void) account;
    (void) order;
    (void) err;
    return 0;
}

int __wrap_process_proof_end(struct process *process, struct session *session, error *err)
{
    (void) process;
    (void) session;
    return is_unproved ? fail(err, ERR_SYSTEM, "the log of receipts is full") : 0;
}

int __wrap_account_check_log(const struct accounts *accounts, const struct account *account,
                             error *err)
{
    (void) accounts;
    (void) account;
    (void) err;
    return 0;
}

static uv_loop_t loop;
static struct processes processes;
static struct runs runs;
static struct sessions sessions = { .runs = &runs };

static void begin_session(void)
{
    fake_session_begin();
    fake_session.sessions = &sessions;
    is_unproved = false;
    require(uv_loop_init(&loop) == 0, "a loop");
    processes = (struct processes){ .loop = &loop };
}

static void end_session(void)
{
    if (fake_session.operations)
        fake_session_ends();
    processes_close(&processes);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(uv_loop_close(&loop) == 0, "something is left in the loop");
}

static struct process *start(const char *json)
{
    static const struct bytes none;
    struct process_request request;
    struct process *process = NULL;
    struct json_object *object = json_tokener_parse(json);
    error err;
    require(process_request_read(object, &request, &err) == 0, "%s", err.text);
    request.variables = &none;
    require(process_start(&processes, &fake_session, &request, &process, &err) == 0, "%s",
            err.text);
    process_request_done(&request);
    (void) json_object_put(object);
    return process;
}

static void answer_started(unsigned pid)
{
    const struct agent_started started = { .pid = pid };
    error err;
    expect(answer(AGENT_STARTED, &started, sizeof started, &err) == 0, "%s", err.text);
}

static void answer_output(unsigned stream, const void *bytes, size_t size)
{
    const struct session_operation *operation = fake_session.operations;
    const struct agent_frame frame = { .kind = AGENT_OUTPUT,
                                       .size = (uint32_t) size,
                                       .stream = (uint16_t) stream,
                                       .id = operation->id };
    error err;
    expect(operation->frame(operation->context, &frame, bytes, &err) == 0, "%s", err.text);
}

static void answer_exited(int exit_code)
{
    const struct agent_exited exited = { .exit_code = exit_code };
    error err;
    expect(answer(AGENT_EXITED, &exited, sizeof exited, &err) == 0, "%s", err.text);
}

static struct process_watch *watch_from(struct process *process, uint64_t offset)
{
    error err;
    struct process_watch *watch = service_process_watch(process, offset, &fake_waker, &err);
    require(watch, "%s", err.text);
    return watch;
}

static void expect_event(struct process_watch *watch, enum process_event_kind kind,
                         const char *bytes)
{
    struct process_event event = { .kind = PROCESS_EVENTS };
    int got = process_watch_next(watch, &event);
    expect(got == 1 && event.kind == kind, "event %u instead of %u", event.kind, kind);
    expect(!bytes || (event.size == strlen(bytes) && memcmp(event.bytes, bytes, event.size) == 0),
           "'%.*s' instead of '%s'", (int) event.size, event.bytes, bytes);
}

TEST(a_watch_reports_all_events_in_order_and_resumes_elsewhere)
{
    struct process_event event;
    error err;
    begin_session();
    struct process *process = start("{\"command\": [\"x\"]}");
    struct process_watch *watch = watch_from(process, 0);
    expect(service_process_look(process, &err) == PROCESS_LATER, "it has not started");
    expect(process_watch_next(watch, &event) == FLOW_LATER, "there is nothing to tell");
    answer_started(7);
    answer_output(1, "one", 3);
    answer_output(2, "two", 3);
    expect(service_process_look(process, &err) == PROCESS_HAS_STARTED && wakes == 3, "%u", wakes);
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    expect(process_watch_next(watch, &event) == 1 && event.kind == PROCESS_EVENT_STDOUT, "stdout");
    uint64_t behind = event.offset;
    expect_event(watch, PROCESS_EVENT_STDERR, "two");
    expect(process_watch_next(watch, &event) == FLOW_LATER, "it goes on");
    answer_output(1, "three", 5);
    answer_exited(0);
    expect_event(watch, PROCESS_EVENT_STDOUT, "three");
    expect_event(watch, PROCESS_EVENT_END, NULL);
    expect(process_watch_next(watch, &event) == FLOW_END, "nothing follows the end");
    process_watch_close(watch);
    watch = watch_from(process, behind);
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    expect_event(watch, PROCESS_EVENT_STDERR, "two");
    process_watch_close(watch);
    end_session();
}

TEST(output_unread_in_time_is_reported_as_lost)
{
    static char block[65536];
    struct process_event event;
    uint64_t lost = 0;
    uint64_t read = 0;
    begin_session();
    struct process *process = start("{\"shell\": \"yes\"}");
    answer_started(7);
    uint64_t printed = 3 * (uint64_t) PROCESS_OUTPUT_KEPT;
    for (uint64_t at = 0; at < printed; at += sizeof block)
        answer_output(1, block, sizeof block);
    struct process_watch *watch = watch_from(process, 0);
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    while (process_watch_next(watch, &event) == 1)
        if (event.kind == PROCESS_EVENT_LOST) {
            expect(lost == 0 && read == 0, "the loss is reported first, and once");
            lost = event.lost;
        } else {
            read += event.size;
        }
    expect(lost > 0 && read <= PROCESS_OUTPUT_KEPT && read > PROCESS_OUTPUT_KEPT / 2,
           "%llu lost, %llu read", (unsigned long long) lost, (unsigned long long) read);
    expect(lost + read >= printed, "%llu bytes are nowhere",
           (unsigned long long) (printed - lost - read));
    process_watch_close(watch);
    end_session();
}

TEST(a_pause_is_reported)
{
    struct process_event event;
    begin_session();
    struct process *process = start("{\"command\": [\"x\"]}");
    struct process_watch *watch = watch_from(process, 0);
    answer_started(7);
    fake_session.state = SESSION_PAUSED;
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    expect_event(watch, PROCESS_EVENT_PAUSED, NULL);
    expect(process_watch_next(watch, &event) == FLOW_LATER, "it stands still");
    fake_session.state = SESSION_RUNNING;
    expect_event(watch, PROCESS_EVENT_RESUMED, NULL);
    process_watch_close(watch);
    end_session();
}

TEST(without_a_receipt_nothing_is_handed_out)
{
    struct bytes json = { 0 };
    begin_session();
    struct process *process = start("{\"command\": [\"x\"]}");
    struct process_watch *watch = watch_from(process, 0);
    is_unproved = true;
    answer_started(7);
    answer_output(1, "one", 3);
    answer_exited(0);
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    expect_event(watch, PROCESS_EVENT_LOST, NULL);
    expect_event(watch, PROCESS_EVENT_END, NULL);
    service_process_write(process, &json);
    expect(strstr(bytes_text(&json), "\"state\":\"ended\"") &&
               strstr(bytes_text(&json), "log of receipts is full") &&
               strstr(bytes_text(&json), "\"signal\":9"),
           "%s", bytes_text(&json));
    bytes_done(&json);
    process_watch_close(watch);
    end_session();
}

TEST(a_program_that_is_not_there)
{
    const struct agent_done done = { .os = ENOENT, .is_of_the_program = 1 };
    struct process_event event;
    error err;
    begin_session();
    struct process *process = start("{\"command\": [\"nothing\"]}");
    expect(answer(AGENT_DONE, &done, sizeof done, &err) == 0, "%s", err.text);
    expect(service_process_look(process, &err) < 0 && err.code == ERR_NO_PROGRAM, "%s", err.text);
    struct process_watch *watch = watch_from(process, 0);
    expect_event(watch, PROCESS_EVENT_STARTED, NULL);
    expect_event(watch, PROCESS_EVENT_END, NULL);
    expect(process_watch_next(watch, &event) == FLOW_END, "nothing follows");
    process_watch_close(watch);
    end_session();
}

TEST(signals_by_name_and_number)
{
    static const struct {
        const char *name;
        unsigned number; /* 0: refused */
    } rows[] = {
        { "SIGTERM", SIGTERM },
        { "TERM", SIGTERM },
        { "9", SIGKILL },
        { "64", 64 },
        { "WINCH", SIGWINCH },
        { "65", 0 },
        { "0", 0 },
        { "-9", 0 },
        { "9x", 0 },
        { "", 0 },
        { "term", 0 },
        { "SIGSIGTERM", 0 },
        { "SEGV", 0 },
    };
    begin_session();
    struct process *process = start("{\"command\": [\"x\"]}");
    answer_started(7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct agent_signal wanted;
        error err;
        unsigned before = sent_count;
        int done = service_process_signal(process, rows[i].name, true, &err);
        expect((done == 0) == (rows[i].number != 0), "'%s'", rows[i].name);
        expect(sent_count == before + (done == 0), "'%s': %u frames", rows[i].name, sent_count);
        memcpy(&wanted, sent[before].payload, sizeof wanted);
        expect(done < 0 || (sent[before].kind == AGENT_SIGNAL && wanted.whole_group &&
                            wanted.number == rows[i].number),
               "'%s' is %u", rows[i].name, wanted.number);
    }
    end_session();
}

TEST(input_goes_in_until_it_is_closed)
{
    struct bytes text = { 0 };
    struct bytes none = { 0 };
    error err;
    bytes_add_text(&text, "abc");
    begin_session();
    struct process *process = start("{\"command\": [\"x\"], \"stdin\": true}");
    answer_started(7);
    unsigned before = sent_count;
    expect(service_process_feed(process, &text, true, &err) == 0, "%s", err.text);
    expect(sent_count == before + 2 && sent[before].kind == AGENT_DATA && sent[before].size == 3 &&
               sent[before + 1].kind == AGENT_END,
           "%u frames", sent_count - before);
    expect(service_process_feed(process, &text, false, &err) < 0 && err.code == ERR_CONFLICT, "%s",
           err.text);
    answer_exited(0);
    process = start("{\"command\": [\"x\"], \"terminal\": {}}");
    answer_started(8);
    expect(service_process_feed(process, &none, true, &err) < 0 && err.code == ERR_BAD_REQUEST,
           "a terminal is closed");
    expect(service_process_feed(process, &text, false, &err) == 0, "%s", err.text);
    answer_exited(0);
    process = start("{\"command\": [\"x\"]}");
    answer_started(9);
    expect(service_process_feed(process, &text, false, &err) < 0 && err.code == ERR_CONFLICT,
           "it has no input");
    expect(service_process_resize(process, 1, 1, &err) < 0 && err.code == ERR_CONFLICT,
           "it has no terminal");
    bytes_done(&text);
    end_session();
}

TEST(programs_are_found_and_listed)
{
    const struct service service = { .processes = &processes };
    struct process *found = NULL;
    error err;
    begin_session();
    struct process *first = start("{\"command\": [\"x\"], \"tag\": \"prc_2\"}");
    answer_started(7);
    answer_exited(3);
    struct process *second = start("{\"command\": [\"x\"], \"tag\": \"t\"}");
    answer_started(8);
    expect(service_process_find(&service, &fake_session, "7", &found, &err) == 0 && found == first,
           "by pid");
    expect(service_process_find(&service, &fake_session, "t", &found, &err) == 0 && found == second,
           "by tag");
    expect(service_process_find(&service, &fake_session, "prc_2", &found, &err) == 0 &&
               found == second,
           "an id comes before the tag of another");
    expect(service_process_find(&service, &fake_session, "u", &found, &err) < 0 &&
               err.code == ERR_NOT_FOUND,
           "%s", err.text);
    expect(service_process_next(&service, &fake_session, NULL, false) == second &&
               !service_process_next(&service, &fake_session, second, false),
           "those that run");
    expect(service_process_next(&service, &fake_session, NULL, true) == second &&
               service_process_next(&service, &fake_session, second, true) == first &&
               !service_process_next(&service, &fake_session, first, true),
           "all, the newest first");
    const struct session other = { .id = "ses_other" };
    expect(!service_process_next(&service, &other, NULL, true), "those of another session");
    end_session();
}

TEST(requests_are_held_to_their_limits)
{
    static const struct {
        const char *json;
        bool is_taken;
    } rows[] = {
        { "{}", true },
        { "{\"timeout_ms\": 86400000}", true },
        { "{\"timeout_ms\": 86400001}", false },
        { "{\"terminal\": {\"rows\": 1000}}", true },
        { "{\"terminal\": {\"columns\": 1001}}", false },
        { "{\"terminal\": {\"width\": 1}}", false },
        { "{\"stdin\": 1}", false },
        { "{\"tag\": 1}", false },
        { "{\"comand\": []}", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct process_request request;
        struct json_object *json = json_tokener_parse(rows[i].json);
        error err;
        int read = process_request_read(json, &request, &err);
        expect((read == 0) == rows[i].is_taken, "%s", rows[i].json);
        expect(read == 0 || err.code == ERR_BAD_REQUEST, "%s: %s", rows[i].json, err.text);
        process_request_done(&request);
        (void) json_object_put(json);
    }
    struct process_request request;
    error err;
    expect(process_request_read(NULL, &request, &err) == 0 && request.rows == 24 &&
               request.columns == 80 && !request.has_terminal,
           "what nothing says");
    process_request_done(&request);
}

TESTS(CASE(a_watch_reports_all_events_in_order_and_resumes_elsewhere),
      CASE(output_unread_in_time_is_reported_as_lost), CASE(a_pause_is_reported),
      CASE(without_a_receipt_nothing_is_handed_out), CASE(a_program_that_is_not_there),
      CASE(signals_by_name_and_number), CASE(input_goes_in_until_it_is_closed),
      CASE(programs_are_found_and_listed), CASE(requests_are_held_to_their_limits))
