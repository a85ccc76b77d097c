/* image.h - the format of process images: an interpreter's memory, from which it is restored.
 *
 * interpreter/image/image.c writes an image, glovebox-restore reads it. Both run inside a sandbox,
 * with the rights of the user's code and no others: a hostile image makes its reader do nothing
 * that code in the sandbox could not do anyway. The reader checks every number before it uses it,
 * so that a damaged image gives an error message, and never a process that is partly restored.
 *
 * The stream, which may be a file; numbers in the processor's byte order, without padding:
 *     struct image_head
 *     struct image_area    head.areas times, ascending: the address space
 *     names                head.names bytes: paths, each ended by NUL
 *     batches              head.runs runs of bytes in all, ascending: first up to IMAGE_BATCH
 *                          struct image_run, then the bytes of each
 *     struct image_end
 *
 * An image holds only memory. The other state that the kernel keeps (signals, descriptors, working
 * folder, limits) the interpreter saves in its own memory before the image is written, and restores
 * itself afterwards (interpreter/image/state.c): the reader knows nothing of it.
 *
 * Images are read by the same build on the same kernel that wrote them, for branches and
 * checkpoints, which do not outlive gloveboxd. IMAGE_VERSION guards against anything else.
 *
 * glovebox-restore takes no arguments. Its descriptors 0, 1 and 2 become those of the program, 3
 * (IMAGE_FD_CONTROL) its control socket, 4 (IMAGE_FD_IMAGE) is the image. Files that the program
 * has open or mapped below /workspace, /tmp, /home/user, /run and /dev/shm must be in their places
 * before it is started. If the image cannot be restored, it says why in one line on stderr and
 * exits with IMAGE_EXIT_FAILED; else it has become the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define IMAGE_MAGIC "GLBIMG\n"
#define IMAGE_END   "GLBEND\n"
#define IMAGE_NONE  "GLBNOT\n"

enum {
    IMAGE_VERSION = 1,
    IMAGE_AREAS_MAX = 16384,
    IMAGE_NAMES_MAX = 1 << 20,
    IMAGE_BATCH = 512,
    IMAGE_OBJECTS_MAX = 256, /* pieces of memory that are mapped shared */
    IMAGE_SPECIALS = 3,
    IMAGE_FD_CONTROL = 3,
    IMAGE_FD_IMAGE = 4,
    IMAGE_EXIT_FAILED = 125,
};

/* The addresses of glovebox-restore (meson.build links it there) and of its work space. Kernels, C
 * libraries and runtimes place nothing here by themselves; an image with memory here is refused.
 * The kernel puts the break (brk(2)) of a program at most 1 GiB behind it. */
#if defined __aarch64__
#define IMAGE_RESTORE_FROM UINT64_C(0x2a00000000)
#define IMAGE_MACHINE      183 /* EM_AARCH64 */
#else
#define IMAGE_RESTORE_FROM UINT64_C(0x2a0000000000)
#define IMAGE_MACHINE      62 /* EM_X86_64 */
#endif
#define IMAGE_RESTORE_TO (IMAGE_RESTORE_FROM + (UINT64_C(2) << 30))

/* Memory that the kernel gives every process (vdso(7)): moved, never copied. */
struct image_special {
    uint64_t start, end; /* 0: this kernel has none */
};

struct image_head {
    char magic[8]; /* IMAGE_MAGIC */
    uint32_t version;
    uint32_t machine;
    uint32_t page; /* bytes */
    uint32_t areas;
    uint64_t names; /* bytes */
    uint64_t runs;
    uint64_t bytes; /* of all runs */
    /* Address of void resume(uint64_t end, const int32_t *objects), which goes on in the restored
     * program. glovebox-restore, still mapped, ends at `end`; objects[i] is a descriptor of shared
     * memory i, or -1. */
    uint64_t resume;
    uint64_t stack;  /* stack pointer for resume(), aligned for a call */
    uint64_t thread; /* thread pointer: fs on x86-64, tpidr_el0 on aarch64 */
    struct image_special specials[IMAGE_SPECIALS]; /* in the order of image_specials */
};

static const char *const image_specials[IMAGE_SPECIALS] = { "[vvar]", "[vvar_vclock]", "[vdso]" };

enum image_kind {
    IMAGE_MEMORY = 1, /* private; zero where no run fills it */
    IMAGE_STACK,      /* the same, grows downwards */
    IMAGE_FILE,       /* private, of a file of the template; runs are the pages that were changed */
    IMAGE_SHARED,     /* shared; `object` is its number, since several areas may map the same */
    IMAGE_OPEN,       /* shared, of a file that is found by its path */
};

/* A piece of address space as /proc/PID/maps shows it. */
struct image_area {
    uint64_t start, end;
    uint64_t offset;    /* in the file or object */
    uint16_t kind;      /* enum image_kind */
    uint16_t protect;   /* PROT_* */
    uint32_t is_filled; /* 1: there are runs for it */
    uint32_t object;    /* of IMAGE_SHARED */
    uint32_t name;      /* where the path begins among the names; 0: it has none */
    /* IMAGE_FILE: all three must be those of the file. IMAGE_OPEN, IMAGE_SHARED: `size` is the
     * least size. Else zero. */
    uint64_t device, inode, size;
    int64_t changed_ns; /* ctime since 1970 */
};

struct image_run {
    uint64_t start;
    uint64_t bytes; /* whole pages */
};

/* Takes the place of the whole image: why there is none. */
struct image_none {
    char magic[8]; /* IMAGE_NONE */
    char why[sizeof(struct image_head) - 8];
};

struct image_end {
    char magic[8];  /* IMAGE_END */
    uint64_t bytes; /* as in the head */
};

/* For programs that keep images: do this head and this end belong to a complete one of `size`
 * bytes, both included? The rest is checked when it is restored. */
static inline bool image_is_whole(const struct image_head *head, const struct image_end *end,
                                  uint64_t size)
{
    return memcmp(head->magic, IMAGE_MAGIC, sizeof head->magic) == 0 &&
           memcmp(end->magic, IMAGE_END, sizeof end->magic) == 0 &&
           head->version == IMAGE_VERSION && head->areas <= IMAGE_AREAS_MAX &&
           head->names <= IMAGE_NAMES_MAX && head->bytes == end->bytes &&
           head->runs <= head->bytes &&
           size == sizeof *head + head->areas * sizeof(struct image_area) + head->names +
                       head->runs * sizeof(struct image_run) + head->bytes + sizeof *end;
}
