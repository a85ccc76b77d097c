/* processes_internal.h - what the files of processes share: processes.c starts and ends them,
 * process_log.c keeps their output, process_orders.c feeds and signals them. */
#pragma once

#include "engine/process/processes.h"
#include "engine/session/session_registry.h"

void process_order(struct process *process, enum agent_kind kind, const void *payload, size_t size);
void process_set_timer(struct process *process);
void process_free_if_closed(struct process *process); /* its last reader has gone */

void process_add_output(struct process *process, unsigned stream, const unsigned char *bytes,
                        size_t size);
void process_grant_credit(struct process *process); /* for what no reader is still to read */

void process_feed_on(struct process *process); /* as far as its window goes */
