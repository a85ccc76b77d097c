/* service_files_json.c - writes entries of folders as JSON, a listing piece by piece. */
#include "engine/service/service_files_json.h"

#include "base/timestamp.h"
#include "base/utf8.h"
#include "json/writer.h"

#include <stdio.h>
#include <sys/stat.h>

void file_path_write(const char *path, size_t size, struct bytes *out)
{
    json_key(out, "path");
    json_text(out, path, size);
    if (utf8_is_valid(path, size))
        return;
    json_key(out, "path_base64");
    json_base64(out, path, size);
}

const char *file_type_name(uint32_t mode)
{
    return S_ISDIR(mode) ? "folder" : S_ISREG(mode) ? "file" : S_ISLNK(mode) ? "link" : "special";
}

void file_facts_write(const struct file_entry *entry, struct bytes *out)
{
    json_count_field(out, "bytes", entry->size);
    char octal[8]; /* as in requests */
    (void) snprintf(octal, sizeof octal, "%03o", entry->mode & 07777);
    json_string_field(out, "mode", octal);
    char moment[TIMESTAMP_SIZE]; /* also for 1970 */
    json_string_field(out, "modified_at", timestamp_write(entry->mtime_ns / 1000000, moment));
}

void file_entry_write(const struct file_entry *entry, struct bytes *out)
{
    size_t name = entry->path_size;
    while (name > 0 && entry->path[name - 1] != '/')
        name--;
    json_open(out, '{');
    file_path_write(entry->path, entry->path_size, out);
    json_key(out, "name");
    json_text(out, entry->path + name, entry->path_size - name);
    json_string_field(out, "type", file_type_name(entry->mode));
    file_facts_write(entry, out);
    if (S_ISLNK(entry->mode)) {
        json_key(out, "target");
        json_text(out, entry->target, entry->target_size);
        json_string_field(out, "target_type",
                          entry->target_mode ? file_type_name(entry->target_mode) : NULL);
    }
    json_close(out, '}');
}

/* Returns false after the end. */
static bool write_more(struct listing *listing)
{
    struct bytes *out = &listing->pieces.text;
    struct file_task *task = listing->task;
    struct file_entry entry;
    chunked_text_forget(&listing->pieces);
    if (listing->has_ended)
        return false;
    if (!listing->has_begun) {
        const struct bytes *path = file_task_path(task);
        json_open(out, '{');
        file_path_write(path->data ? path->data : "", path->size, out);
        json_flag_field(out, "truncated", file_task_is_cut(task));
        json_open_field(out, "entries", '[');
        listing->has_begun = true;
    } else if (file_task_next_entry(task, &entry)) {
        file_entry_write(&entry, out);
        if (file_task_entries(task) > 0)
            bytes_add_text(out, ",");
    } else {
        json_close_all(out, "]}");
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
