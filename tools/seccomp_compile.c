/* seccomp_compile.c - makes a filter, the table of refusals and test cases from a table of system calls.
 *
 *     seccomp_compile filter  TABLE OUT    BPF bytes: an array of struct sock_filter
 *     seccomp_compile header  TABLE OUT    seccomp/refusals.h: what glovebox-init answers, in which words
 *     seccomp_compile cases   TABLE OUT    a C header: arguments that reach each row, for the tests
 *
 * Runs at build time, outside root. libseccomp is asked for the numbers of calls; the program itself is
 * laid out here, because rows of one call are tried in order, and libseccomp's rules have none
 * (docs/decisions/0018). The form of a table is described in data/seccomp/default.syscalls. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/table.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Newer than the headers of the oldest machine that builds us. */
#define PR_SCHED_CORE_NUMBER       62
#define PR_SET_MEMORY_MERGE_NUMBER 67
#define MPTCP_NUMBER               262

enum action { ALLOW, REFUSE, FAIL };

enum { ROWS_MOST = 1024, TESTS_MOST = 3, CALLS_MOST = 512, X32_BIT = 0x40000000 };

struct test {
    unsigned argument;
    bool whole; /* all 64 bits, else the low 32 */
    bool equal;
    uint64_t mask, value;
};

struct row {
    char name[32];
    char why[200];
    const char *file;
    int line;
    unsigned call;
    enum action action;
    int os;
    unsigned tests;
    struct test test[TESTS_MOST];
};

struct table {
    struct row row[ROWS_MOST];
    unsigned rows;
};

/* --- words of the table -------------------------------------------------------------------------
 */

#define WORD(name)  \
    {               \
#name, name \
    }

/* clang-format off */
static const struct word {
    const char *name;
    uint64_t value;
} words[] = {
    WORD(F_SETLEASE),
    WORD(F_NOTIFY),
    WORD(S_IFMT),
    WORD(S_IFBLK),
    WORD(S_IFCHR),
    WORD(POSIX_FADV_DONTNEED),
    WORD(MS_SYNC),
    WORD(MAP_HUGETLB),
    WORD(MADV_MERGEABLE),
    WORD(MFD_HUGETLB),
    WORD(SHM_HUGETLB),
    WORD(PRIO_PROCESS),
    WORD(PRIO_PGRP),
    WORD(PR_SET_MM),
    WORD(PR_SET_PTRACER),
    { "PR_SCHED_CORE", PR_SCHED_CORE_NUMBER },
    { "PR_SET_MEMORY_MERGE", PR_SET_MEMORY_MERGE_NUMBER },
    WORD(SECCOMP_SET_MODE_FILTER),
    WORD(SECCOMP_FILTER_FLAG_NEW_LISTENER),
    WORD(SECCOMP_IOCTL_NOTIF_RECV),
    WORD(SECCOMP_IOCTL_NOTIF_SEND),
    WORD(SECCOMP_IOCTL_NOTIF_ID_VALID),
    WORD(AF_UNIX),
    WORD(AF_INET),
    WORD(AF_INET6),
    WORD(AF_NETLINK),
    WORD(NETLINK_ROUTE),
    WORD(SOCK_STREAM),
    WORD(SOCK_DGRAM),
    WORD(SOL_SOCKET),
    WORD(SO_ATTACH_FILTER),
    WORD(SO_ATTACH_BPF),
    WORD(SO_ATTACH_REUSEPORT_CBPF),
    WORD(SO_ATTACH_REUSEPORT_EBPF),
    WORD(SO_ZEROCOPY),
    WORD(IPPROTO_TCP),
    WORD(IPPROTO_UDP),
    { "IPPROTO_MPTCP", MPTCP_NUMBER },
    WORD(TCP_ULP),
    WORD(TCP_ZEROCOPY_RECEIVE),
    WORD(UDP_ENCAP),
    WORD(TIOCSTI),
    WORD(TIOCLINUX),
    WORD(TIOCSETD),
    WORD(TIOCCONS),
    WORD(TIOCGPTN),
    WORD(TIOCSPTLCK),
    WORD(TIOCGPTLCK),
    /* struct termios2 is in a kernel header that cannot stand beside the C library's. */
    { "TCGETS2", 0x802c542a },
    { "TCSETS2", 0x402c542b },
    { "TCSETSW2", 0x402c542c },
    { "TCSETSF2", 0x402c542d },
    WORD(FS_IOC_GETFLAGS),
    WORD(FS_IOC_SETFLAGS),
    WORD(FS_IOC_FSSETXATTR),
    WORD(SIOCGIFNAME),
    WORD(SIOCGIFCONF),
    WORD(SIOCGIFFLAGS),
    WORD(SIOCGIFADDR),
    WORD(SIOCGIFBRDADDR),
    WORD(SIOCGIFNETMASK),
    WORD(SIOCGIFMTU),
    WORD(SIOCGIFHWADDR),
    WORD(SIOCGIFINDEX),
    { "SCHED_OTHER", 0 },
    { "SCHED_BATCH", 3 },
    { "SCHED_IDLE", 5 },
    { "SCHED_POLICY", 0xbfffffff }, /* mask: all but SCHED_RESET_ON_FORK */
    { "SOCK_TYPE", 0xf },           /* mask: all but SOCK_CLOEXEC and SOCK_NONBLOCK */
    { "IOPRIO_WHO_PROCESS", 1 },
    /* Every CLONE_NEW* flag. 0x80 is CLONE_NEWTIME, which shares its byte with the exit signal. */
    { "CLONE_NEW_ANY", 0x7e020080 },
}, errors[] = {
    WORD(EPERM),       WORD(ENOSYS),      WORD(EINVAL),      WORD(ENOTTY), WORD(ENOMEM),
    WORD(ENETUNREACH), WORD(ENOPROTOOPT), WORD(EAFNOSUPPORT), WORD(EPROTONOSUPPORT),
};

