/* directory_json.c - writes a listing piece by piece. */
#include "doors/rest/directory_json.h"

#include "json/writer.h"

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
        file_entry_write(task, directory_take_first(task), out);
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
