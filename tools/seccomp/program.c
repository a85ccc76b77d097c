/* child_process.c - lays the filter out: architecture, x32 bit, a binary tree over the numbers,
 * then the rows of one call in their order. */
#include "table.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>

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
/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
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

int compile(const struct table *table, struct program *program, error *err)
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