/* clang-format on */

static int find_word(const struct word *table, size_t count, const char *name, uint64_t *ret_value)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *ret_value = table[i].value;
            return 0;
        }
    }
    return -1;
}

/* --- reading ------------------------------------------------------------------------------------
 */

struct place {
    const char *file;
    int line;
};

#define complain(place, err, format, ...) \
    fail(err, ERR_BAD_REQUEST, "%s:%d: " format, (place)->file, (place)->line, ##__VA_ARGS__)

static int read_number(const struct place *place, const char *word, uint64_t *ret_value, error *err)
{
    if (!word)
        return complain(place, err, "a number or its name is missing");
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(word, &end, 0);
    if (word[0] >= '0' && word[0] <= '9' && *end == '\0' && errno == 0) {
        *ret_value = value;
        return 0;
    }
    if (find_word(words, COUNT_OF(words), word, ret_value) < 0)
        return complain(place, err, "'%s' is no number and no name that the compiler knows", word);
    return 0;
}

/* One test: "arg0 & MASK == VALUE". */
static int read_test(const struct place *place, char **rest, struct test *test, error *err)
{
    const char *subject = strtok_r(NULL, " \t", rest);
    const char *prefix = NULL;
    if (subject && strncmp(subject, "arg", 3) == 0)
        prefix = "arg";
    else if (subject && strncmp(subject, "whole", 5) == 0)
        prefix = "whole";
    const char *digit = prefix ? subject + strlen(prefix) : "";
    if (digit[0] < '0' || digit[0] > '5' || digit[1] != '\0')
        return complain(place, err, "a test begins with arg0 to arg5, or whole0 to whole5");

    *test = (struct test){ .argument = (unsigned) (digit[0] - '0'), .whole = prefix[0] == 'w' };
    test->mask = test->whole ? UINT64_MAX : UINT32_MAX;
    const char *relation = strtok_r(NULL, " \t", rest);
    if (relation && strcmp(relation, "&") == 0) {
        if (read_number(place, strtok_r(NULL, " \t", rest), &test->mask, err) < 0)
            return -1;
        relation = strtok_r(NULL, " \t", rest);
    }
    if (!relation || (strcmp(relation, "==") != 0 && strcmp(relation, "!=") != 0))
        return complain(place, err, "a test needs == or !=");
    test->equal = relation[0] == '=';
    if (read_number(place, strtok_r(NULL, " \t", rest), &test->value, err) < 0)
        return -1;
    if (test->whole && (test->mask != UINT64_MAX || !test->equal))
        return complain(place, err, "whole%u can only be compared with ==", test->argument);
    if (!test->whole && (test->mask > UINT32_MAX || test->value > UINT32_MAX))
        return complain(place, err, "arg%u has 32 bits; use whole%u", test->argument,
                        test->argument);
    if ((test->value & ~test->mask) != 0)
        return complain(place, err, "the test can never hold: the value has bits outside the mask");
    return 0;
}

static int read_action(const struct place *place, struct row *row, char **rest, error *err)
{
    static const struct {
        const char *name;
        enum action action;
        bool says_error;
        int os;
    } actions[] = {
        { "allow", ALLOW, false, 0 }, { "refuse", REFUSE, true, 0 },    { "fail", FAIL, true, 0 },
        { "skip", FAIL, false, 0 },   { "nosys", FAIL, false, ENOSYS },
    };
    char *word = strtok_r(NULL, " \t", rest);
    if (!word)
        return complain(place, err, "'%s' has no action", row->name);
    char *suffix = strstr(word, "-if");
    bool conditional = suffix && suffix[3] == '\0';
    if (conditional)
        *suffix = '\0';
    for_each(known, actions) {
        if (strcmp(known->name, word) != 0)
            continue;
        row->action = known->action;
        row->os = known->os;
        uint64_t os = 0;
        if (known->says_error) {
            const char *name = strtok_r(NULL, " \t", rest);
            if (!name || find_word(errors, COUNT_OF(errors), name, &os) < 0)
                return complain(place, err, "%s needs one of the errors that the compiler knows",
                                word);
            row->os = (int) os;
        }
        const char *joint = NULL;
        do {
            if (!conditional)
                break;
            if (row->tests == TESTS_MOST)
                return complain(place, err, "more than %d tests", TESTS_MOST);
            if (read_test(place, rest, &row->test[row->tests++], err) < 0)
                return -1;
            joint = strtok_r(NULL, " \t", rest);
        } while (joint && strcmp(joint, "and") == 0);
        if (joint || strtok_r(NULL, " \t", rest))
            return complain(place, err, "there is more on the line than '%s' takes", word);
        return 0;
    }
    return complain(place, err, "'%s' is no action", word);
}

/* The number is libseccomp's; the one in the table is for calls that it does not know. A call that
 * this architecture does not have gives 1. */
static int find_number(const struct place *place, struct row *row, error *err)
{
    char *at = strchr(row->name, '@');
    uint64_t given = UINT64_MAX;
    if (at) {
        *at = '\0';
        if (read_number(place, at + 1, &given, err) < 0)
            return -1;
    }
    int known = seccomp_syscall_resolve_name_arch(seccomp_arch_native(), row->name);
    if (known == __NR_SCMP_ERROR && given == UINT64_MAX)
        return complain(place, err, "libseccomp knows no call '%s'; write %s@NUMBER", row->name,
                        row->name);
    if (known == __NR_SCMP_ERROR)
        known = (int) given;
    if (known < 0)
        return 1;
    if (known >= CALLS_MOST || (given != UINT64_MAX && given != (uint64_t) known))
        return complain(place, err, "'%s' has the number %d here", row->name, known);
    row->call = (unsigned) known;
    return 0;
}

static int read_row(const struct place *place, char *text, struct table *table, error *err)
{
    if (table->rows == ROWS_MOST)
        return complain(place, err, "more than %d rows", ROWS_MOST);
    struct row *row = &table->row[table->rows];
    *row = (struct row){ .file = place->file, .line = place->line };

    char *why = strstr(text, " -- ");
    if (!why || strlen(why + 4) == 0 || strlen(why + 4) >= sizeof row->why)
        return complain(place, err, "a row ends in ' -- ' and a reason shorter than %zu bytes",
                        sizeof row->why);
    *why = '\0';
    (void) stpcpy(row->why, why + 4);

    char *rest = NULL;
    const char *name = strtok_r(text, " \t", &rest);
    if (!name || strlen(name) >= sizeof row->name)
        return complain(place, err, "a row begins with the name of a call");
    (void) stpcpy(row->name, name);
    if (read_action(place, row, &rest, err) < 0)
        return -1;
    int found = find_number(place, row, err);
    if (found < 0)
        return -1;
    if (found == 0)
        table->rows++;
    return 0;
}

/* Rows of the table that another one includes give way to its own rows for the same call. */
static void replace_rows(struct table *table, unsigned included)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < table->rows; i++) {
        bool replaced = false;
        for (unsigned own = included; i < included && own < table->rows; own++)
            replaced |= table->row[own].call == table->row[i].call;
        if (!replaced)
            table->row[kept++] = table->row[i];
    }
    table->rows = kept;
}

