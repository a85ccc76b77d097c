/* processes_internal.h - shared by processes.c (starts and ends processes), process_log.c (keeps
 * their output) and process_orders.c (input and signals). */
#pragma once

#include "engine/process/processes.h"

void process_set_timer(struct process *process);
void process_free_if_closed(struct process *process); /* after its last reader has gone */

void process_add_output(struct process *process, unsigned stream, const unsigned char *bytes,
                        size_t size);
void process_grant_credit(struct process *process); /* for output that all readers have read */

void process_feed_on(struct process *process); /* sends input as far as the window allows */
