/* output_buffer_test.c - head and tail are exact to the byte, for pieces of any size. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/output_buffer.h"

#include <stdlib.h>
#include <string.h>

/* Byte n of what a program prints. */
static char printed(size_t n)
{
    return (char) ('a' + n % 26);
}

static size_t join(const struct output *output, char *whole, size_t *ret_marker)
{
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    size_t size = 0;
    output_parts(output, "stdout", marker, parts);
    for_each(part, parts) {
        memcpy(whole + size, part->data ? part->data : "", part->size);
        size += part->size;
    }
    *ret_marker = parts[1].size;
    return size;
}

TEST(head_and_tail_are_exact)
{
    static const struct {
        uint64_t limit;
        size_t total, piece;
        size_t head, tail; /* kept */
    } facts[] = {
        { 10, 0, 1, 0, 0 },
        { 10, 5, 5, 5, 0 },
        { 10, 6, 1, 6, 0 },
        { 10, 7, 1, 6, 1 },
        { 10, 10, 3, 6, 4 },
        { 10, 11, 1, 6, 4 },
        { 10, 11, 11, 6, 4 },
        { 10, 1000, 7, 6, 4 },
        { 10, 1000, 1000, 6, 4 },
        { 1, 3, 1, 0, 1 },
        { 0, 3, 2, 0, 0 },
        { 3, 100, 2, 1, 2 },
        { 65536, 65536, 999, 39321, 26215 },
        { 65536, 65537, 999, 39321, 26215 },
        { 65536, 1000000, 4097, 39321, 26215 },
    };
    for_each(fact, facts) {
        struct output output;
        output_init(&output, fact->limit);
        static char piece[65536];
        for (size_t at = 0; at < fact->total;) {
            size_t size = fact->total - at < fact->piece ? fact->total - at : fact->piece;
            for (size_t i = 0; i < size; i++)
                piece[i % sizeof piece] = printed(at + i);
            output_add(&output, piece, size);
            at += size;
        }

        static char whole[200000];
        size_t marker;
        size_t size = join(&output, whole, &marker);
        expect(size - marker == fact->head + fact->tail, "limit %d, total %zu: kept %zu",
               (int) fact->limit, fact->total, size - marker);
        expect((marker > 0) == (fact->total > fact->limit), "limit %d, total %zu: marker of %zu",
               (int) fact->limit, fact->total, marker);
        expect(output_is_truncated(&output) == (marker > 0), "the output is marked as truncated");
        for (size_t i = 0; i < fact->head; i++)
            require(whole[i] == printed(i), "byte %zu of the head of %zu", i, fact->total);
        for (size_t i = 0; i < fact->tail; i++)
            require(whole[size - 1 - i] == printed(fact->total - 1 - i),
                    "byte %zu of the tail of %zu", i, fact->total);
        output_done(&output);
    }
}

TEST(the_marker_says_how_much_is_missing)
{
    struct output output;
    output_init(&output, 10);
    output_add(&output, "abcdefghijklmnopqrstuvwxyz", 26);
    char whole[1000];
    size_t marker;
    size_t size = join(&output, whole, &marker);
    whole[size] = '\0';
    expect(
        strcmp(whole,
               "abcdef\n[glovebox: 16 of 26 bytes of stdout are missing here; limits.output_bytes "
               "is 10]\nwxyz") == 0,
        "got '%s'", whole);
    output_done(&output);
}

TEST(a_flood_is_sixteen_times_the_limit)
{
    struct output output;
    output_init(&output, 1 << 20);
    static char piece[1 << 20];
    for (int i = 0; i < 16; i++)
        output_add(&output, piece, sizeof piece);
    expect(!output_is_flood(&output), "16 times is none");
    output_add(&output, piece, 1);
    expect(output_is_flood(&output), "one byte more is one");
    output_done(&output);
}

TESTS(CASE(head_and_tail_are_exact), CASE(the_marker_says_how_much_is_missing),
      CASE(a_flood_is_sixteen_times_the_limit))
