/* file_request.h - an exchange about files of a session while its task is under way: shared by
 * files.c (questions, and the table of routes), file_streams.c (bytes in and out) and
 * signed_urls.c. */
#pragma once

#include "doors/http/range.h"
#include "doors/rest/rest.h"
#include "engine/service/service_files_json.h"

/* The data of an exchange. */
struct file_visit {
    struct file_task *task;
    struct listing listing;
    struct chunked_text event; /* of a watch, being sent */
    bool is_last_event;        /* it says why there are no more */
    struct byte_range range;
    bool knows_size;
};

/* The same for a path in a text; NULL: the session's folder. */
int file_visit_begin_at(struct exchange *exchange, const char *path, struct file_order order,
                        error *err);

void file_get(struct exchange *exchange);
void file_get_tar(struct exchange *exchange);
void file_get_watch(struct exchange *exchange);

int file_begin_put(struct exchange *exchange, error *err);
int file_begin_put_tar(struct exchange *exchange, error *err);
ssize_t file_take_upload(struct exchange *exchange, const char *data, size_t size, error *err);
void file_answer_upload(struct exchange *exchange);

/* Reads a mode such as "644". */
int file_mode_read(const char *octal, uint32_t *ret_mode, error *err);

void file_sign(struct exchange *exchange);

/* Gives the same error for everything that is wrong with a signature. Fails ERR_UNAUTHORIZED. */
int file_check_permit(struct exchange *exchange, error *err);
int file_begin_signed_put(struct exchange *exchange, error *err);
