/* process_log.c - the output of a process, stored as records. Each reader has a position; output
 * that all readers have read, or that has no reader, is given back to init as credit. */
#include "engine/process/processes_internal.h"

#include "base/clock.h"
#include "base/list.h"

#include <string.h>

enum { RECORD_HEAD = 5, RECORD_MAX = 16384, UNREAD_MAX = PROCESS_OUTPUT_KEPT / 2 };

uint64_t process_log_end(const struct process *process)
{
    return process->first + (process->log.size - process->log_at);
}

static size_t record_size(const struct process *process, size_t at)
{
    uint32_t size;
    memcpy(&size, process->log.data + at + 1, sizeof size);
    return RECORD_HEAD + size;
}

static void process_drop_oldest(struct process *process)
{
    while (process->log.size - process->log_at > PROCESS_OUTPUT_KEPT) {
        size_t size = record_size(process, process->log_at);
        process->log_at += size;
        process->first += size;
    }
    if (process->log_at > PROCESS_OUTPUT_KEPT) {
        bytes_drop(&process->log, process->log_at);
        process->log_at = 0;
    }
}

void process_add_output(struct process *process, unsigned stream, const unsigned char *bytes,
                        size_t size)
{
    while (size > 0) {
        uint32_t part = size < RECORD_MAX ? (uint32_t) size : RECORD_MAX;
        unsigned char head[RECORD_HEAD] = { (unsigned char) stream };
        memcpy(head + 1, &part, sizeof part);
        bytes_add(&process->log, head, sizeof head);
        bytes_add(&process->log, bytes, part);
        bytes += part;
        size -= part;
    }
    process_drop_oldest(process);
}

static bool process_reader_is_stalled(const struct process_reader *reader)
{
    return deadline_has_passed(reader->stalls);
}

/* Gives credit for output without a reader, so that the program can go on. */
void process_grant_credit(struct process *process)
{
    uint64_t slowest = process_log_end(process);
    for (const struct process_reader *reader = process->readers; reader; reader = reader->next)
        if (!process_reader_is_stalled(reader) && reader->at < slowest)
            slowest = reader->at;
    if (process->debt == 0 || process_log_end(process) - slowest > UNREAD_MAX)
        return;
    struct agent_amount more = { .bytes = process->debt };
    process->debt = 0;
    session_order(process->session, &process->operation, AGENT_CREDIT, &more, sizeof more);
}

uint64_t process_skip_lost(const struct process *process, struct process_reader *reader)
{
    if (reader->at >= process->first)
        return 0;
    uint64_t lost = process->first - reader->at;
    reader->at = process->first;
    return lost;
}

bool process_read(struct process *process, struct process_reader *reader,
                  struct process_record *record)
{
    reader->stalls = deadline_in(PROCESS_STALL_MS);
    if (reader->at >= process_log_end(process)) {
        process_grant_credit(process);
        return false;
    }
    size_t at = process->log_at + (size_t) (reader->at - process->first);
    size_t size = record_size(process, at);
    record->stream = (unsigned char) process->log.data[at];
    record->bytes = process->log.data + at + RECORD_HEAD;
    record->size = size - RECORD_HEAD;
    reader->at += size;
    record->next = reader->at;
    return true;
}

/* An offset inside a record means the next record. */
void process_join(struct process *process, struct process_reader *reader)
{
    uint64_t at = process->first;
    size_t place = process->log_at;
    while (reader->at > at && place < process->log.size) {
        size_t size = record_size(process, place);
        place += size;
        at += size;
    }
    if (reader->at > process->first)
        reader->at = at;
    reader->stalls = deadline_in(PROCESS_STALL_MS);
    reader->next = process->readers;
    process->readers = reader;
    if (process->session)
        session_hold(process->session);
}

void process_leave(struct process *process, struct process_reader *reader)
{
    if (list_remove(process->readers, reader, next) && process->session)
        session_let_go(process->session);
    process_grant_credit(process);
    process_set_timer(process);
    process_free_if_closed(process);
}
