/* service_files_test.c - file tasks; the test plays init. */
#include "engine/service/fake_session_test.h"

#include "engine/service/service_files_internal.h"

#include <errno.h>
#include <sys/stat.h>

static const char text_path[] = "a/b.csv";

static struct bytes bytes_of(const char *text)
{
    struct bytes bytes = { 0 };
    bytes_add_text(&bytes, text);
    return bytes;
}

static struct file_task *begin(struct file_order order, const char *at, error *err)
{
    struct bytes path = bytes_of(at);
    struct bytes to = bytes_of("c");
    struct file_task *task = NULL;
    order.session = fake_session.id;
    order.waker = fake_waker;
    order.path = &path;
    order.to = order.action == FILE_MOVE ? &to : NULL;
    int begun = service_file_begin(&fake_service, &fake_caller, &order, &task, err);
    expect(begun == 0 || task == NULL, "a task that failed");
    bytes_done(&path);
    bytes_done(&to);
    return task;
}

static struct file_task *must_begin(struct file_order order)
{
    error err;
    struct file_task *task = begin(order, text_path, &err);
    require(task, "%s", err.text);
    return task;
}

TEST(each_action_asks_init_and_is_counted)
{
    static const struct {
        struct file_order order;
        enum agent_kind kind;
        size_t head; /* bytes before the path */
        int count;   /* enum session_deed; -1: it is not counted */
    } rows[] = {
        { { .action = FILE_STAT }, AGENT_STAT, 0, -1 },
        { { .action = FILE_LIST }, AGENT_LIST, sizeof(struct agent_list), -1 },
        { { .action = FILE_MAKE_FOLDER }, AGENT_MAKE, 0, TRANSFER_CHANGES },
        { { .action = FILE_MOVE }, AGENT_MOVE, 0, TRANSFER_CHANGES },
        { { .action = FILE_REMOVE }, AGENT_REMOVE, 0, TRANSFER_CHANGES },
        { { .action = FILE_READ }, AGENT_READ, sizeof(struct agent_read), TRANSFER_FILES_OUT },
        { { .action = FILE_PACK }, AGENT_PACK, sizeof(struct agent_flow), TRANSFER_FILES_OUT },
        { { .action = FILE_WATCH }, AGENT_WATCH, sizeof(struct agent_watch), -1 },
        { { .action = FILE_WRITE }, AGENT_WRITE, sizeof(struct agent_write), TRANSFER_FILES_IN },
        { { .action = FILE_UNPACK }, AGENT_UNPACK, 0, TRANSFER_FILES_IN },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_session_begin();
        struct file_task *task = must_begin(rows[i].order);
        size_t size = rows[i].head + strlen(text_path) + (rows[i].kind == AGENT_MOVE ? 2 : 0);
        expect(sent_count == 1 && sent[0].kind == rows[i].kind && sent[0].size == size,
               "row %zu: kind %u of %zu bytes", i, sent[0].kind, sent[0].size);
        expect(memcmp(sent[0].payload + rows[i].head, "a/b.csv\0c", sent[0].size - rows[i].head) ==
                   0,
               "row %zu: another path", i);
        for (int deed = 0; deed < TRANSFERS; deed++)
            expect(fake_session.transfer_counts.done[deed] == (deed == rows[i].count),
                   "row %zu: deed %d is counted %llu times", i, deed,
                   (unsigned long long) fake_session.transfer_counts.done[deed]);
        expect(fake_session.holds == 1, "a session in use may not end as idle");
        file_task_free(task);
        expect(sent_count == 2 && sent[1].kind == AGENT_CANCEL, "row %zu: it is not given up", i);
        expect(fake_session.holds == 0 && !fake_session.operations, "row %zu: it goes on", i);
    }
}

