/* directory_order.c - a heap that gives the entries of a listing in the order of their paths:
 * adding or taking one is cheap, however many there are. */
#include "engine/service/service_files_internal.h"

#include <string.h>

static bool goes_before(const struct file_task *task, size_t one_at, size_t other_at)
{
    const struct listed_entry *one = &task->entries[one_at], *other = &task->entries[other_at];
    size_t min = one->path_size < other->path_size ? one->path_size : other->path_size;
    int order = memcmp(task->names.data + one->path, task->names.data + other->path, min);
    return order != 0 ? order < 0 : one->path_size < other->path_size;
}

static void swap(struct file_task *task, size_t one_at, size_t other_at)
{
    struct listed_entry kept = task->entries[one_at];
    task->entries[one_at] = task->entries[other_at];
    task->entries[other_at] = kept;
}

void directory_order_last(struct file_task *task)
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

const struct listed_entry *directory_take_first(struct file_task *task)
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