static void close_file(FILE **file)
{
    if (*file)
        (void) fclose(*file);
}

#define auto_file __attribute__((cleanup(close_file))) FILE *

static int read_table(const char *path, struct table *table, int depth, error *err)
{
    auto_file file = fopen(path, "re");
    if (!file)
        return fail_os(err, "open '%s'", path);
    unsigned included = table->rows;
    char line[1024];
    struct place place = { .file = path };
    while (fgets(line, sizeof line, file)) {
        place.line++;
        size_t length = strcspn(line, "\n");
        if (line[length] != '\n')
            return complain(&place, err, "the line is too long, or ends without a newline");
        line[length] = '\0';
        if (line[0] == '#' || strspn(line, " \t") == length)
            continue;
        if (strncmp(line, "include ", 8) == 0) {
            char beside[4096];
            const char *slash = strrchr(path, '/');
            int folder = slash ? (int) (slash - path + 1) : 0;
            (void) snprintf(beside, sizeof beside, "%.*s%s", folder, path, line + 8);
            if (depth > 0 || table->rows > 0)
                return complain(&place, err, "include stands first, and only in one table");
            /* Rows point to the name of their file: it lives as long as the program. */
            const char *name = strdup(beside); /* NOLINT(clang-analyzer-unix.Malloc) */
            if (!name || read_table(name, table, depth + 1, err) < 0)
                return under(err, "%s:%d", path, place.line);
            included = table->rows;
            continue;
        }
        if (read_row(&place, line, table, err) < 0)
            return -1;
    }
    if (ferror(file))
        return fail_os(err, "read '%s'", path);
    replace_rows(table, included);
    return 0;
}

