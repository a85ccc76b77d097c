/* world.c - what is known about all daemons of a seed, and what must hold:
 *
 *     an order runs once                        world_executed()
 *     a sandbox runs orders of one tenant       world_executed()
 *     a result is of the run that was asked for, and output comes with a receipt
 *                                               world_answered()
 *     a slot is free when it is built in, and used when it is given back; all come back
 *                                               spawner.c, clients.c
 *     nobody finds what is another tenant's     clients.c
 *     a run that began has one receipt, what was answered has the one that it named, and the log
 *     verifies                                  verify.c */
#include "simulate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world *world;
struct places places;

/* --- chance: xoshiro256** --------------------------------------------------------------------- */

static uint64_t rotate(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static uint64_t next_random(void)
{
    uint64_t *s = world->random;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t chance(uint64_t below)
{
    return below == 0 ? 0 : next_random() % below;
}

bool one_in(unsigned count)
{
    return chance(count) == 0;
}

void fill_random(void *to, size_t size)
{
    unsigned char *at = to;
    for (uint64_t word = 0; size > 0; size--, word >>= 8) {
        if (word == 0)
            word = next_random();
        *at++ = (unsigned char) word;
    }
}

/* --- what is told ----------------------------------------------------------------------------- */

static void add_to_hash(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        world->hash = (world->hash ^ (unsigned char) text[i]) * UINT64_C(1099511628211);
}

void trace(const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    int size = snprintf(line, sizeof line, "%9lld.%03lld ", (long long) (world->clock_us / 1000),
                        (long long) (world->clock_us % 1000));
    size += vsnprintf(line + size, sizeof line - (size_t) size, format, arguments);
    va_end(arguments);
    if ((size_t) size >= sizeof line)
        size = sizeof line - 1;
    add_to_hash(line, (size_t) size);
    world->steps++;
    if (world->is_verbose)
        (void) !dprintf(STDOUT_FILENO, "%s\n", line);
}

void finding(const char *format, ...)
{
    va_list arguments;
    if (world->finding[0])
        return;
    va_start(arguments, format);
    (void) vsnprintf(world->finding, sizeof world->finding, format, arguments);
    va_end(arguments);
    trace("FOUND: %s", world->finding);
    if (sim_is_on)
        _exit(EXIT_FOUND);
}

const char *tenant_of(unsigned caller)
{
    static const char *const tenants[CALLERS] = { "alpha", "alpha", "beta", "owner" };
    return tenants[caller];
}

/* --- the model -------------------------------------------------------------------------------- */

bool order_in(const void *data, size_t size, unsigned *ret_order, enum behaviour *ret_behaviour)
{
    static const char mark[] = "#order ";
    unsigned order, behaviour;
    char number[24] = "";
    const char *found = memmem(data, size, mark, sizeof mark - 1);
    if (!found)
        return false;
    found += sizeof mark - 1;
    size_t left = size - (size_t) (found - (const char *) data);
    memcpy(number, found, left < sizeof number - 1 ? left : sizeof number - 1);
    if (sscanf(number, "%u %u", &order, &behaviour) != 2 || order >= world->order_count ||
        behaviour >= BEHAVIOURS)
        return false;
    *ret_order = order;
    *ret_behaviour = (enum behaviour) behaviour;
    return true;
}

void world_noted(const char *id, const char *code)
{
    unsigned order;
    enum behaviour behaviour;
    if (!order_in(code, strlen(code), &order, &behaviour) || world->run_count == SIM_RUNS_MAX)
        return;
    struct sim_run *row = &world->runs[world->run_count++];
    *row = (struct sim_run){ .order = (uint16_t) order,
                             .incarnation = (uint16_t) world->incarnation,
                             .noted_us = world->clock_us };
    (void) snprintf(row->id, sizeof row->id, "%s", id);
    trace("noted %s for order %u", row->id, order);
}

static struct sim_run *last_run_of(unsigned order)
{
    for (unsigned i = world->run_count; i-- > 0;)
        if (world->runs[i].order == order)
            return &world->runs[i];
    return NULL;
}

void world_executed(unsigned order, unsigned slot)
{
    struct sim_order *row = &world->orders[order];
    struct sim_run *run = last_run_of(order);
    trace("order %u runs in slot %u", order, slot);
    if (!run || run->incarnation != world->incarnation)
        finding("order %u runs without a note of its run", order);
    else if (row->executions++ > 0 && !row->may_run_again)
        finding("order %u of %s runs for the %uth time%s", order, tenant_of(row->caller),
                row->executions, row->has_key ? ", though it has a key" : "");
    else
        run->is_executed = true;
    row->may_run_again = false;
}

/* Every output says which order printed it. */
static void check_output(const struct sim_run *run, const char *result, size_t size)
{
    static const char mark[] = "output of order ";
    const char *at = result, *end = result + size;
    while ((at = memmem(at, (size_t) (end - at), mark, sizeof mark - 1))) {
        at += sizeof mark - 1;
        if ((unsigned) strtoul(at, NULL, 10) != run->order)
            finding("the result of %s, order %u, has output of order %.8s", run->id, run->order,
                    at);
    }
}

static void read_receipt(const char *result, size_t size, char *receipt, size_t room)
{
    static const char mark[] = "\"receipt\":\"";
    const char *at = memmem(result, size, mark, sizeof mark - 1);
    receipt[0] = '\0';
    if (!at)
        return;
    at += sizeof mark - 1;
    size_t length = strcspn(at, "\"");
    if (length < room)
        (void) snprintf(receipt, room, "%.*s", (int) length, at);
}

void world_answered(const char *id, unsigned caller, const char *result, size_t size)
{
    char receipt[RUN_TEXT * 2];
    read_receipt(result, size, receipt, sizeof receipt);
    trace("answered %s to %u: %zu bytes, %s", id, caller, size, receipt);
    for (unsigned i = 0; i < world->run_count; i++) {
        struct sim_run *run = &world->runs[i];
        if (strcmp(run->id, id) != 0)
            continue;
        if (strcmp(tenant_of(world->orders[run->order].caller), tenant_of(caller)) != 0)
            finding("%s of %s was answered to %s", id, tenant_of(world->orders[run->order].caller),
                    tenant_of(caller));
        check_output(run, result, size);
        if (!receipt[0] && memmem(result, size, "output of order ", 16))
            finding("output of %s was handed out without a receipt", id);
        if (run->answered_us == 0 && receipt[0]) {
            run->answered_us = world->clock_us;
            (void) snprintf(run->receipt, sizeof run->receipt, "%s", receipt);
        }
    }
}

/* Is it on the disk by now? With `group` that is promised for what is older than a group and the
 * time of the disk, and for what the daemon before has left as soon as this one has lived that
 * long; not of a disk that fails. */
static void settle(struct sim_run *run, bool ends_well)
{
    enum { PROMISE_US = 200000 };
    int64_t since_us = world->clock_us - PROMISE_US;
    bool was_faulty = world->last_fault_us > 0;
    if (run->incarnation < world->incarnation) {
        bool is_over = world->ready_us > 0 && world->ready_us <= since_us && !was_faulty;
        run->is_settled |= is_over;
        run->key_is_settled |= is_over;
        return;
    }
    if (was_faulty && world->last_fault_us > since_us - 2000000)
        since_us =
            world->last_fault_us - 2000000 < since_us ? world->last_fault_us - 2000000 : since_us;
    bool all_are = ends_well && !was_faulty;
    run->is_settled |= all_are || (run->answered_us > 0 && run->answered_us <= since_us);
    run->key_is_settled |= all_are || run->noted_us <= since_us;
}

void world_daemon_ends(enum ending ending)
{
    for (unsigned i = 0; i < world->run_count && !world->sync_each; i++) {
        struct sim_run *run = &world->runs[i];
        settle(run, ending == ENDS_WELL);
        if (ending != ENDS_POWER_CUT)
            continue;
        run->may_lack_receipt |= !run->is_settled;
        world->orders[run->order].may_run_again |= !run->key_is_settled;
    }
}
