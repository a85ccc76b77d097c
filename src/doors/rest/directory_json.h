/* directory_json.h - what a session's folder holds, as JSON, sorted and written while it is read:
 * however much there is, no turn of the loop does more than a block of it. */
#pragma once

#include "engine/session/files.h"
#include "json/chunked_text.h"

struct listing {
    struct file_task *task;
    const struct bytes *path;
    bool has_begun, has_ended;
    struct chunked_text pieces;
};

/* Copies the next bytes of {"path", "truncated", "entries": […]}. Returns how many; 0 at its end;
 * -1 without memory. */
ssize_t listing_read(struct listing *listing, char *bytes, size_t size);
void listing_done(struct listing *listing);
