/* directory_json.c - a heap that entries are taken from in the order of their paths. */
#include "doors/rest/directory_json.h"

#include "json/writer.h"

#include <string.h>

static bool goes_before(const struct file_task *task, size_t one_at, size_t other_at)
{
    const struct file_entry *one = &task->entries[one_at];
    const struct file_entry *other = &task->entries[other_at];
    size_t min = one->path_size < other->path_size ? one->path_size : other->path_size;
    int order = memcmp(task->names.data + one->path, task->names.data + other->path, min);
    return order != 0 ? order < 0 : one->path_size < other->path_size;
}

static void swap(struct file_task *task, size_t one_at, size_t other_at)
{
    struct file_entry kept = task->entries[one_at];
    task->entries[one_at] = task->entries[other_at];
    task->entries[other_at] = kept;
}

void listing_order_last(struct file_task *task)
{
    if (task->names.failed)
        return;
    for (size_t at = task->entry_count - 1; at > 0;) {
        size_t above = (at - 1) / 2;
        if (!goes_before(task, at, above))
            return;
        swap(task, at, above);
        at = above;
    }
}

/* The first goes to the end, behind those that are left, and the others close up. */
static const struct file_entry *take_first(struct file_task *task)
{
    size_t count = --task->entry_count;
    swap(task, 0, count);
    for (size_t at = 0;;) {
        size_t first = at, left = 2 * at + 1, right = left + 1;
        if (left < count && goes_before(task, left, first))
            first = left;
        if (right < count && goes_before(task, right, first))
            first = right;
        if (first == at)
            return &task->entries[count];
        swap(task, at, first);
        at = first;
    }
}

/* Returns false after the end. */
static bool write_more(struct listing *listing)
{
    struct bytes *out = &listing->pieces.text;
    struct file_task *task = listing->task;
    chunked_text_forget(&listing->pieces);
    if (listing->has_ended)
        return false;
    if (!listing->has_begun) {
        json_open(out, '{');
        file_path_write(listing->path->data ? listing->path->data : "", listing->path->size, out);
        json_flag_field(out, "truncated", task->is_cut);
        json_key(out, "entries");
        json_open(out, '[');
        listing->has_begun = true;
    } else if (task->entry_count > 0) {
        file_entry_write(task, take_first(task), out);
        if (task->entry_count > 0)
            bytes_add_text(out, ",");
    } else {
        json_close(out, ']');
        json_close(out, '}');
        listing->has_ended = true;
    }
    return !out->failed;
}

ssize_t listing_read(struct listing *listing, char *bytes, size_t size)
{
    size_t copied = 0;
    while (copied < size) {
        if (chunked_text_are_taken(&listing->pieces) && !write_more(listing))
            break;
        copied += chunked_text_take(&listing->pieces, bytes + copied, size - copied);
    }
    return listing->pieces.text.failed ? -1 : (ssize_t) copied;
}

void listing_done(struct listing *listing)
{
    bytes_done(&listing->pieces.text);
}