TEST(what_is_ordered_reaches_init)
{
    struct agent_list list;
    struct agent_read read;
    struct agent_write write;
    struct agent_watch watch;
    fake_session_begin();
    file_task_free(must_begin((struct file_order){ .action = FILE_LIST, .depth = 3, .max = 9 }));
    memcpy(&list, sent[0].payload, sizeof list);
    expect(list.depth == 3 && list.max == 9, "%u %u", list.depth, list.max);
    file_task_free(must_begin((struct file_order){ .action = FILE_READ, .from = 5, .size = 7 }));
    memcpy(&read, sent[2].payload, sizeof read);
    expect(read.offset == 5 && read.length == 7 && read.credit == FILE_WINDOW, "a part");
    file_task_free(must_begin((struct file_order){ .action = FILE_READ, .facts_only = true }));
    memcpy(&read, sent[4].payload, sizeof read);
    expect(read.credit == 0, "bytes come with the facts: %llu", (unsigned long long) read.credit);
    file_task_free(
        must_begin((struct file_order){ .action = FILE_WRITE, .mode = 0640, .is_new = true }));
    memcpy(&write, sent[6].payload, sizeof write);
    expect(write.mode == 0640 && write.flags == AGENT_WRITE_NEW, "%o %u", write.mode, write.flags);
    file_task_free(must_begin((struct file_order){ .action = FILE_WATCH, .is_recursive = true }));
    memcpy(&watch, sent[8].payload, sizeof watch);
    expect(watch.flags == AGENT_WATCH_DEEP && watch.credit > 0, "%u", watch.flags);
}

TEST(a_path_is_names_with_one_slash_between)
{
    static const struct {
        const char *path, *wanted; /* NULL: refused */
    } rows[] = {
        { "", "" },       { "a", "a" },     { "/a/b", "/a/b" }, { "a/", "a" },   { "/", "/" },
        { "..a", "..a" }, { "a//b", NULL }, { "//a", NULL },    { "a//", NULL }, { ".", "" },
        { "a/..", NULL }, { "../a", NULL }, { "a/./b", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        error err;
        fake_session_begin();
        struct file_task *task =
            begin((struct file_order){ .action = FILE_STAT }, rows[i].path, &err);
        expect((task != NULL) == (rows[i].wanted != NULL), "'%s'", rows[i].path);
        if (!task) {
            expect(err.code == ERR_BAD_REQUEST && sent_count == 0, "'%s': %s", rows[i].path,
                   err.text);
            continue;
        }
        const struct bytes *path = file_task_path(task);
        expect(path->size == strlen(rows[i].wanted) &&
                   (path->size == 0 || memcmp(path->data, rows[i].wanted, path->size) == 0),
               "'%s' is '%.*s'", rows[i].path, (int) path->size, path->data ? path->data : "");
        file_task_free(task);
    }
    char longest[FILE_PATH_MAX + 2];
    struct bytes path = { longest, FILE_PATH_MAX, sizeof longest, false };
    struct bytes nul = { longest, 3, sizeof longest, false };
    error err;
    memset(longest, 'x', sizeof longest);
    expect(file_path_check(&path, &err) == 0, "%s", err.text);
    path.size++;
    expect(file_path_check(&path, &err) < 0 && err.code == ERR_BAD_REQUEST, "a byte too many");
    longest[1] = '\0';
    expect(file_path_check(&nul, &err) < 0, "a NUL byte ends a path for init");
}

TEST(withheld_output_is_not_revealed_by_files)
{
    for (enum file_action action = FILE_STAT; action <= FILE_UNPACK; action++) {
        bool goes_in = action == FILE_WRITE || action == FILE_UNPACK || action == FILE_MAKE_FOLDER;
        error err;
        fake_session_begin();
        fake_session_withholds();
        struct file_task *task = begin((struct file_order){ .action = action }, text_path, &err);
        expect((task == NULL) == !goes_in, "action %u", action);
        expect(task || (err.code == ERR_POLICY && sent_count == 0), "%s", err.text);
        file_task_free(task);
    }
}

static int answer_entry(const char *path, size_t claimed, const char *target, error *err)
{
    const struct agent_entry facts = { .mode = S_IFREG | 0644,
                                       .size = 3,
                                       .path_size = (uint32_t) claimed };
    auto_bytes payload = { 0 };
    bytes_add(&payload, &facts, sizeof facts);
    bytes_add_text(&payload, path);
    bytes_add_text(&payload, target);
    return answer(AGENT_ENTRY, payload.data, payload.size, err);
}

static int answer_change(unsigned what, const char *path, error *err)
{
    const struct agent_change change = { .what = what, .mode = S_IFREG | 0600, .size = 7 };
    auto_bytes payload = { 0 };
    bytes_add(&payload, &change, sizeof change);
    bytes_add_text(&payload, path);
    return answer(AGENT_CHANGE, payload.data, payload.size, err);
}

TEST(a_listing_is_whole_and_sorted)
{
    error err;
    struct file_entry entry;
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_LIST, .max = 2 });
    expect(answer_entry("b", 1, "", &err) == 0 && answer_entry("a", 1, "to", &err) == 0, "%s",
           err.text);
    expect(file_task_look(task, &err) == FILE_LATER && wakes == 0, "half a listing");
    answer_done(E2BIG);
    expect(file_task_look(task, &err) == FILE_READY && wakes == 1, "%s", err.text);
    expect(file_task_is_cut(task) && file_task_entries(task) == 2, "there are more than asked for");
    expect(file_task_next_entry(task, &entry) && *entry.path == 'a' && entry.target_size == 2 &&
               memcmp(entry.target, "to", 2) == 0,
           "the first is not a");
    expect(file_task_next_entry(task, &entry) && *entry.path == 'b' && entry.path_size == 1,
           "the second is not b");
    expect(!file_task_next_entry(task, &entry), "each is given once");
    file_task_free(task);
    expect(sent_count == 1, "what has ended is not given up");
}

