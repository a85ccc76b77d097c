/* output_buffer.c - a head that grows, and a ring buffer for the tail. */
#include "engine/run/output_buffer.h"

#include "base/huge_pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_PERCENT = 60, FLOOD_TIMES = 16, FLOOD_MIN = 1 << 20, MOVED_MAX = 512 * 1024 };

void output_init(struct output *output, uint64_t limit)
{
    *output = (struct output){ .limit = limit };
    output->head_max = (size_t) (limit / 100 * HEAD_PERCENT + limit % 100 * HEAD_PERCENT / 100);
    output->tail_max = (size_t) limit - output->head_max;
}

void output_done(struct output *output)
{
    free(output->head);
    free(output->tail);
    *output = (struct output){ 0 };
}

/* Makes room for `wanted` bytes in *data, doubling up to `max`. A large buffer gets all of its room
 * at once: memory that is not written to costs nothing, and moving it does. */
static bool grow(char **data, size_t *room, size_t wanted, size_t max)
{
    if (wanted <= *room)
        return true;
    size_t larger = *room > 0 ? *room : 4096;
    while (larger < wanted)
        larger *= 2;
    if (larger > max || larger > MOVED_MAX)
        larger = max;
    char *moved = realloc(*data, larger);
    if (!moved)
        return false;
    if (larger >= 2 * (size_t) HUGE_PAGE)
        huge_pages_wanted(moved, larger);
    *data = moved;
    *room = larger;
    return true;
}

static size_t add_to_head(struct output *output, const char *data, size_t size)
{
    size_t free_space = output->head_max - output->head_size;
    size_t taken = size < free_space ? size : free_space;
    if (taken == 0)
        return 0;
    if (!grow(&output->head, &output->head_room, output->head_size + taken, output->head_max)) {
        output->starved = true;
        return taken;
    }
    memcpy(output->head + output->head_size, data, taken);
    output->head_size += taken;
    return taken;
}

static void add_to_tail(struct output *output, const char *data, size_t size)
{
    size_t max = output->tail_max;
    if (size > max) {
        data += size - max;
        size = max;
    }
    if (size == 0)
        return;
    size_t wanted = output->tail_size + size < max ? output->tail_size + size : max;
    if (!grow(&output->tail, &output->tail_room, wanted, max)) {
        output->starved = true;
        return;
    }

    size_t first = max - output->tail_next < size ? max - output->tail_next : size;
    memcpy(output->tail + output->tail_next, data, first);
    if (size > first)
        memcpy(output->tail, data + first, size - first);
    output->tail_next = (output->tail_next + size) % max;
    output->tail_size = wanted;
}

void output_add(struct output *output, const void *data, size_t size)
{
    output->total += size;
    size_t taken = add_to_head(output, data, size);
    add_to_tail(output, (const char *) data + taken, size - taken);
}

bool output_is_truncated(const struct output *output)
{
    return output->total > output->limit;
}

bool output_is_flood(const struct output *output)
{
    uint64_t flood = output->limit * FLOOD_TIMES;
    return output->total > (flood > FLOOD_MIN ? flood : FLOOD_MIN);
}

void output_parts(const struct output *output, const char *stream, char marker[OUTPUT_MARKER_MAX],
                  struct output_part parts[OUTPUT_PARTS])
{
    marker[0] = '\0';
    uint64_t kept = output->head_size + output->tail_size;
    if (output->total > kept)
        (void) snprintf(marker, OUTPUT_MARKER_MAX,
                        "\n[glovebox: %" PRIu64 " of %" PRIu64 " bytes of %s are missing here; "
                        "limits.output_bytes is %" PRIu64 "]\n",
                        output->total - kept, output->total, stream, output->limit);

    bool wrapped = output->tail_size == output->tail_max && output->tail_size > 0;
    size_t oldest = wrapped ? output->tail_next : 0;
    parts[0] = (struct output_part){ output->head, output->head_size };
    parts[1] = (struct output_part){ marker, strlen(marker) };
    parts[2] = (struct output_part){ output->tail_size > 0 ? output->tail + oldest : NULL,
                                     output->tail_size - oldest };
    parts[3] = (struct output_part){ output->tail, oldest };
}
