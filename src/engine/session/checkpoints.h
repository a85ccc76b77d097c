/* checkpoints.h - states of a session that it can be rolled back to: a copy (capture.h) on disk, in
 * two files without a name, which the kernel frees with their checkpoint or with gloveboxd.
 *
 *  making --> ready --> gone      One that is removed, or whose session ends, is freed when no
 * restore uses it any more.
 *
 * A restore retains it (checkpoint_retain) and copies it into the pipes of a fill (restore.h). */
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
    CHECKPOINT_MS = 60000,      /* to write it to the disk */
    CHECKPOINT_OURS = 64 << 20, /* bytes allowed beyond the session's memory and disk */
};

struct session_checkpoint {
    char id[CHECKPOINT_ID_SIZE], name[CHECKPOINT_NAME_SIZE];
    struct session *session; /* NULL: removed, but still retained */
    uv_loop_t *loop;         /* a restore may begin after the session's end */
    struct kept_context kept;
    struct bytes not_carried;
    uint32_t last_context;
    char template[80]; /* digest */
    const struct account *maker;
    int64_t created_ms;
    unsigned holds;
    deadline ends; /* while it is being made */

    struct capture *copy;
    bool is_copied, is_ready;
    bool is_withheld; /* its size and what was left out, which programs choose, are not shown */
    struct session_checkpoint_part {
        struct session_checkpoint *checkpoint;
        int file;
        uint64_t bytes;
        struct spool *spool;
        bool is_whole;
    } image, files;

    /* Waiters; called once. */
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why);
    void *user;
    struct session_checkpoint *older;

    /* After it was removed from its session. */
    struct account *account;
    struct sessions *sessions;
    uint64_t unreturned; /* its bytes that still count: its files are not closed yet */
    struct disk_job closing;
};

/* Begins a checkpoint. `told` is called when it is ready, or has failed; then it is freed already.
 * Fails  ERR_BUSY  there are too many; else as capture_begin(). */
struct session_checkpoint_order {
    struct context *context;
    const char *name; /* "": none */
    const struct account *asker;
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why);
    void *user;
};
int session_checkpoint_make(struct session *session, const struct session_checkpoint_order *order,
                            struct session_checkpoint **ret_checkpoint, error *err);

/* Finds one by id or name. Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is not ready. */
int session_checkpoint_find(const struct session *session, const char *name,
                            struct session_checkpoint **ret_checkpoint, error *err);
void session_checkpoint_remove(struct session_checkpoint *checkpoint); /* without a callback */

/* checkpoint_quota.c. Fails  ERR_LIMIT, ERR_BUSY  a bound of the policy, of a key or of all;
 * ERR_CONFLICT  the session has one of this name. */
int session_checkpoint_check_room(const struct session *session, const char *name, error *err);
uint64_t session_checkpoint_bytes(const struct session_checkpoint *checkpoint);

/* Counts bytes as they are written, so that unfinished checkpoints cannot use more of the disk.
 * Fails likewise. */
int session_checkpoint_grows(void *user, uint64_t bytes, error *err);

/* Writes an audit event of this kind: it was made, or rolled back to. It may not be in the session
 * any more. */
int session_checkpoint_tell_log(const struct session *session,
                                const struct session_checkpoint *checkpoint, const char *kind,
                                const struct account *asker, error *err);
void session_checkpoint_write(const struct session_checkpoint *checkpoint, struct bytes *out);
void checkpoints_write(const struct session *session, struct bytes *out);

void checkpoint_retain(struct session_checkpoint *checkpoint);
void checkpoint_release(struct session_checkpoint *checkpoint);

/* checkpoint_copy.c: the image of the interpreter is complete. */
bool session_checkpoint_image_is_whole(const struct session_checkpoint *checkpoint);

/* Copies a checkpoint into a fill. Zero-filled: none. */
struct stream_copy {
    struct session_checkpoint *checkpoint; /* retained */
    struct spool *image, *files;
};

/* Takes the write ends of two pipes. Their reader notices a failure. */
int stream_copy_begin(struct stream_copy *stream_copy, struct session_checkpoint *checkpoint,
                      const struct capture_pipes *pipes, error *err);
void stream_copy_done(struct stream_copy *stream_copy);

extern const struct session_activity checkpoint_activity;