/* Adds entries with the longest names until one is refused, or so many. Returns the bytes that
 * fit. */
static size_t fill(struct file_task *task, size_t max)
{
    static char name[AGENT_PATH_MAX];
    size_t bytes = 0;
    error err;
    memset(name, 'n', sizeof name - 1);
    while (bytes < max && !task->names.failed) {
        require(answer_entry(name, sizeof name - 1, "", &err) == 0, "%s", err.text);
        bytes += task->names.failed ? 0 : sizeof name;
    }
    answer_done(0); /* whole, and unread */
    return bytes;
}

TEST(unread_listings_of_one_tenant_leave_room_for_another)
{
    enum { NAMES = 24 << 20, TASKS = 16 };
    struct file_task *tasks[TASKS];
    size_t held = 0, others = 0;
    fake_session_begin();
    (void) snprintf(fake_session.owner, sizeof fake_session.owner, "greedy");
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = must_begin((struct file_order){ .action = FILE_LIST, .max = 100000 });
        held += fill(tasks[i], NAMES);
    }
    expect(held > 100 << 20 && held < 136 << 20, "%zu MiB of 256 for one", held >> 20);
    (void) snprintf(fake_session.owner, sizeof fake_session.owner, "modest");
    struct file_task *other = must_begin((struct file_order){ .action = FILE_LIST, .max = 100000 });
    others = fill(other, NAMES);
    expect(others >= NAMES && !other->names.failed, "another has %zu MiB", others >> 20);
    file_task_free(other);
    for (int i = 0; i < TASKS; i++)
        file_task_free(tasks[i]);
    (void) snprintf(fake_session.owner, sizeof fake_session.owner, "greedy");
    other = must_begin((struct file_order){ .action = FILE_LIST, .max = 100000 });
    expect(fill(other, NAMES) >= NAMES, "what was freed can be used again");
    file_task_free(other);
}

TEST(init_is_not_believed)
{
    static const unsigned char zeros[sizeof(struct agent_change)];
    static char block[AGENT_PAYLOAD_MAX];
    error err;
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_LIST, .max = 2 });
    expect(answer_entry("abc", 4, "", &err) < 0 && err.code == ERR_PROTOCOL, "a path beyond");
    expect(answer(AGENT_EXITED, zeros, sizeof zeros, &err) < 0 && err.code == ERR_PROTOCOL,
           "a frame of another operation");
    file_task_free(task);
    task = must_begin((struct file_order){ .action = FILE_WATCH });
    expect(answer(AGENT_CHANGE, zeros, sizeof zeros, &err) < 0, "a change of an unknown kind");
    expect(answer(AGENT_DATA, block, sizeof block, &err) < 0 && err.code == ERR_PROTOCOL,
           "bytes of a file among changes");
    file_task_free(task);
    task = must_begin((struct file_order){ .action = FILE_READ, .size = UINT64_MAX });
    int taken = 0;
    size_t came = 0;
    expect(answer_change(AGENT_CHANGE_WRITE, "a", &err) < 0 && err.code == ERR_PROTOCOL,
           "a change among the bytes of a file");
    while (came <= 2 * (size_t) FILE_WINDOW &&
           (taken = answer(AGENT_DATA, block, sizeof block, &err)) == 0)
        came += sizeof block;
    expect(taken < 0 && err.code == ERR_PROTOCOL && came >= FILE_WINDOW,
           "%zu bytes that nobody has ordered", came);
    file_task_free(task);
    task = must_begin((struct file_order){ .action = FILE_PACK });
    answer_done(0);
    expect(file_task_look(task, &err) < 0 && err.code == ERR_PROTOCOL, "a tar without beginning");
    file_task_free(task);
}

