/* checkpoint_copy.c - checks the files of a checkpoint, and copies them into the pipes of a
 * sandbox. */
#include "engine/session/checkpoints.h"

#include "contract/image.h"

#include <unistd.h>

/* The process that wrote the image may have been killed meanwhile. */
bool session_checkpoint_image_is_whole(const struct session_checkpoint *checkpoint)
{
    const struct session_checkpoint_part *part = &checkpoint->image;
    struct image_head head;
    struct image_end end;
    return part->bytes >= sizeof head + sizeof end &&
           pread(part->file, &head, sizeof head, 0) == sizeof head &&
           pread(part->file, &end, sizeof end, (off_t) (part->bytes - sizeof end)) == sizeof end &&
           image_is_whole(&head, &end, part->bytes);
}

static void image_is_poured(void *user, uint64_t moved, const error *why)
{
    struct stream_copy *stream_copy = user;
    (void) moved;
    (void) why;
    stream_copy->image = NULL;
}

static void files_are_poured(void *user, uint64_t moved, const error *why)
{
    struct stream_copy *stream_copy = user;
    (void) moved;
    (void) why;
    stream_copy->files = NULL;
}

int stream_copy_begin(struct stream_copy *stream_copy, struct session_checkpoint *checkpoint,
                      const struct capture_pipes *pipes, error *err)
{
    struct spool_order image = { .loop = checkpoint->loop,
                                 .pipe = pipes->image,
                                 .file = checkpoint->image.file,
                                 .max = checkpoint->image.bytes,
                                 .told = image_is_poured,
                                 .user = stream_copy };
    struct spool_order files = image;
    files.pipe = pipes->files;
    files.file = checkpoint->files.file;
    files.max = checkpoint->files.bytes;
    files.told = files_are_poured;
    checkpoint_retain(checkpoint);
    stream_copy->checkpoint = checkpoint;
    int image_result = spool_in(&image, &stream_copy->image, err);
    int files_result = spool_in(&files, &stream_copy->files, err);
    return image_result < 0 || files_result < 0 ? -1 : 0;
}

void stream_copy_done(struct stream_copy *stream_copy)
{
    spool_abandon(stream_copy->image);
    spool_abandon(stream_copy->files);
    if (stream_copy->checkpoint)
        checkpoint_release(stream_copy->checkpoint);
    *stream_copy = (struct stream_copy){ 0 };
}
