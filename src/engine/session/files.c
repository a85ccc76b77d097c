/* files.c - what init answers about files, checked and kept for whoever asked. */
#include "engine/session/files.h"
#include "engine/sandbox/agent_error.h"

#include "base/table.h"
#include "base/utf8.h"
#include "engine/review/output_check.h"
#include "engine/session/session_registry.h"
#include "json/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SKIPPED_MAX = 64 * 1024,
    CREDIT_STEP = 128 * 1024,
    NAMES_MAX = 32 << 20,
    CHANGES_MAX = 1 << 20,
    LISTINGS_MAX = 256 << 20, /* bytes of all listings that have not been read yet */
};

static size_t listings_bytes;

static void wake(struct file_task *task)
{
    if (task->woken)
        task->woken(task->context);
}

static int keep_entry(struct file_task *task, const struct agent_frame *frame,
                      const unsigned char *payload, error *err)
{
    struct agent_entry facts;
    memcpy(&facts, payload, sizeof facts);
    size_t texts = frame->size - sizeof facts;
    if (facts.path_size > texts || facts.path_size > AGENT_PATH_MAX ||
        task->entry_count >= FILE_ENTRIES_MAX || task->names.size > NAMES_MAX)
        return fail(err, ERR_PROTOCOL, "glovebox-init listed what cannot be");
    size_t bytes = texts + sizeof *task->entries;
    if (listings_bytes + bytes > LISTINGS_MAX)
        task->names.failed = true;
    if (task->names.failed)
        return 0;
    listings_bytes += bytes;
    task->listed_bytes += bytes;
    if (task->entry_count == task->entry_room) {
        size_t room = task->entry_room ? 2 * task->entry_room : 64;
        struct file_entry *entries = realloc(task->entries, room * sizeof *entries);
        if (!entries) {
            task->names.failed = true;
            return 0;
        }
        task->entries = entries;
        task->entry_room = room;
    }
    task->entries[task->entry_count++] = (struct file_entry){
        .facts = facts,
        .path = task->names.size,
        .path_size = facts.path_size,
        .target_size = texts - facts.path_size,
    };
    bytes_add(&task->names, payload + sizeof facts, texts);
    directory_order_last(task);
    return 0;
}

static void keep_skipped(struct file_task *task, const struct agent_frame *frame,
                         const unsigned char *payload)
{
    size_t head = sizeof(struct agent_skipped);
    if (task->skipped.size > SKIPPED_MAX || frame->size <= head)
        return;
    size_t size = strnlen((const char *) payload + head, frame->size - head);
    bytes_add(&task->skipped, payload + head, size);
    bytes_add(&task->skipped, "", 1);
}

/* A change becomes an event at once: as text it is taken like the bytes of a file. */
static int keep_change(struct file_task *task, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    static const char *const names[] = {
        [AGENT_CHANGE_CREATE] = "create", [AGENT_CHANGE_WRITE] = "write",
        [AGENT_CHANGE_REMOVE] = "remove", [AGENT_CHANGE_RENAME] = "rename",
        [AGENT_CHANGE_MODE] = "mode",     [AGENT_CHANGE_LOST] = "lost"
    };
    struct agent_change change;
    memcpy(&change, payload, sizeof change);
    if (change.what == 0 || change.what >= COUNT_OF(names))
        return fail(err, ERR_PROTOCOL, "glovebox-init told a change of no kind");
    task->change_bytes += frame->size;
    if (task->bytes.size > CHANGES_MAX) { /* a folder of any size moved in is one turn of init's */
        if (!task->loses_changes)
            bytes_add_text(&task->bytes, "event: lost\ndata: {\"path\":\"\"}\n\n");
        task->loses_changes = true;
        return 0;
    }
    task->loses_changes = false;
    auto_bytes json = { 0 };
    struct bytes *out = &json;
    json_open(out, '{');
    file_path_write((const char *) payload + sizeof change, frame->size - sizeof change, out);
    if (change.mode != 0) {
        json_string_field(out, "type",
                          S_ISDIR(change.mode)   ? "folder"
                          : S_ISREG(change.mode) ? "file"
                          : S_ISLNK(change.mode) ? "link"
                                                 : "special");
        json_count_field(out, "size", change.size);
        json_count_field(out, "mode", change.mode & 07777);
        json_number_field(out, "modified_ms", change.mtime_ns / 1000000);
    }
    json_close(out, '}');
    bytes_print(&task->bytes, "event: %s\ndata: ", names[change.what]);
    bytes_add(&task->bytes, json.data, json.size);
    bytes_add_text(&task->bytes, "\n\n");
    return 0;
}