/* The credit that init has got since frame `from`. */
static uint64_t credit_since(unsigned from)
{
    uint64_t sum = 0;
    for (unsigned i = from; i < sent_count; i++)
        if (sent[i].kind == AGENT_CREDIT) {
            struct agent_amount more;
            memcpy(&more, sent[i].payload, sizeof more);
            sum += more.bytes;
        }
    return sum;
}

TEST(bytes_that_are_taken_are_ordered_anew)
{
    static char block[AGENT_PAYLOAD_MAX];
    static char taken[AGENT_PAYLOAD_MAX];
    const struct agent_file facts = { .size = 3 * sizeof block, .mode = S_IFREG | 0600 };
    struct file_entry file;
    error err;
    uint64_t sum = 0;
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_READ });
    expect(file_task_look(task, &err) == FILE_LATER, "nothing has come");
    expect(answer(AGENT_FILE, &facts, sizeof facts, &err) == 0, "%s", err.text);
    expect(file_task_look(task, &err) == FILE_READY, "its facts have come");
    file_task_facts(task, &file);
    expect(file.size == facts.size && strcmp(file_task_media_type(task), "text/csv") == 0, "%s",
           file_task_media_type(task));
    expect(file_task_take(task, taken, sizeof taken) == FLOW_LATER, "bytes that never came");
    for (unsigned i = 0; i < 24; i++) {
        memset(block, (int) i + 'a', sizeof block);
        expect(answer(AGENT_DATA, block, sizeof block, &err) == 0, "%s", err.text);
        ssize_t got = file_task_take(task, taken, 1);
        expect(got == 1 && taken[0] == block[0], "byte %c", taken[0]);
        got = file_task_take(task, taken, sizeof taken);
        expect(got == (ssize_t) sizeof block - 1 && taken[0] == block[0], "%zd bytes", got);
        sum += sizeof block;
    }
    uint64_t credit = credit_since(0);
    expect(credit <= sum && sum - credit < FILE_WINDOW / 2, "%llu of %llu bytes are ordered anew",
           (unsigned long long) credit, (unsigned long long) sum);
    expect(fake_session.transfer_counts.done[TRANSFER_FILE_BYTES_OUT] == sum, "not counted");
    expect(answer(AGENT_END, NULL, 0, &err) == 0 &&
               file_task_take(task, taken, sizeof taken) == FLOW_END,
           "its end");
    file_task_free(task);
}

TEST(a_stream_that_is_cut_off_is_broken)
{
    char byte;
    error err;
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_PACK });
    expect(answer(AGENT_OPENED, NULL, 0, &err) == 0 && answer(AGENT_DATA, "x", 1, &err) == 0, "%s",
           err.text);
    fake_session_ends();
    expect(file_task_take(task, &byte, 1) == 1 && byte == 'x', "what came before is kept");
    expect(file_task_take(task, &byte, 1) == FLOW_BROKEN, "an end that init has not told");
    file_task_free(task);
    fake_session_begin();
    task = must_begin((struct file_order){ .action = FILE_STAT });
    fake_session_ends();
    expect(file_task_look(task, &err) < 0 && strstr(err.text, "session has ended"), "%s", err.text);
    file_task_free(task);
    expect(sent_count == 1, "nothing is sent to a session that has ended");
}

