/* operations.c - the table of operations, and their turns. */
#include "init/operations.h"

#include "base/table.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static struct operation operations[AGENT_OPERATIONS_MAX];

static struct operation *operation_of(uint32_t id)
{
    for_each(operation, operations)
        if (operation->id == id && id != 0)
            return operation;
    return NULL;
}

int operation_begin(uint32_t id, const struct operation_kind *kind,
                    struct operation **ret_operation, error *err)
{
    if (id == 0 || operation_of(id))
        return fail(err, ERR_PROTOCOL, "operation %u: the number is 0 or in use", id);
    for_each(operation, operations) {
        if (operation->id != 0)
            continue;
        *operation = (struct operation){ .id = id, .kind = kind, .fd = -1 };
        *ret_operation = operation;
        return 0;
    }
    errno = EAGAIN;
    return fail_os(err, "%d transfers, watches and connections are under way already",
                   AGENT_OPERATIONS_MAX);
}

static void end_operation(struct operation *operation)
{
    if (operation->kind->close)
        operation->kind->close(operation);
    if (operation->fd >= 0)
        (void) close(operation->fd);
    operation->id = 0;
}

static void go_on(const struct sandbox *sandbox, struct operation *operation, int how,
                  const error *err)
{
    if (how == OPERATION_GOES_ON)
        return;
    uint32_t id = operation->id;
    end_operation(operation);
    send_done(sandbox, id, how < 0 ? err : NULL);
}

void operation_send(const struct sandbox *sandbox, struct operation *operation,
                    enum agent_kind kind, const void *bytes, size_t size)
{
    operation->credit -= size < operation->credit ? size : operation->credit;
    send_frame(sandbox, kind, 0, operation->id, bytes, size, NULL, 0);
}

static void add_credit(struct operation *operation, const struct frame *in)
{
    struct agent_amount more = { 0 };
    if (in->head.size >= sizeof more)
        memcpy(&more, in->payload, sizeof more);
    if (__builtin_add_overflow(operation->credit, more.bytes, &operation->credit))
        operation->credit = UINT64_MAX;
}

bool operation_on_frame(struct sandbox *sandbox, const struct frame *in)
{
    struct operation *operation = operation_of(in->head.id);
    if (!operation)
        return false;
    error err = { 0 };
    const struct operation_kind *kind = operation->kind;
    if (in->head.kind == AGENT_CREDIT)
        add_credit(operation, in);
    else if (in->head.kind == AGENT_DATA && kind->data)
        go_on(sandbox, operation, kind->data(sandbox, operation, in->payload, in->head.size, &err),
              &err);
    else if (in->head.kind == AGENT_END && kind->end)
        go_on(sandbox, operation, kind->end(sandbox, operation, &err), &err);
    else if (in->head.kind == AGENT_CANCEL) {
        errno = ECANCELED;
        (void) fail_os(&err, "given up");
        go_on(sandbox, operation, -1, &err);
    }
    return true;
}

static bool can_step(const struct operation *operation)
{
    return operation->id != 0 && operation->kind->step && operation->credit > 0;
}

bool operations_are_busy(void)
{
    for_each(operation, operations)
        if (can_step(operation))
            return true;
    return false;
}

unsigned operations_gather(struct pollfd *watched)
{
    unsigned count = 0;
    for_each(operation, operations) {
        short wanted = 0;
        if (operation->id != 0 && operation->kind->wants)
            wanted = operation->kind->wants(operation);
        watched[count++] =
            (struct pollfd){ .fd = wanted != 0 ? operation->fd : -1, .events = wanted };
    }
    while (count > 0 && watched[count - 1].fd < 0)
        count--;
    for (unsigned i = count; i < COUNT_OF(operations); i++)
        watched[i].revents = 0;
    return count;
}

void operations_turn(struct sandbox *sandbox, const struct pollfd *watched)
{
    for (unsigned i = 0; i < COUNT_OF(operations); i++) {
        struct operation *operation = &operations[i];
        error err = { 0 };
        if (operation->id != 0 && watched[i].revents != 0 && operation->kind->ready)
            go_on(sandbox, operation,
                  operation->kind->ready(sandbox, operation, watched[i].revents, &err), &err);
        if (can_step(operation))
            go_on(sandbox, operation, operation->kind->step(sandbox, operation, &err), &err);
    }
}
