/* display_data.h - what a cell showed and how it failed, as the result contract says it.
 *
 * The program's own kernel sends these objects, so any program can send them too: fields are known
 * ones of the right type or left out, names of MIME types look like such, and everything is
 * written anew. An object is looked at while it comes in (stream_copy.h). */
#pragma once

#include "json/stream_copy.h"

enum { DISPLAY_DATA_FIELDS_MAX = 6 };

struct display_data {
    struct json_copy copy;
    bool is_failure;
    unsigned types; /* MIME types so far */
    int open;       /* the field whose value is coming in; -1: none */
    struct display_data_span {
        size_t at, end; /* in copy.text; none: both 0 */
        bool is_there;
    } fields[DISPLAY_DATA_FIELDS_MAX];
    size_t plain_at;                /* in copy.text: where text/plain of `data` begins; none: 0 */
    struct display_data_span plain; /* text/plain in what was written, with its quotes */
};

/* Begins an object that comes in pieces. It may not be moved until it is done. */
void display_data_begin(struct display_data *display_data, bool is_failure);
void display_data_take(struct display_data *display_data, const char *data, size_t size);
void display_data_done(struct display_data *display_data);

/* All of it has come. Adds {"main","data","chart"} and, where the program gave them, "metadata",
 * "id" and "update" to `out`. Returns false, and adds nothing, if it was no such object, or has no
 * data to show. */
bool display_data_write(struct display_data *display_data, struct bytes *out, bool is_main);

/* Adds {"name","value","traceback","frames"} and, where there are some, "causes" and "exceptions".
 * Returns false, and adds nothing, if it was no such object, or names no exception. */
bool display_data_write_failure(struct display_data *display_data, struct bytes *out);
