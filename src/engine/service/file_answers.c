/* file_answers.c - answers of init about files: checked, kept, and read by the caller. */
#include "engine/service/service_files_internal.h"

#include "base/list.h"
#include "base/table.h"
#include "engine/sandbox/agent_error.h"
#include "engine/session/transfer_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED_MAX = 64 * 1024,
    CREDIT_STEP = 128 * 1024,
    NAMES_MAX = 32 << 20,
    CHANGES_MAX = 1 << 20,
    LISTINGS_MAX = 256 << 20, /* bytes of all listings that were not read yet */
};

static size_t listings_bytes;

/* Unread listings of one tenant may use at most as much memory as is left, so that another tenant
 * can use the same. */
struct listing_share {
    struct listing_share *next;
    size_t bytes;
    unsigned tasks;
    char owner[];
};
static struct listing_share *shares;

static struct listing_share *share_join(const char *owner)
{
    struct listing_share *share = shares;
    while (share && strcmp(share->owner, owner) != 0)
        share = share->next;
    size_t size = strlen(owner) + 1;
    if (!share && (share = calloc(1, sizeof *share + size))) {
        memcpy(share->owner, owner, size);
        share->next = shares;
        shares = share;
    }
    if (share)
        share->tasks++;
    return share;
}

static void share_leave(struct listing_share *share, size_t bytes)
{
    share->bytes -= bytes;
    if (--share->tasks > 0)
        return;
    (void) list_remove(shares, share, next);
    free(share);
}

/* Returns whether there is room for so many more bytes of this listing. */
static bool count_listed(struct file_task *task, size_t bytes)
{
    if (!task->share && !(task->share = share_join(session_owner(task->session))))
        return false;
    if (task->share->bytes + bytes > LISTINGS_MAX - listings_bytes)
        return false;
    listings_bytes += bytes;
    task->listed_bytes += bytes;
    task->share->bytes += bytes;
    return true;
}

static void wake(struct file_task *task)
{
    task->waker.woken(task->waker.context);
}

static int keep_entry(struct file_task *task, const struct agent_frame *frame,
                      const unsigned char *payload, error *err)
{
    struct agent_entry facts;
    memcpy(&facts, payload, sizeof facts);
    size_t texts = frame->size - sizeof facts;
    if (facts.path_size > texts || facts.path_size > AGENT_PATH_MAX ||
        task->entry_count >= FILE_ENTRIES_MAX || task->names.size > NAMES_MAX)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent an invalid entry of a folder");
    size_t bytes = texts + sizeof *task->entries;
    if (task->names.failed || !count_listed(task, bytes))
        task->names.failed = true;
    if (task->names.failed)
        return 0;
    if (task->entry_count == task->entry_room) {
        size_t room = task->entry_room ? 2 * task->entry_room : 64;
        struct listed_entry *entries = realloc(task->entries, room * sizeof *entries);
        if (!entries) {
            task->names.failed = true;
            return 0;
        }
        task->entries = entries;
        task->entry_room = room;
    }
    size_t place = task->names.size;
    bytes_add(&task->names, payload + sizeof facts, texts);
    if (task->names.failed)
        return 0;
    task->entries[task->entry_count++] = (struct listed_entry){
        .facts = facts,
        .path = place,
        .path_size = facts.path_size,
        .target_size = texts - facts.path_size,
    };
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
    char *place = bytes_reserve(&task->skipped, size + 1);
    if (!place)
        return;
    memcpy(place, payload + head, size);
    place[size] = '\0';
    task->skipped.size += size + 1;
}

static void add_change(struct file_task *task, const void *payload, size_t size)
{
    bytes_add(&task->bytes, &size, sizeof size);
    bytes_add(&task->bytes, payload, size);
}

static const char *const change_names[] = {
    [AGENT_CHANGE_CREATE] = "create", [AGENT_CHANGE_WRITE] = "write",
    [AGENT_CHANGE_REMOVE] = "remove", [AGENT_CHANGE_RENAME] = "rename",
    [AGENT_CHANGE_MODE] = "mode",     [AGENT_CHANGE_LOST] = "lost"
};

