/* Starts a program with the loader and the libraries of the folder `lib` beside it, also the C
 * library. A wheel and an npm package have a copy of this launcher in the place of each program: an
 * ELF file names its loader by an absolute path, but a package is installed in any folder, and the
 * system's loader may be of an older C library or of musl.
 *
 * The launcher does what the kernel does for a program with a loader (fs/binfmt_elf.c): it maps
 * both, sets their addresses in the auxiliary vector, and jumps to the loader, with the stack that
 * the kernel has made. So /proc/self/exe, the command line and the name of the process are those of
 * the path that was started, and $ORIGIN is its folder.
 *
 * It has no C library and needs no relocations. x86-64 only. */
#include "restore/syscalls.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PATH_SIZE = 4096, PAGE = 4096, HEADERS_MAX = 32, STDERR = 2, CANNOT_START = 127 };

#define FOLDER "lib/"
#define LOADER "ld-linux-x86-64.so.2"

struct image {
    uintptr_t base;    /* to which its addresses are relative */
    uintptr_t headers; /* where its program headers are */
    uintptr_t entry;
    size_t header_count;
};

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static void say(const char *text)
{
    (void) kernel(SYS_write, STDERR, (long) text, (long) length_of(text));
}

_Noreturn static void die(const char *path, const char *cause)
{
    say("glovebox: cannot start ");
    say(path);
    say(": ");
    say(cause);
    say("; install the package again\n");
    for (;;)
        (void) kernel(SYS_exit_group, CANNOT_START);
}

/* Writes the path of `name` in the folder `lib` beside the started file; NULL: of the file there
 * with the same name as the started one. */
static void path_beside(const char *started, const char *name, char *ret_path)
{
    size_t folder = 0, size = 0;
    for (size_t at = 0; started[at] != '\0'; at++)
        if (started[at] == '/')
            folder = at + 1;
    name = name ? name : started + folder;
    if (folder + sizeof FOLDER + length_of(name) > PATH_SIZE)
        die(started, "its path is too long");
    for (; size < folder; size++)
        ret_path[size] = started[size];
    for (const char *from = FOLDER; *from != '\0'; from++)
        ret_path[size++] = *from;
    for (; *name != '\0'; name++)
        ret_path[size++] = *name;
    ret_path[size] = '\0';
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(uintptr_t) (PAGE - 1);
}

static uintptr_t page_above(uintptr_t address)
{
    return page_of(address + PAGE - 1);
}

/* Maps anonymous memory at `at`; 0: anywhere. */
static uintptr_t reserve(uintptr_t at, size_t size, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != 0 ? MAP_FIXED : 0);
    long place = kernel(SYS_mmap, (long) at, (long) size, protection, flags, -1, 0);
    if (kernel_failed(place))
        die("it", "out of memory");
    return (uintptr_t) place;
}

