/* sandbox_internal.h - a simulated sandbox, for spawner.c (slots) and init.c (what happens in it).
 */
#pragma once

#include "simulate.h"

#include "contract/agent.h"

enum { STREAM_ROOM = 256 * 1024, PUT_ROOM = 4096 };

/* One sandbox, and the init in it. */
struct slot {
    bool is_used, is_leaving, is_stuck, is_deaf, is_forked, is_kept;
    uint32_t generation, tenant;
    char owner[16]; /* tenant of the orders that it has run; "": none yet */
    int stream;
    uv_poll_t *poll;
    size_t got;
    unsigned char *from_daemon;
    char put[PUT_ROOM]; /* code that came as a file */
    size_t put_size;
    uint32_t running; /* id of the process or interpreter that runs code; 0: none */
    unsigned order;
    enum behaviour behaviour;
    bool is_session, concludes, has_file;
    uint32_t collect_id, executed;
};

/* --- spawner.c -------------------------------------------------------------------------------- */

struct slot *slot_at(unsigned index);
unsigned slot_index(const struct slot *slot);
int64_t some_time_us(void);
void end_stream(struct slot *slot);
void break_down(struct slot *slot); /* its init has gone, and all that it held */

/* --- init.c ----------------------------------------------------------------------------------- */

/* What happens later happens to the sandbox of that generation only. */
struct later {
    unsigned slot;
    uint32_t generation, id;
    void (*call)(struct slot *slot, const struct later *later);
};

void in_a_while(struct slot *slot, int64_t us, uint32_t id,
                void (*call)(struct slot *slot, const struct later *later));
void say(struct slot *slot, enum agent_kind kind, uint32_t id, const void *body, size_t size);
void on_stream(uv_poll_t *poll, int status, int events);
