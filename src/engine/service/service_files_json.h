/* service_files_json.h - files and folders of a session as JSON. A listing is written while it is
 * sent: no turn of the loop writes more than a block of it. */
#pragma once

#include "engine/service/service_files.h"
#include "json/chunked_text.h"

struct listing {
    struct file_task *task;
    bool has_begun, has_ended;
    struct chunked_text pieces;
};

/* Copies the next bytes of {"path", "truncated", "entries": […]}. Returns how many; 0 at the end;
 * -1: no memory. */
ssize_t listing_read(struct listing *listing, char *bytes, size_t size);
void listing_done(struct listing *listing);

/* One entry: {"path", "name", "type", "bytes", "mode", "modified_at", …}. */
void file_entry_write(const struct file_entry *entry, struct bytes *out);
/* The fields "path", and "path_base64" if it is not UTF-8. */
void file_path_write(const char *path, size_t size, struct bytes *out);
/* The fields "bytes", "mode", "modified_at". */
void file_facts_write(const struct file_entry *entry, struct bytes *out);
const char *file_type_name(uint32_t mode);
