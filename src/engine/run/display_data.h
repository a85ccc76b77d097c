/* display_data.h - results and exceptions of a cell, in the form of the result contract.
 *
 * The kernel in the sandbox sends these objects, so any program there can send them too: only known
 * fields of the right type are kept, MIME types must look like ones, and all is written anew. An
 * object is parsed while it arrives (stream_copy.h). */
#pragma once

#include "json/stream_copy.h"

enum { DISPLAY_DATA_FIELDS_MAX = 6 };

struct display_data {
    struct json_copy copy;
    bool is_failure;
    unsigned types; /* MIME types so far */
    int open;       /* the field whose value is arriving; -1: none */
    struct display_data_span {
        size_t at, end; /* in copy.text; both 0: none */
        bool is_there;
    } fields[DISPLAY_DATA_FIELDS_MAX];
    size_t plain_at;                /* text/plain of `data` in copy.text; 0: none */
    struct display_data_span plain; /* text/plain in the output, with its quotes */
};

/* Begins an object that comes in pieces. It must not be moved until it is done. */
void display_data_begin(struct display_data *display_data, bool is_failure);
void display_data_take(struct display_data *display_data, const char *data, size_t size);
void display_data_done(struct display_data *display_data);

/* To be called when all of it has come. Adds {"main","data","chart"} and, if the program gave them,
 * "metadata", "id" and "update" to `out`. Returns false, and adds nothing, for another object or
 * one without data to show. */
bool display_data_write(struct display_data *display_data, struct bytes *out, bool is_main);

/* Adds {"name","value","traceback","frames"} and, if there are any, "causes" and "exceptions".
 * Returns false, and adds nothing, for another object or one without the name of an exception. */
bool display_data_write_failure(struct display_data *display_data, struct bytes *out);