static int keep_data(struct file_task *task, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (task->bytes.size - task->taken + frame->size > FILE_WINDOW + AGENT_PAYLOAD_MAX)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent more of a file than was asked for");
    if (task->taken > 0 && task->taken >= task->bytes.size / 2) {
        bytes_drop(&task->bytes, task->taken);
        task->taken = 0;
    }
    bytes_add(&task->bytes, payload, frame->size);
    session_count(task->session, TRANSFER_FILE_BYTES_OUT, frame->size);
    return 0;
}

static void end_task(struct file_task *task)
{
    if (task->session) {
        session_done(task->session, &task->operation);
        session_let_go(task->session);
    }
    task->session = NULL;
    task->is_ended = true;
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct file_task *task = context;
    int result = 0;
    switch (frame->kind) {
    case AGENT_OPENED:
        task->stands = true;
        break;
    case AGENT_FILE:
        memcpy(&task->file, payload, sizeof task->file);
        task->stands = true;
        break;
    case AGENT_ENTRY:
        return keep_entry(task, frame, payload, err);
    case AGENT_DATA:
        result = keep_data(task, frame, payload, err);
        break;
    case AGENT_CHANGE:
        result = keep_change(task, frame, payload, err);
        break;
    case AGENT_SKIPPED:
        keep_skipped(task, frame, payload);
        return 0;
    case AGENT_END:
        task->has_ended = true;
        break;
    case AGENT_DONE:
        if (error_of_agent(frame, payload, &task->failure) < 0 && task->failure.os == E2BIG) {
            task->is_cut = true;
            task->failure = (error){ 0 };
        }
        end_task(task);
        break;
    default:
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for a file",
                    frame->kind);
    }
    if (result == 0)
        wake(task);
    return result;
}

static void on_room(void *context)
{
    wake(context);
}

static void on_ended(void *context, const error *why)
{
    struct file_task *task = context;
    task->session = NULL;
    task->is_ended = true;
    task->failure = *why;
    (void) under(&task->failure, "the session has ended");
    wake(task);
}

