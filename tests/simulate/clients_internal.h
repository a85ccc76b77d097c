/* clients_internal.h - clients.c for life.c, which says when. */
#pragma once

#include "simulate.h"

void clients_come(void); /* to a daemon that has begun */
void clients_act(void);  /* one of them does something */
unsigned clients_watching(void);
void clients_cancel_some(void);
void clients_end_sessions(void);
/* In the calm a run of each caller succeeds. Gives  what is missing. */
const char *clients_probe(void);