/* --- checking -----------------------------------------------------------------------------------
 */

static bool holds(const struct test *test, const uint64_t *arguments)
{
    uint64_t found = arguments[test->argument] & test->mask;
    return (found == test->value) == test->equal;
}

static const struct row *first_match(const struct row *rows, const uint64_t *arguments)
{
    for (const struct row *row = rows;; row++) {
        bool all = true;
        for (unsigned i = 0; i < row->tests; i++)
            all = all && holds(&row->test[i], arguments);
        if (all)
            return row;
    }
}

/* Arguments that reach `row`, of the call whose rows begin at `first`. What is not tested is all
 * ones: no descriptor, no address, no size. The high half stays all ones, so that a filter which
 * looks at it shows. Rows above that would take the arguments are turned away one by one, by a bit
 * of their last test. */
static int reach_row(const struct row *first, const struct row *row, uint64_t *ret_arguments)
{
    for (int i = 0; i < 6; i++)
        ret_arguments[i] = UINT64_MAX;
    for (int attempt = 0; attempt < 64; attempt++) {
        for (unsigned i = 0; i < row->tests; i++) {
            const struct test *test = &row->test[i];
            uint64_t *argument = &ret_arguments[test->argument];
            if (test->equal)
                *argument = (*argument & ~test->mask) | test->value;
            else if (!holds(test, ret_arguments))
                *argument ^= test->mask & -test->mask;
        }
        const struct row *found = first_match(first, ret_arguments);
        if (found == row)
            return 0;
        if (found > row)
            return -1;
        const struct test *last = &found->test[found->tests - 1];
        uint64_t *argument = &ret_arguments[last->argument];
        if (last->equal)
            *argument ^= last->mask & -last->mask;
        else
            *argument = (*argument & ~last->mask) | last->value;
    }
    return -1;
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    return a->line < b->line ? -1 : 1;
}