static int keep_change(struct file_task *task, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    static const struct agent_change lost = { .what = AGENT_CHANGE_LOST };
    struct agent_change change;
    memcpy(&change, payload, sizeof change);
    if (task->action != FILE_WATCH || change.what == 0 || change.what >= COUNT_OF(change_names))
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a change of an unknown kind");
    task->owed += frame->size;
    bool is_too_much = /* a large folder that is moved in gives many changes at once */
        task->bytes.size > CHANGES_MAX;
    if (!is_too_much)
        add_change(task, payload, frame->size);
    else if (!task->loses_changes)
        add_change(task, &lost, sizeof lost);
    task->loses_changes = is_too_much;
    return 0;
}

static int keep_data(struct file_task *task, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    if ((task->action != FILE_READ && task->action != FILE_PACK) ||
        task->bytes.size - task->taken + frame->size > FILE_WINDOW + AGENT_PAYLOAD_MAX)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent more of a file than it was asked for");
    if (task->taken > 0 && task->taken >= task->bytes.size / 2) {
        bytes_drop(&task->bytes, task->taken);
        task->taken = 0;
    }
    bytes_add(&task->bytes, payload, frame->size);
    session_count(task->session, TRANSFER_FILE_BYTES_OUT, frame->size);
    return 0;
}

void file_task_end(struct file_task *task)
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
        file_task_end(task);
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

void file_answers_begin(struct file_task *task)
{
    task->operation = (struct session_operation){
        .context = task, .frame = on_frame, .room = on_room, .ended = on_ended
    };
}

void file_answers_done(struct file_task *task)
{
    free(task->entries);
    listings_bytes -= task->listed_bytes;
    if (task->share)
        share_leave(task->share, task->listed_bytes);
    bytes_done(&task->names);
    bytes_done(&task->skipped);
    bytes_done(&task->bytes);
}

bool file_task_next_entry(struct file_task *task, struct file_entry *ret_entry)
{
    if (task->entry_count == 0)
        return false;
    const struct listed_entry *entry = directory_take_first(task);
    const char *path = task->names.data ? task->names.data + entry->path : "";
    *ret_entry = (struct file_entry){
        .path = path,
        .path_size = entry->path_size,
        .target = path + entry->path_size,
        .target_size = entry->target_size,
        .size = entry->facts.size,
        .mode = entry->facts.mode,
        .target_mode = entry->facts.target_mode,
        .mtime_ns = entry->facts.mtime_ns,
    };
    return true;
}

static void give_credit(struct file_task *task, uint64_t bytes)
{
    struct agent_amount more = { .bytes = bytes };
    session_order(task->session, &task->operation, AGENT_CREDIT, &more, sizeof more);
}

static int flow_end(const struct file_task *task)
{
    if (task->bytes.failed || (task->is_ended && !task->has_ended))
        return FLOW_BROKEN;
    return task->has_ended ? FLOW_END : FLOW_LATER;
}

ssize_t file_task_take(struct file_task *task, char *bytes, size_t size)
{
    size_t left = task->bytes.size - task->taken, part = left < size ? left : size;
    if (part == 0)
        return flow_end(task);
    memcpy(bytes, task->bytes.data + task->taken, part);
    task->taken += part;
    if (task->taken == task->bytes.size)
        task->bytes.size = task->taken = 0;
    task->owed += part;
    if (task->owed >= CREDIT_STEP) {
        give_credit(task, task->owed);
        task->owed = 0;
    }
    return (ssize_t) part;
}

int file_task_next_change(struct file_task *task, struct file_change *ret_change)
{
    struct agent_change change;
    size_t size;
    if (task->taken == task->bytes.size && task->owed > 0) {
        task->bytes.size = task->taken = 0;
        give_credit(task, task->owed);
        task->owed = 0;
    }
    if (task->bytes.failed || task->taken == task->bytes.size)
        return flow_end(task);
    const char *at = task->bytes.data + task->taken;
    memcpy(&size, at, sizeof size);
    memcpy(&change, at + sizeof size, sizeof change);
    task->taken += sizeof size + size;
    *ret_change = (struct file_change){
        .what = change_names[change.what],
        .entry = { .path = at + sizeof size + sizeof change,
                   .path_size = size - sizeof change,
                   .size = change.size,
                   .mode = change.mode,
                   .mtime_ns = change.mtime_ns },
    };
    return 1;
}
