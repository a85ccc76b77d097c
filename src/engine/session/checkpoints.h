/* checkpoints.h - moments of a session that one can come back to: a copy (capture.h) on disk, in
 * two files without a name, which end with their mark and with gloveboxd.
 *
 *  making --> ready --> gone      A mark that is removed, or whose session ends, is gone when the
 *                                 last that is restored from it has been.
 *
 * Whoever restores one holds it (mark_hold) and pours it into the pipes of a fill (restore.h). */
#pragma once

#include "base/bytes.h"
#include "engine/session/branch.h"
#include "engine/store/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MARK_ID_SIZE = 37, /* "mrk_", 32 hex digits and the end */
    MARK_NAME_SIZE = 64,
    MARKS_MOST = 16,      /* of one session */
    MARKS_ALL_MOST = 256, /* each holds two descriptors of gloveboxd */
    MARK_MS = 60000,      /* for the disk to have it */
    MARK_OURS = 64 << 20, /* bytes that it may have beyond the session's memory and disk */
};

struct mark {
    char id[MARK_ID_SIZE], name[MARK_NAME_SIZE];
    struct session *session; /* NULL: it is removed, and was held */
    uv_loop_t *loop;         /* who holds it may begin to pour when its session is gone */
    struct kept_context kept;
    struct bytes not_carried;
    uint32_t last_context;
    char template[80]; /* digest */
    const struct account *maker;
    int64_t created_ms;
    unsigned holds;
    deadline ends; /* while it is made */

    struct copy *copy;
    bool is_copied, is_ready;
    struct mark_part {
        struct mark *mark;
        int file;
        uint64_t bytes;
        struct pump *pump;
        bool is_whole;
    } image, files;

    /* Whoever waits for it; told once. */
    void (*told)(void *user, struct mark *mark, const error *why);
    void *user;
    struct mark *older;
};

/* Begins one. `told` hears that it is ready, or not: then it is gone already.
 * Fails  ERR_BUSY  there are as many as may be; else as copy_begin(). */
struct mark_order {
    struct context *context;
    const char *name; /* "": none */
    const struct account *asker;
    void (*told)(void *user, struct mark *mark, const error *why);
    void *user;
};
int mark_make(struct session *session, const struct mark_order *order, struct mark **ret_mark,
              error *err);

/* By id or name. Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is not ready. */
int mark_find(const struct session *session, const char *name, struct mark **ret_mark, error *err);
void mark_remove(struct mark *mark); /* it is told to nobody */
void marks_look(struct session *session);
void marks_end(struct session *session, const error *why);
uint64_t mark_bytes(const struct mark *mark);

/* Somebody has made it, or gone back to it: an event of the log of this kind. The session may have
 * it no more. */
int mark_tell_log(const struct session *session, const struct mark *mark, const char *kind,
                  const struct account *asker, error *err);
void mark_write(const struct mark *mark, struct bytes *out);
void marks_write(const struct session *session, struct bytes *out);

void mark_hold(struct mark *mark);
void mark_let_go(struct mark *mark);

/* What carries a mark into a fill. Zero-filled it carries nothing. */
struct pouring {
    struct mark *mark; /* held */
    struct pump *image, *files;
};

/* The write ends of two pipes, which are taken. What breaks off is seen by who reads there. */
int pouring_begin(struct pouring *pouring, struct mark *mark, const struct copy_pipes *pipes,
                  error *err);
void pouring_done(struct pouring *pouring);
