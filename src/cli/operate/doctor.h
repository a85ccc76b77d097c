/* doctor.h - what a check of `glovebox doctor` finds, and the checks themselves. */
#pragma once

#include "base/error.h"

enum health {
    HEALTH_OK,
    HEALTH_DEGRADED, /* sandboxes are built, with one wall less or a weaker one */
    HEALTH_MISSING,  /* no sandbox can be built */
    HEALTHS
};

struct finding {
    enum health health;
    char cause[232]; /* for HEALTH_OK: what was found, may be empty */
    char fix[232];
};

/* The three ways a check ends. A fix is what to type, or what to change and where. */
void found_ok(struct finding *finding, const char *format, ...) PRINTF(2, 3);
void found_weak(struct finding *finding, enum health health, const char *format, ...) PRINTF(3, 4);
void suggest(struct finding *finding, const char *format, ...) PRINTF(2, 3);

/* Does something to itself that cannot be undone, in a child that is thrown away: unshares, mounts,
 * installs filters. Gives 0, or -1 with *err as the child left it; a child that hangs or dies is a
 * failure too. */
int try_in_child(int (*trial)(error *err), error *err);

/* The checks, in doctor_isolation.c (what the kernel lets us build) … */
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

/* … in doctor_cgroups.c (control groups) … */
void check_group_memory(struct finding *);
void check_group_pids(struct finding *);
void check_group_cpu(struct finding *);
void check_group_io(struct finding *);

/* … and in doctor_host.c (what lies on the disk). */
void check_id_block(struct finding *);
void check_core_pattern(struct finding *);
void check_file_systems(struct finding *);
void check_programs(struct finding *);
void check_state(struct finding *);
void check_templates(struct finding *);
