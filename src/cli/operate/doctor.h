/* doctor.h - what a check of `glovebox doctor` finds, and the checks themselves. */
#pragma once

#include "base/error.h"

enum health {
    HEALTH_OK,
    HEALTH_DEGRADED, /* sandboxes work, but a wall is missing or weaker */
    HEALTH_MISSING,  /* no sandbox can be built */
    HEALTHS
};

struct finding {
    enum health health;
    char cause[232]; /* for HEALTH_OK: what was found, or "" */
    char fix[232];
};

/* Results of a check. A suggestion is a command, or what to change and where. */
void found_ok(struct finding *finding, const char *format, ...) PRINTF(2, 3);
void found_weak(struct finding *finding, enum health health, const char *format, ...) PRINTF(3, 4);
void suggest(struct finding *finding, const char *format, ...) PRINTF(2, 3);

/* Calls `trial` in a child process, because it does things that cannot be undone: unshare, mount,
 * install filters. Returns its result, -1 with *err as the child set it; a child that hangs or
 * crashes counts as a failure. */
int try_in_child(int (*trial)(error *err), error *err);

/* Checks in doctor_isolation.c: what the kernel lets us build. */
void check_kernel(struct finding *);
void check_privilege(struct finding *);
void check_user_namespaces(struct finding *);
void check_mounts(struct finding *);
void check_process_ids(struct finding *);
void check_network(struct finding *);
void check_ipc(struct finding *);
void check_host_name(struct finding *);
void check_group_view(struct finding *);
void check_seccomp(struct finding *);
void check_refusals(struct finding *);
void check_landlock(struct finding *);
void check_resource_capability(struct finding *);

/* In doctor_cgroups.c: control groups. */
void check_group_memory(struct finding *);
void check_group_pids(struct finding *);
void check_group_cpu(struct finding *);
void check_group_io(struct finding *);

/* In doctor_host.c: files of the host. */
void check_id_block(struct finding *);
void check_core_pattern(struct finding *);
void check_file_systems(struct finding *);
void check_programs(struct finding *);
void check_state(struct finding *);
void check_templates(struct finding *);