/* Every call is decided, once, and by rows that can all be reached. */
static int check_table(struct table *table, error *err)
{
    if (table->rows == 0)
        return fail(err, ERR_BAD_REQUEST, "the table has no row");
    for (unsigned i = 1; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        for (unsigned before = 0; before + 1 < i; before++)
            if (table->row[before].call == row->call && table->row[i - 1].call != row->call)
                return complain(row, err, "the rows of '%s' do not stand together", row->name);
    }
    qsort(table->row, table->rows, sizeof table->row[0], compare_rows);

    const struct row *first = &table->row[0];
    unsigned next = 0;
    for (unsigned i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (i > 0 && row->call != row[-1].call)
            first = row;
        bool last = i + 1 == table->rows || row[1].call != row->call;
        if (last != (row->tests == 0))
            return complain(row, err, "'%s': the last row, and only it, has no test", row->name);
    }
    for (unsigned i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (i > 0 && row->call != row[-1].call)
            first = row;
        else if (i == 0)
            first = row;
        uint64_t arguments[6];
        if (reach_row(first, row, arguments) < 0)
            return complain(row, err, "'%s': the rows above leave nothing for this one", row->name);
        for (; next < row->call; next++) {
            char *missing = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), (int) next);
            if (missing) {
                int result = complain(row, err, "no row decides '%s' (%u)", missing, next);
                free(missing);
                return result;
            }
        }
        next = row->call + 1;
    }
    return 0;
}

/* --- the filter ---------------------------------------------------------------------------------
 */

struct program {
    struct sock_filter code[BPF_MAXINSNS];
    unsigned length;
    bool overflowed;
};

static unsigned emit(struct program *program, unsigned code, unsigned yes, unsigned no, uint32_t k)
{
    if (program->length == BPF_MAXINSNS) {
        program->overflowed = true;
        return 0;
    }
    program->code[program->length] =
        (struct sock_filter){ (uint16_t) code, (uint8_t) yes, (uint8_t) no, k };
    return program->length++;
}

static uint32_t verdict(const struct row *row)
{
    switch (row->action) {
    case ALLOW:
        return SECCOMP_RET_ALLOW;
    case REFUSE:
        return SECCOMP_RET_USER_NOTIF;
    case FAIL:
        break;
    }
    return SECCOMP_RET_ERRNO | (uint32_t) row->os;
}

/* One comparison of 32 bits; if it does not come out as wished, the row is left. Gives the place of
 * the jump. */
static unsigned emit_compare(struct program *program, unsigned offset, uint32_t mask,
                             uint32_t value)
{
    (void) emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
    if (mask != UINT32_MAX)
        (void) emit(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
    return emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, value);
}

static void emit_row(struct program *program, const struct row *row)
{
    unsigned jumps[2 * TESTS_MOST];
    bool wanted[2 * TESTS_MOST];
    unsigned count = 0;
    for (unsigned i = 0; i < row->tests; i++) {
        const struct test *test = &row->test[i];
        unsigned low = (unsigned) offsetof(struct seccomp_data, args) + 8 * test->argument;
        unsigned high = low;
        if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
            low += 4;
        else
            high += 4;
        wanted[count] = test->equal;
        jumps[count++] = emit_compare(program, low, (uint32_t) test->mask, (uint32_t) test->value);
        if (test->whole) {
            wanted[count] = true;
            jumps[count++] =
                emit_compare(program, high, UINT32_MAX, (uint32_t) (test->value >> 32));
        }
    }
    (void) emit(program, BPF_RET | BPF_K, 0, 0, verdict(row));
    for (unsigned i = 0; i < count; i++) {
        uint8_t past = (uint8_t) (program->length - jumps[i] - 1);
        if (wanted[i])
            program->code[jumps[i]].jf = past;
        else
            program->code[jumps[i]].jt = past;
    }
}

/* Numbers from `first` up to the next leaf are decided by the same rows; NULL answers ENOSYS. */
struct leaf {
    unsigned first;
    const struct row *row;
};

static bool same_leaf(const struct row *a, const struct row *b)
{
    if (!a || !b)
        return (!a || (a->tests == 0 && verdict(a) == (SECCOMP_RET_ERRNO | ENOSYS))) &&
               (!b || (b->tests == 0 && verdict(b) == (SECCOMP_RET_ERRNO | ENOSYS)));
    return a->tests == 0 && b->tests == 0 && verdict(a) == verdict(b);
}

