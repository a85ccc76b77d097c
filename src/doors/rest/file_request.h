/* file_request.h - an exchange about files of a session, while init does what was asked: what
 * files.c (questions, and the table of routes), file_streams.c (bytes in and out) and signed_urls.c
 * share.
 */
#pragma once

#include "doors/http/range.h"
#include "doors/rest/directory_json.h"
#include "doors/rest/rest.h"
#include "engine/session/files.h"

/* What an exchange holds while its task is under way. */
struct file_visit {
    struct file_task task;
    struct exchange *exchange;
    struct bytes path, to;
    uint64_t depth, max;
    bool knows_size, streams;
    struct byte_range range;
    struct listing listing;
};

/* Makes what the exchange holds from now on, and lets go of when it ends. NULL, with *err: no
 * memory.
 */
struct file_visit *file_visit_new(struct exchange *exchange, error *err);

void file_visit_woken(void *context); /* of its task */

/* The session of the address. NULL, with *err: none that this account may enter. */
struct session *file_visit_session(struct exchange *exchange, error *err);

/* Begins its task, whose paths are looked at first. */
int file_visit_begin(struct file_visit *visit, const struct file_order *order, error *err);

/* --- file_streams.c ---- */

void file_get(struct exchange *exchange);
void file_get_tar(struct exchange *exchange);
void file_get_watch(struct exchange *exchange);

int file_begin_put(struct exchange *exchange, error *err);
int file_begin_put_tar(struct exchange *exchange, error *err);
ssize_t file_take_upload(struct exchange *exchange, const char *data, size_t size, error *err);
void file_answer_upload(struct exchange *exchange);

/* "644" as a mode. */
int file_mode_read(const char *octal, uint32_t *ret_mode, error *err);

/* --- signed_urls.c ---- */

void file_sign(struct exchange *exchange);

/* Says the same of everything that is wrong with a signature. Fails ERR_UNAUTHORIZED. */
int file_check_permit(struct exchange *exchange, error *err);
int file_begin_signed_put(struct exchange *exchange, error *err);