static int protection_of(const Elf64_Phdr *part)
{
    return ((part->p_flags & PF_R) != 0 ? PROT_READ : 0) |
           ((part->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
           ((part->p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

/* Maps a segment: the file's bytes, then zeros in the rest of its last page and in further pages.
 */
static void map_part(const char *path, const Elf64_Phdr *part, uintptr_t base, long file)
{
    uintptr_t begin = base + part->p_vaddr;
    uintptr_t end_of_bytes = begin + part->p_filesz;
    uintptr_t end = page_above(begin + part->p_memsz);
    uintptr_t head = begin - page_of(begin);
    int protection = protection_of(part);
    if (part->p_filesz > 0 &&
        kernel_failed(kernel(SYS_mmap, (long) page_of(begin), (long) (part->p_filesz + head),
                             protection, MAP_PRIVATE | MAP_FIXED, file,
                             (long) (part->p_offset - head))))
        die(path, "it cannot be mapped");
    if (part->p_memsz == part->p_filesz)
        return;
    if ((part->p_flags & PF_W) != 0)
        for (uintptr_t at = end_of_bytes; at < page_above(end_of_bytes); at++)
            *(volatile char *) at = 0; /* NOLINT(performance-no-int-to-ptr) */
    if (end > page_above(end_of_bytes))
        (void) reserve(page_above(end_of_bytes), end - page_above(end_of_bytes), protection);
}

static bool is_of_this_machine(const Elf64_Ehdr *header)
{
    return header->e_ident[EI_MAG0] == ELFMAG0 && header->e_ident[EI_MAG1] == ELFMAG1 &&
           header->e_ident[EI_MAG2] == ELFMAG2 && header->e_ident[EI_MAG3] == ELFMAG3 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == EM_X86_64 &&
           header->e_type == ET_DYN && header->e_phentsize == sizeof(Elf64_Phdr) &&
           header->e_phnum <= HEADERS_MAX;
}

static struct image load(const char *path)
{
    Elf64_Ehdr header = { 0 };
    Elf64_Phdr parts[HEADERS_MAX] = { 0 };
    uintptr_t end = 0;
    long file = kernel(SYS_openat, AT_FDCWD, (long) path, O_RDONLY | O_CLOEXEC);
    if (kernel_failed(file))
        die(path, "it cannot be opened");
    if (kernel(SYS_pread64, file, (long) &header, sizeof header, 0) != (long) sizeof header ||
        !is_of_this_machine(&header))
        die(path, "it is not a program for this machine");
    long size = header.e_phnum * (long) sizeof *parts;
    if (kernel(SYS_pread64, file, (long) parts, size, (long) header.e_phoff) != size)
        die(path, "it is truncated");
    for (size_t at = 0; at < header.e_phnum; at++)
        if (parts[at].p_type == PT_LOAD)
            end = parts[at].p_vaddr + parts[at].p_memsz;
    /* Reserves one range of addresses for all segments, which are mapped over it. */
    struct image image = { .base = reserve(0, page_above(end), PROT_NONE),
                           .header_count = header.e_phnum };
    image.entry = image.base + header.e_entry;
    for (size_t at = 0; at < header.e_phnum; at++) {
        if (parts[at].p_type == PT_PHDR)
            image.headers = image.base + parts[at].p_vaddr;
        if (parts[at].p_type == PT_LOAD)
            map_part(path, &parts[at], image.base, file);
    }
    (void) kernel(SYS_close, file);
    return image;
}

static bool begins_with(const char *text, const char *beginning)
{
    for (; *beginning != '\0'; text++, beginning++)
        if (*text != *beginning)
            return false;
    return true;
}

/* Removes libraries to preload, which need the system's C library. The auxiliary vector has to
 * follow the environment, so it moves up; returns its new place. */
static Elf64_auxv_t *drop_preloads(char **environment)
{
    char **kept = environment;
    char **at = environment;
    for (; *at; at++)
        if (!begins_with(*at, "LD_PRELOAD=") && !begins_with(*at, "LD_AUDIT="))
            *kept++ = *at;
    *kept++ = NULL;
    const Elf64_auxv_t *from = (const Elf64_auxv_t *) (at + 1);
    Elf64_auxv_t *facts = (Elf64_auxv_t *) kept;
    Elf64_auxv_t fact = { .a_type = AT_IGNORE };
    for (size_t at_fact = 0; fact.a_type != AT_NULL; at_fact++) {
        fact = from[at_fact]; /* a copy, since the two places overlap */
        facts[at_fact] = fact;
    }
    return facts;
}

/* The stack is as the kernel leaves it: count of arguments, arguments, NULL, environment, NULL,
 * auxiliary vector. Returns the loader's entry point. */
uintptr_t launch(uintptr_t *stack);
uintptr_t launch(uintptr_t *stack)
{
    char self[PATH_SIZE];
    char path[PATH_SIZE];
    long length = kernel(SYS_readlink, (long) "/proc/self/exe", (long) self, sizeof self - 1);
    if (length <= 0)
        die("it", "/proc is not mounted");
    self[length] = '\0';
    path_beside(self, NULL, path);
    struct image program = load(path);
    path_beside(self, LOADER, path);
    struct image loader = load(path);

    for (Elf64_auxv_t *fact = drop_preloads((char **) (stack + 1 + *stack + 1));
         fact->a_type != AT_NULL; fact++) {
        if (fact->a_type == AT_PHDR)
            fact->a_un.a_val = program.headers;
        else if (fact->a_type == AT_PHNUM)
            fact->a_un.a_val = program.header_count;
        else if (fact->a_type == AT_ENTRY)
            fact->a_un.a_val = program.entry;
        else if (fact->a_type == AT_BASE)
            fact->a_un.a_val = loader.base;
    }
    return loader.entry;
}

/* The loader gets the stack of the kernel, and 0 in rdx: no function to call at exit. */
__asm__(".text\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "    endbr64\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rbx\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call launch\n"
        "    mov %rbx, %rsp\n"
        "    xor %edx, %edx\n"
        "    jmp *%rax\n");