/* A binary tree over the leaves: about eight comparisons to any call instead of hundreds. */
static void emit_tree(struct program *program, const struct leaf *leaves, unsigned count)
{
    if (count == 1) {
        const struct row *row = leaves->row;
        if (!row) {
            (void) emit(program, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
            return;
        }
        for (; row->tests > 0; row++)
            emit_row(program, row);
        emit_row(program, row);
        return;
    }
    unsigned half = count / 2;
    unsigned jump = emit(program, BPF_JMP | BPF_JGE | BPF_K, 0, 0, leaves[half].first);
    emit_tree(program, leaves, half);
    unsigned distance = program->length - jump - 1;
    if (distance <= UINT8_MAX) {
        program->code[jump].jt = (uint8_t) distance;
    } else if (program->length < BPF_MAXINSNS) {
        /* Conditional jumps reach 255 instructions: go on by a far one. Jumps within the half stay
         * right. */
        memmove(&program->code[jump + 2], &program->code[jump + 1],
                distance * sizeof program->code[0]);
        program->code[jump].jf = 1;
        program->code[jump + 1] = (struct sock_filter){ BPF_JMP | BPF_JA, 0, 0, distance };
        program->length++;
    } else {
        program->overflowed = true;
    }
    emit_tree(program, leaves + half, count - half);
}

static int compile(const struct table *table, struct program *program, error *err)
{
    static struct leaf leaves[2 * CALLS_MOST];
    unsigned count = 0;
    const struct row *of_call[CALLS_MOST + 1] = { NULL }; /* the first row of each call */
    for (unsigned i = table->rows; i-- > 0;)
        of_call[table->row[i].call] = &table->row[i];
    for (unsigned call = 0; call <= CALLS_MOST; call++)
        if (call == 0 || !same_leaf(of_call[call], leaves[count - 1].row))
            leaves[count++] = (struct leaf){ call, of_call[call] };

    program->length = 0;
    program->overflowed = false;
    (void) emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    (void) emit(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, seccomp_arch_native());
    (void) emit(program, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    (void) emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    (void) emit(program, BPF_JMP | BPF_JSET | BPF_K, 0, 1, X32_BIT);
    (void) emit(program, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit_tree(program, leaves, count);
    if (program->overflowed)
        return fail(err, ERR_TOO_LARGE, "the filter is longer than the kernel's %d instructions",
                    BPF_MAXINSNS);
    return 0;
}

/* --- what is written ----------------------------------------------------------------------------
 */

static int write_filter(const struct table *table, FILE *out, error *err)
{
    static struct program program;
    if (compile(table, &program, err) < 0)
        return -1;
    if (fwrite(program.code, sizeof program.code[0], program.length, out) != program.length)
        return fail_os(err, "write the filter");
    return 0;
}

static void write_text(FILE *out, const char *text)
{
    (void) fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            (void) fputc('\\', out);
        (void) fputc(*text, out);
    }
    (void) fputc('"', out);
}

/* "the same" is for readers of the table; a denial stands alone and takes the words further up. */
static const char *reason(const struct table *table, const struct row *row)
{
    const struct row *source = row;
    for (const struct row *other = table->row; other < table->row + table->rows; other++) {
        bool above = other->file == row->file && other->line < row->line;
        bool nearer = source == row || other->line > source->line;
        if (strncmp(row->why, "the same", 8) == 0 && strncmp(other->why, "the same", 8) != 0 &&
            above && nearer)
            source = other;
    }
    return source->why;
}

static int write_header(const struct table *table, FILE *out, error *err)
{
    (void) err;
    (void) fputs("/* refusals.h - generated by tools/seccomp_compile.c: the calls that are refused "
                 "and reported, by\n"
                 " * number; rows of one call in the order in which their tests are tried. */\n"
                 "#pragma once\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                 "struct refusal {\n"
                 "    uint32_t call;\n"
                 "    int32_t os;       /* the error that the caller gets */\n"
                 "    const char *name; /* of the call */\n"
                 "    const char *why;\n"
                 "    uint32_t tests;   /* all must hold: (argument & mask == value) == equal */\n"
                 "    struct {\n"
                 "        uint32_t argument, equal;\n"
                 "        uint64_t mask, value;\n"
                 "    } test[3];\n"
                 "};\n\n"
                 "static const struct refusal refusals[] = {\n",
                 out);
    for (const struct row *row = table->row; row < table->row + table->rows; row++) {
        if (row->action != REFUSE)
            continue;
        (void) fprintf(out, "    { %u, %d, \"%s\", ", row->call, row->os, row->name);
        write_text(out, reason(table, row));
        (void) fprintf(out, ", %u, {", row->tests);
        for (unsigned i = 0; i < row->tests; i++)
            (void) fprintf(out, " { %u, %d, 0x%" PRIx64 "ULL, 0x%" PRIx64 "ULL },",
                           row->test[i].argument, row->test[i].equal, row->test[i].mask,
                           row->test[i].value);
        (void) fputs(row->tests ? " } },\n" : " { 0, 0, 0, 0 } } },\n", out);
    }
    (void) fputs("};\n\n"
                 "/* The row that refuses this call; NULL if none does. */\n"
                 "static inline const struct refusal *find_refusal(uint32_t call, const uint64_t "
                 "*arguments)\n"
                 "{\n"
                 "    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {\n"
                 "        const struct refusal *row = &refusals[i];\n"
                 "        uint32_t held = 0;\n"
                 "        while (row->call == call && held < row->tests &&\n"
                 "               ((arguments[row->test[held].argument] & row->test[held].mask) ==\n"
                 "                row->test[held].value) == (row->test[held].equal != 0))\n"
                 "            held++;\n"
                 "        if (row->call == call && held == row->tests)\n"
                 "            return row;\n"
                 "    }\n"
                 "    return NULL;\n"
                 "}\n",
                 out);
    return 0;
}

static int write_cases(const struct table *table, FILE *out, error *err)
{
    static const char *const names[] = { "EXPECT_ALLOW", "EXPECT_REFUSE", "EXPECT_FAIL" };
    (void) fputs(
        "/* Generated by tools/seccomp_compile.c: for each row, arguments that reach it. */\n"
        "static const struct filter_case cases[] = {\n",
        out);
    const struct row *first = table->row;
    for (const struct row *row = table->row; row < table->row + table->rows; row++) {
        if (row->call != first->call)
            first = row;
        /* Calls that are simply allowed would do what they do: exit, pause, kill. */
        if (row->action == ALLOW && first == row && row->tests == 0)
            continue;
        uint64_t arguments[6];
        if (reach_row(first, row, arguments) < 0)
            return complain(row, err, "'%s' cannot be reached", row->name);
        const char *file = strrchr(row->file, '/');
        (void) fprintf(out, "    { \"%s:%d %s\", %u, %s, %d, {", file ? file + 1 : row->file,
                       row->line, row->name, row->call, names[row->action], row->os);
        for (int i = 0; i < 6; i++)
            (void) fprintf(out, " 0x%" PRIx64 "ULL,", arguments[i]);
        (void) fputs(" } },\n", out);
    }
    (void) fputs("};\n", out);
    return 0;
}

static int make(const char *what, const char *table_path, const char *out_path, error *err)
{
    static struct table table;
    static const struct {
        const char *name;
        int (*write)(const struct table *, FILE *, error *);
    } products[] = { { "filter", write_filter },
                     { "header", write_header },
                     { "cases", write_cases } };

    if (read_table(table_path, &table, 0, err) < 0 || check_table(&table, err) < 0)
        return -1;
    for_each(product, products) {
        if (strcmp(product->name, what) != 0)
            continue;
        auto_file out = fopen(out_path, "we");
        if (!out)
            return fail_os(err, "open '%s'", out_path);
        if (product->write(&table, out, err) < 0)
            return -1;
        return fflush(out) == 0 ? 0 : fail_os(err, "write '%s'", out_path);
    }
    return fail(err, ERR_BAD_REQUEST, "'%s' is nothing that can be made from a table", what);
}

int main(int argc, char **argv)
{
    error err = { 0 };
    if (argc != 4) {
        (void) fputs("usage: seccomp_compile filter|header|cases TABLE OUT\n", stderr);
        return 2;
    }
    if (make(argv[1], argv[2], argv[3], &err) < 0) {
        (void) fprintf(stderr, "seccomp_compile: %s\n", err.text);
        return 1;
    }
    return 0;
}
