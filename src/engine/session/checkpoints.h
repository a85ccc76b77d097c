/* checkpoints.h - moments of a session that one can come back to: a copy (capture.h) on disk, in
 * two files without a name, which end with their checkpoint and with gloveboxd.
 *
 *  making --> ready --> gone      A checkpoint that is removed, or whose session ends, is gone when
 * the last that is restored from it has been.
 *
 * A restore holds it (checkpoint_retain) and pours it into the pipes of a fill
 * (restore.h). */
#pragma once

#include "base/bytes.h"
#include "engine/session/branch.h"
#include "engine/store/disk_worker.h"
#include "engine/store/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHECKPOINT_ID_SIZE = 37, /* "ckp_", 32 hex digits and the end */
    CHECKPOINT_NAME_SIZE = 64,
    CHECKPOINTS_MAX = 16,       /* of one session */
    CHECKPOINTS_ALL_MAX = 256,  /* each holds two descriptors of gloveboxd */
    CHECKPOINT_MS = 60000,      /* for the disk to have it */
    CHECKPOINT_OURS = 64 << 20, /* bytes that it may have beyond the session's memory and disk */
};

struct session_checkpoint {
    char id[CHECKPOINT_ID_SIZE], name[CHECKPOINT_NAME_SIZE];
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

    struct capture *copy;
    bool is_copied, is_ready;
    bool is_withheld; /* what its programs choose of it is not told: bytes, what was left out */
    struct session_checkpoint_part {
        struct session_checkpoint *checkpoint;
        int file;
        uint64_t bytes;
        struct spool *spool;
        bool is_whole;
    } image, files;

    /* Waiters; notified once. */
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why);
    void *user;
    struct session_checkpoint *older;

    /* Once it has left its session. */
    struct account *account;
    struct sessions *sessions;
    uint64_t unreturned; /* bytes of it that still count: its files are not closed yet */
    struct disk_job closing;
};

/* Begins one. `told` is called when it is ready, or not: then it is gone already.
 * Fails  ERR_BUSY  there are as many as may be; else as capture_begin(). */
struct session_checkpoint_order {
    struct context *context;
    const char *name; /* "": none */
    const struct account *asker;
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why);
    void *user;
};
int session_checkpoint_make(struct session *session, const struct session_checkpoint_order *order,
                            struct session_checkpoint **ret_checkpoint, error *err);

/* By id or name. Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is not ready. */
int session_checkpoint_find(const struct session *session, const char *name,
                            struct session_checkpoint **ret_checkpoint, error *err);
void session_checkpoint_remove(struct session_checkpoint *checkpoint); /* makes no callback */

/* checkpoint_quota.c. Fails  ERR_LIMIT, ERR_BUSY  a bound of the policy, of a key or of all;
 * ERR_CONFLICT  the session has one of this name. */
int session_checkpoint_check_room(const struct session *session, const char *name, error *err);
uint64_t session_checkpoint_bytes(const struct session_checkpoint *checkpoint);

/* A part grows by so many bytes; they are counted as they come: checkpoints that are never finished
 * have no more of the disk than others. Fails likewise. */
int session_checkpoint_grows(void *user, uint64_t bytes, error *err);

/* It was made, or gone back to: an event of the log of this kind. The session may have
 * it no more. */
int session_checkpoint_tell_log(const struct session *session,
                                const struct session_checkpoint *checkpoint, const char *kind,
                                const struct account *asker, error *err);
void session_checkpoint_write(const struct session_checkpoint *checkpoint, struct bytes *out);
void checkpoints_write(const struct session *session, struct bytes *out);

void checkpoint_retain(struct session_checkpoint *checkpoint);
void checkpoint_release(struct session_checkpoint *checkpoint);

/* checkpoint_copy.c: the image of the interpreter has its end. */
bool session_checkpoint_image_is_whole(const struct session_checkpoint *checkpoint);

/* What carries a checkpoint into a fill. Zero-filled it carries nothing. */
struct stream_copy {
    struct session_checkpoint *checkpoint; /* held */
    struct spool *image, *files;
};

/* The write ends of two pipes, which are taken. What breaks off is seen by the reader. */
int stream_copy_begin(struct stream_copy *stream_copy, struct session_checkpoint *checkpoint,
                      const struct capture_pipes *pipes, error *err);
void stream_copy_done(struct stream_copy *stream_copy);

extern const struct session_activity checkpoint_activity;