TEST(changes_are_reported_and_lost_ones_once)
{
    struct file_change change;
    error err;
    uint64_t came = 0;
    unsigned lost = 0;
    char name[32];
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_WATCH });
    expect(answer(AGENT_OPENED, NULL, 0, &err) == 0, "%s", err.text);
    expect(file_task_next_change(task, &change) == FLOW_LATER, "nothing has changed");
    for (unsigned i = 0; i < 100000; i++) {
        (void) snprintf(name, sizeof name, "%05u", i);
        expect(answer_change(AGENT_CHANGE_WRITE, name, &err) == 0, "%s", err.text);
        came += sizeof(struct agent_change) + 5;
    }
    expect(credit_since(0) == 0, "credit for what nobody has taken");
    unsigned told = 0;
    while (file_task_next_change(task, &change) == 1)
        if (strcmp(change.what, "lost") == 0) {
            lost++;
            expect(change.entry.path_size == 0 && change.entry.mode == 0,
                   "a place of what is lost");
        } else {
            (void) snprintf(name, sizeof name, "%05u", told++);
            expect(strcmp(change.what, "write") == 0 && change.entry.path_size == 5 &&
                       memcmp(change.entry.path, name, 5) == 0 && change.entry.size == 7,
                   "change %u is %.*s", told, (int) change.entry.path_size, change.entry.path);
        }
    expect(lost == 1 && told > 1000 && told < 100000, "%u told, %u times lost", told, lost);
    expect(credit_since(0) == came, "init may not tell as much as before");
    expect(answer_change(AGENT_CHANGE_REMOVE, "a", &err) == 0 &&
               file_task_next_change(task, &change) == 1 && strcmp(change.what, "remove") == 0,
           "it goes on");
    file_task_free(task);
}

TEST(an_upload_waits_for_room_and_ends)
{
    struct file_entry entry;
    error err;
    fake_session_begin();
    struct file_task *task = must_begin((struct file_order){ .action = FILE_WRITE });
    is_jammed = true;
    expect(file_task_give(task, "abc", 3, &err) == 0 && sent_count == 1, "there is no room");
    is_jammed = false;
    expect(file_task_give(task, "abc", 3, &err) == 3 && sent[1].kind == AGENT_DATA, "%s", err.text);
    expect(fake_session.transfer_counts.done[TRANSFER_FILE_BYTES_IN] == 3, "not counted");
    file_task_end_input(task);
    file_task_end_input(task);
    expect(sent_count == 3 && sent[2].kind == AGENT_END, "its end is reported once");
    expect(file_task_look(task, &err) == FILE_LATER, "init has not written it");
    expect(answer_entry("a/b.csv", 7, "", &err) == 0, "%s", err.text);
    answer_done(0);
    expect(file_task_look(task, &err) == FILE_READY && file_task_next_entry(task, &entry) &&
               entry.size == 3,
           "it is written");
    expect(file_task_give(task, "x", 1, &err) < 0 && err.code == ERR_BAD_REQUEST, "bytes after it");
    file_task_free(task);
    task = must_begin((struct file_order){ .action = FILE_WRITE });
    answer_done(EEXIST);
    expect(file_task_give(task, "x", 1, &err) < 0 && err.code == ERR_CONFLICT, "%s", err.text);
    expect(file_task_look(task, &err) < 0 && err.code == ERR_CONFLICT, "%s", err.text);
    file_task_free(task);
}

TEST(an_unknown_session_and_one_that_is_paused)
{
    struct bytes path = bytes_of("a");
    struct file_task *task = NULL;
    struct file_order order = { .action = FILE_STAT, .session = "ses_other", .path = &path };
    error err;
    fake_session_begin();
    expect(service_file_begin(&fake_service, &fake_caller, &order, &task, &err) < 0 &&
               err.code == ERR_NOT_FOUND && !task,
           "%s", err.text);
    fake_session.state = SESSION_PAUSED;
    order.session = fake_session.id;
    expect(service_file_begin(&fake_service, &fake_caller, &order, &task, &err) < 0 &&
               err.code == ERR_CONFLICT && fake_session.holds == 0,
           "%s", err.text);
    bytes_done(&path);
}

TESTS(CASE(each_action_asks_init_and_is_counted), CASE(what_is_ordered_reaches_init),
      CASE(a_path_is_names_with_one_slash_between), CASE(withheld_output_is_not_revealed_by_files),
      CASE(a_listing_is_whole_and_sorted),
      CASE(unread_listings_of_one_tenant_leave_room_for_another), CASE(init_is_not_believed),
      CASE(bytes_that_are_taken_are_ordered_anew), CASE(a_stream_that_is_cut_off_is_broken),
      CASE(changes_are_reported_and_lost_ones_once), CASE(an_upload_waits_for_room_and_ends),
      CASE(an_unknown_session_and_one_that_is_paused))