int session_path_check(struct bytes *path, error *err)
{
    if (path->size > 1 && path->data[path->size - 1] == '/')
        path->size--;
    const char *at = path->data;
    const char *end = at + path->size;
    if (path->size > AGENT_PATH_MAX)
        return fail(err, ERR_BAD_REQUEST, "a path has %zu bytes, %d are allowed", path->size,
                    AGENT_PATH_MAX);
    if (path->size > 0 && memchr(at, '\0', path->size))
        return fail(err, ERR_BAD_REQUEST, "a path has a NUL byte in it");
    if (at < end && *at == '/')
        at++;
    while (at < end) {
        const char *slash = memchr(at, '/', (size_t) (end - at));
        size_t size = (size_t) ((slash ? slash : end) - at);
        if (size == 0 || (size == 1 && *at == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
            return fail(err, ERR_BAD_REQUEST,
                        "a path is made of names with one '/' between them; '.' and '..' are none");
        at += size + (slash != NULL);
    }
    return 0;
}

/* Does it tell something of what lies in the session? */
static bool tells(enum agent_kind kind)
{
    return kind == AGENT_READ || kind == AGENT_PACK || kind == AGENT_WATCH || kind == AGENT_LIST ||
           kind == AGENT_STAT;
}

static void count_task(struct session *session, enum agent_kind kind)
{
    if (kind == AGENT_READ || kind == AGENT_PACK)
        session_count(session, TRANSFER_FILES_OUT, 1);
    else if (kind == AGENT_WRITE || kind == AGENT_UNPACK)
        session_count(session, TRANSFER_FILES_IN, 1);
    else if (kind == AGENT_MAKE || kind == AGENT_MOVE || kind == AGENT_REMOVE)
        session_count(session, TRANSFER_CHANGES, 1);
}

int file_task_begin(struct file_task *task, struct session *session, const struct file_order *order,
                    error *err)
{
    task->operation = (struct session_operation){
        .context = task, .frame = on_frame, .room = on_room, .ended = on_ended
    };
    task->kind = order->kind;
    if (tells(order->kind) && output_check_lets_out(session->plan.policy, "files", err) < 0)
        return -1;
    auto_bytes paths = { 0 };
    bytes_add(&paths, order->path->data, order->path->size);
    if (order->to) {
        bytes_add(&paths, "", 1);
        bytes_add(&paths, order->to->data, order->to->size);
    }
    if (paths.failed)
        return fail(err, ERR_SYSTEM, "no memory for a path");
    if (session_begin(session, &task->operation, err) < 0)
        return -1;
    session_hold(session);
    count_task(session, order->kind);
    task->session = session;
    struct iovec parts[2] = { { (void *) (uintptr_t) order->head, order->head_size },
                              { paths.data, paths.size } };
    bool has_head = order->head_size > 0;
    session_send(session, &task->operation, order->kind, has_head ? parts : parts + 1,
                 has_head ? 2 : 1);
    session_flush(session);
    return 0;
}

void file_task_close(struct file_task *task)
{
    task->woken = NULL;
    if (task->session) {
        session_send(task->session, &task->operation, AGENT_CANCEL, NULL, 0);
        session_flush(task->session);
        end_task(task);
    }
    free(task->entries);
    task->entries = NULL;
    task->entry_count = task->entry_room = 0;
    bytes_done(&task->names);
    listings_bytes -= task->listed_bytes;
    task->listed_bytes = 0;
    bytes_done(&task->skipped);
    bytes_done(&task->bytes);
}

static void give_credit(struct file_task *task, uint64_t bytes)
{
    struct agent_amount more = { .bytes = bytes };
    struct iovec part = { &more, sizeof more };
    if (!task->session)
        return;
    session_send(task->session, &task->operation, AGENT_CREDIT, &part, 1);
    session_flush(task->session);
}

size_t file_task_take(struct file_task *task, char *bytes, size_t size)
{
    size_t left = task->bytes.size - task->taken;
    size_t part = left < size ? left : size;
    if (part == 0)
        return 0;
    memcpy(bytes, task->bytes.data + task->taken, part);
    task->taken += part;
    if (task->taken == task->bytes.size)
        task->bytes.size = task->taken = 0;
    if (task->kind == AGENT_WATCH) {
        if (task->bytes.size == 0) {
            give_credit(task, task->change_bytes);
            task->change_bytes = 0;
        }
        return part;
    }
    task->owed += part;
    if (task->owed >= CREDIT_STEP) {
        give_credit(task, task->owed);
        task->owed = 0;
    }
    return part;
}

size_t file_task_give(struct file_task *task, const char *bytes, size_t size)
{
    size_t given = 0;
    if (!task->session || !session_has_room(task->session))
        return 0;
    while (given < size) {
        size_t part = size - given < AGENT_PAYLOAD_MAX ? size - given : AGENT_PAYLOAD_MAX;
        struct iovec piece = { (void *) (uintptr_t) (bytes + given), part };
        session_send(task->session, &task->operation, AGENT_DATA, &piece, 1);
        given += part;
    }
    session_flush(task->session);
    session_count(task->session, TRANSFER_FILE_BYTES_IN, given);
    return given;
}

void file_task_end_input(struct file_task *task)
{
    if (task->input_has_ended || !task->session)
        return;
    task->input_has_ended = true;
    session_send(task->session, &task->operation, AGENT_END, NULL, 0);
    session_flush(task->session);
}

/* --- as JSON ------------------------------------------------------------------------------------
 */

void file_path_write(const char *path, size_t size, struct bytes *out)
{
    json_key(out, "path");
    json_text(out, path, size);
    if (utf8_is_valid(path, size))
        return;
    json_key(out, "path_base64");
    json_base64(out, path, size);
}

static const char *type_of(uint32_t mode)
{
    return S_ISDIR(mode) ? "folder" : S_ISREG(mode) ? "file" : S_ISLNK(mode) ? "link" : "special";
}

void file_entry_write(const struct file_task *task, const struct file_entry *entry,
                      struct bytes *out)
{
    const char *path = task->names.data ? task->names.data + entry->path : "";
    size_t name = entry->path_size;
    while (name > 0 && path[name - 1] != '/')
        name--;
    json_open(out, '{');
    file_path_write(path, entry->path_size, out);
    json_key(out, "name");
    json_text(out, path + name, entry->path_size - name);
    json_string_field(out, "type", type_of(entry->facts.mode));
    json_count_field(out, "size", entry->facts.size);
    json_count_field(out, "mode", entry->facts.mode & 07777);
    json_number_field(out, "modified_ms", entry->facts.mtime_ns / 1000000);
    if (S_ISLNK(entry->facts.mode)) {
        json_key(out, "target");
        json_text(out, path + entry->path_size, entry->target_size);
        json_string_field(out, "target_type",
                          entry->facts.target_mode ? type_of(entry->facts.target_mode) : NULL);
    }
    json_close(out, '}');
}
